package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-dev/semel"
)

// stranded is how long a function may go on after a wrong use of its Context:
// it may be waiting, for ever, for the goroutine that this ended.
const stranded = time.Second

// branch is a sequence of steps: the run's own, or those of an item of a list.
// It is the semel.Executor of that sequence's Context.
type branch struct {
	x    *execution
	path string

	busy      atomic.Pointer[string] // the step under way
	poisoned  atomic.Bool            // suspended, or ended: nothing more begins
	goroutine uint64                 // that the steps must come from
	wrong     chan struct{}          // closed at a wrong use of the Context

	commits sync.Mutex // one at a time, so that what is kept is durable before a claim is

	mu      sync.Mutex
	reason  string             // why a person is needed, where the branch cannot go on
	outcome *postponed         // of the operation before, not durable yet
	steps   []semel.StepRecord // not durable yet
	timer   *time.Timer
}

// postponed is the outcome of an attempt on its way to the store.
type postponed struct {
	before semel.Operation
	event  semel.Event
	change semel.Change
}

var _ semel.Executor = (*branch)(nil)

func (x *execution) branch(path string) *branch {
	return &branch{x: x, path: path, wrong: make(chan struct{})}
}

// ending is how a branch ended.
type ending struct {
	err       error  // what its function returned
	suspended bool   // it waits, and its function did not return
	reason    string // a person must look, and why
}

// call runs fn as the branch, in a goroutine of its own, until it returns or is
// suspended.
func (b *branch) call(fn func(semel.Context) error) ending {
	done := make(chan ending, 1)
	go func() {
		end := ending{reason: "the workflow ended its goroutine by itself (runtime.Goexit, t.FailNow in a test, or a step on the Context of a branch that is over)"}
		defer func() {
			if r := recover(); r != nil {
				end = ending{reason: fmt.Sprintf("the workflow's code panicked: %v", r)}
				b.x.w.e.log.Error("a workflow panicked", "run", b.x.run.ID, "branch", b.path, "panic", r, "stack", string(stack()))
			}
			done <- b.ended(end)
		}()
		b.goroutine = goroutineID()
		err := fn(semel.NewContext(b.x.ctx, b, b.path))
		if err != nil { // an error that panics does so here
			_, _ = err.Error(), needsPerson(err)
		}
		if p := b.busy.Load(); p != nil && !b.poisoned.Load() {
			b.misuse("the workflow returned while step " + *p + " was under way")
		}
		end = ending{err: err}
	}()
	select {
	case end := <-done:
		return end
	case <-b.wrong:
	}
	select {
	case end := <-done:
		return end
	case <-time.After(stranded):
		return b.ended(ending{})
	}
}

// ended corrects an ending by what the branch knows: a suspension counts, not
// what the code made of it.
func (b *branch) ended(end ending) ending {
	b.mu.Lock()
	reason := b.reason
	b.mu.Unlock()
	switch {
	case reason != "":
		return ending{reason: reason}
	case b.poisoned.Swap(true):
		return ending{suspended: true}
	}
	return end
}

// Run is the run that is executed.
func (b *branch) Run() *semel.Run { return &b.x.run }

// Return sets the result of the run.
func (b *branch) Return(value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode the result: %w", err)
	}
	if err := fits("result", data); err != nil {
		return err
	}
	b.x.mu.Lock()
	defer b.x.mu.Unlock()
	b.x.result = data
	return nil
}

// Step performs one step; see semel.Executor.
func (b *branch) Step(ctx semel.Context, path string, s semel.Step) (semel.StepRecord, error) {
	b.enter(path)
	defer b.busy.Store(nil)
	name := path[strings.LastIndexByte(path, '/')+1:]
	if err := semel.ValidateStepName(name); err != nil {
		b.hold(path, err.Error())
	}
	rec, recorded, skipped, again := b.x.reach(path)
	was, waits := b.x.waited(path)
	_, acts := s.(*semel.DoStep)
	switch {
	case again && !acts:
		b.hold(path, "step "+path+" is asked for twice in one execution: two steps need two names, and the turns of a loop a name each (Context.Named, or Each)")
	case waits && !recorded && !ends(s, was.Kind):
		b.hold(path, fmt.Sprintf("changed code: step %s waits for something of kind %s, and the code asks for %s", path, was.Kind, semel.KindOf(s)))
	case recorded && rec.Kind != semel.KindOf(s):
		b.hold(path, fmt.Sprintf("changed code: step %s is recorded as %s, and the code asks for %s", path, rec.Kind, semel.KindOf(s)))
	case len(skipped) > 0:
		b.hold(path, fmt.Sprintf("changed code: step %s is new, but the record already has step %s, which comes later in the code or is gone", path, skipped[0]))
	}
	switch s := s.(type) {
	case *semel.DoStep:
		return b.read(s)(b.do(path, s, rec, recorded))
	case *semel.ValueStep:
		return b.value(path, s, rec, recorded)
	case *semel.SleepStep:
		return b.sleep(path, s, rec, recorded)
	case *semel.EventStep:
		return b.event(path, s, rec, recorded)
	case *semel.ApprovalStep:
		return b.approve(path, s, rec, recorded)
	case *semel.ChildStep:
		return b.child(path, s, rec, recorded)
	case *semel.EachStep:
		return b.each(ctx, path, s, rec, recorded)
	}
	panic(fmt.Sprintf("engine: unknown step %T", s))
}

// read lets a step take in its answer. One that cannot be read holds the branch:
// the effect has happened, and code that took it for a failure would have it
// happen another way.
func (b *branch) read(s *semel.DoStep) func(semel.StepRecord, error) (semel.StepRecord, error) {
	return func(rec semel.StepRecord, err error) (semel.StepRecord, error) {
		if err != nil || s.Read == nil {
			return rec, err
		}
		if err := s.Read(rec.Answer()); err != nil {
			b.hold(rec.Path, (&semel.UnreadableError{Path: rec.Path, Err: err}).Error())
		}
		return rec, nil
	}
}

// ends reports whether a step of this kind may have begun the wait.
func ends(s semel.Step, w semel.WaitKind) bool {
	switch s.(type) {
	case *semel.DoStep:
		return w == semel.WaitOperation || w == semel.WaitTime || w == semel.WaitPerson
	case *semel.SleepStep:
		return w == semel.WaitTime || w == semel.WaitPerson
	case *semel.EventStep:
		return w == semel.WaitEvent || w == semel.WaitPerson
	case *semel.ApprovalStep:
		return w == semel.WaitApproval || w == semel.WaitPerson
	case *semel.ChildStep:
		return w == semel.WaitRun || w == semel.WaitPerson
	}
	return w == semel.WaitPerson
}

// enter lets a step begin, or ends the goroutine: where the branch is
// suspended or must stop, and where the code is wrong.
func (b *branch) enter(path string) {
	if b.poisoned.Load() {
		runtime.Goexit()
	}
	if !b.busy.CompareAndSwap(nil, &path) {
		other := path
		if p := b.busy.Load(); p != nil {
			other = *p
		}
		b.misuse("steps " + other + " and " + path + " run at once on one Context: parallel work is for Each and Parallel, with the Context that they hand on")
	}
	if b.x.w.opt.Strict {
		b.own(path)
	}
	b.check()
}

// own holds the run if the step comes from a goroutine that is not the
// branch's.
func (b *branch) own(path string) {
	if b.goroutine != goroutineID() {
		b.misuse("step " + path + " is asked for from a goroutine that the workflow started itself: parallel work is for Each and Parallel")
	}
}

// misuse holds the run because its code cannot be executed safely.
func (b *branch) misuse(reason string) {
	b.mu.Lock()
	if b.reason == "" {
		b.reason = "wrong use of a Context: " + reason
		close(b.wrong)
	}
	b.mu.Unlock()
	b.poisoned.Store(true)
	b.x.w.e.log.Error("wrong use of a Context", "run", b.x.run.ID, "workflow", b.x.run.Workflow, "problem", reason)
	runtime.Goexit()
}

// check suspends the branch where nothing new may begin.
func (b *branch) check() {
	if b.x.mustStop() {
		b.x.goOnSoon() // a pause may be over before the execution is
		b.exit()
	}
}

// suspend ends the goroutine: the branch waits.
func (b *branch) suspend(w semel.RunWait) {
	if w.Since.IsZero() {
		w.Since = b.x.w.e.estimate()
	}
	b.x.wait(w)
	b.exit()
}

// hold ends the goroutine: a person must look.
func (b *branch) hold(path, reason string) {
	b.suspend(semel.RunWait{Path: path, Kind: semel.WaitPerson, Person: true, Reason: reason})
}

// exit ends the goroutine of a branch that goes on another time. From another
// goroutine that would leave the branch waiting for ever.
func (b *branch) exit() {
	if p := b.busy.Load(); p != nil {
		b.own(*p)
	}
	b.poisoned.Store(true)
	b.busy.Store(nil)
	runtime.Goexit()
}

// keep puts a record beside the others; it is durable with the next commit of
// the branch, which comes before anything else can be sent.
func (b *branch) keep(r semel.StepRecord) semel.StepRecord {
	r.At, r.Failure = b.x.w.e.estimate(), plain(r.Failure)
	b.x.record(r)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.steps = append(b.steps, r)
	return r
}

// postpone keeps the outcome of an attempt for the next commit, which the
// branch makes within Options.Linger. It reports false for an outcome that must be
// on record before anything else is decided.
func (b *branch) postpone(o semel.Operation, ev semel.Event, token semel.ID) (semel.Operation, bool) {
	if o.Attempt != 1 || ev.Kind != semel.EvConfirmed {
		return o, false
	}
	ev.At = b.x.w.e.estimate()
	change, err := o.Change(ev, token)
	if err != nil || change.After.State != semel.Completed || change.After.Incident != "" {
		return o, false
	}
	b.mu.Lock()
	b.outcome = &postponed{before: o, event: ev, change: change}
	linger := b.x.w.e.opt.Linger
	switch {
	case linger < 0:
		defer b.flush()
	case b.timer == nil:
		b.timer = time.AfterFunc(linger, b.flush)
	default:
		b.timer.Reset(linger)
	}
	b.mu.Unlock()
	return change.After, true
}

// flush makes durable what is kept, while the workflow's code computes.
func (b *branch) flush() {
	b.mu.Lock()
	nothing := b.outcome == nil
	b.mu.Unlock()
	if !nothing {
		_ = b.settle() // what could not be written is kept for the next commit
	}
}

// take is what the next commit of the branch must make durable.
func (b *branch) take() semel.RunCommit {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer != nil {
		b.timer.Stop()
	}
	c := semel.RunCommit{RunFence: b.x.fence(), Steps: b.steps}
	if b.outcome != nil {
		c.Outcome = &b.outcome.change
	}
	b.steps = nil
	return c
}

func (b *branch) giveBack(c semel.RunCommit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.steps = append(c.Steps, b.steps...)
}

// commit makes c durable. Whatever becomes of the rest, the outcome in it is
// recorded or spooled when commit returns.
func (b *branch) commit(ctx context.Context, c semel.RunCommit) semel.RunCommitted {
	b.mu.Lock()
	p := b.outcome
	b.mu.Unlock()
	answer := b.x.w.runs.CommitRun(ctx, c)
	if c.Outcome == nil {
		return answer
	}
	if answer.OutcomeErr != nil {
		if _, kept, err := b.x.w.e.conclude(p.before, p.event); err != nil && !kept {
			b.x.w.e.log.Error("an outcome could be neither recorded nor kept; the operation is unknown", "operation", p.before.ID, "err", err)
			b.x.abort(err)
		}
	}
	b.mu.Lock()
	if b.outcome == p {
		b.outcome = nil
	}
	b.mu.Unlock()
	return answer
}

// conclude records what is kept where the run itself cannot be written any
// more.
func (b *branch) conclude() {
	b.commits.Lock()
	defer b.commits.Unlock()
	if c := b.take(); c.Outcome != nil {
		c.Steps = nil
		b.commit(context.Background(), semel.RunCommit{RunFence: c.RunFence, Outcome: c.Outcome})
	}
}

// errOutcomeLost: an outcome could be neither recorded nor kept, perhaps by a
// flush that was under way while the code went on. Nothing follows it.
var errOutcomeLost = fmt.Errorf("the outcome before is not on record: %w", semel.ErrUnavailable)

// end makes durable what is kept, and how the execution ends.
func (b *branch) end(n *semel.RunNext) (at time.Time, err error) {
	b.commits.Lock()
	defer b.commits.Unlock()
	if b.x.aborted.Load() && n.State.Ended() {
		return time.Time{}, errOutcomeLost
	}
	c := b.take()
	c.Next = n
	answer := b.commit(context.Background(), c)
	if answer.RunErr != nil {
		b.giveBack(semel.RunCommit{Steps: c.Steps})
	}
	return answer.NextAt, answer.RunErr
}

// claim commits the claim of an operation together with what is kept.
func (b *branch) claim(ctx context.Context, change semel.Change) (semel.Operation, error) {
	b.commits.Lock()
	defer b.commits.Unlock()
	if b.x.aborted.Load() {
		return change.Before, errOutcomeLost
	}
	c := b.take()
	c.Claim = &change
	answer := b.commit(ctx, c)
	switch {
	case errors.Is(answer.RunErr, semel.ErrStale):
		b.x.lose()
		if o := answer.Claim; answer.ClaimErr == nil && o.Attempt > 0 { // a try of the store made it, before the run was lost
			_, _, err := b.x.w.e.conclude(o, semel.Event{
				Kind: semel.EvRefused, Attempt: o.Attempt, By: b.x.w.e.opt.Name,
				Reason: "the run was lost before anything was sent", Unsent: true,
			})
			if err != nil {
				b.x.w.e.log.Warn("record that nothing was sent", "operation", o.ID, "err", err)
			}
		}
		return change.Before, semel.ErrStopped
	case answer.RunErr != nil:
		b.giveBack(semel.RunCommit{Steps: c.Steps})
	}
	if answer.ClaimErr != nil {
		return change.Before, answer.ClaimErr
	}
	return answer.Claim, answer.RunErr
}

// settle makes the kept records durable now.
func (b *branch) settle() error {
	b.commits.Lock()
	defer b.commits.Unlock()
	c := b.take()
	if c.Outcome == nil && len(c.Steps) == 0 {
		return nil
	}
	answer := b.commit(context.Background(), c)
	if answer.RunErr != nil {
		b.giveBack(semel.RunCommit{Steps: c.Steps})
	}
	if errors.Is(answer.RunErr, semel.ErrStale) {
		b.x.lose()
	}
	return answer.RunErr
}

func stack() []byte {
	buf := make([]byte, 16<<10)
	return buf[:runtime.Stack(buf, false)]
}

// goroutineID is the number that the runtime gives a goroutine. It is used to
// find mistakes, and decides nothing else.
func goroutineID() uint64 {
	var buf [32]byte
	var id uint64
	for _, c := range bytes.TrimPrefix(buf[:runtime.Stack(buf[:], false)], []byte("goroutine ")) {
		if c < '0' || c > '9' {
			break
		}
		id = 10*id + uint64(c-'0')
	}
	return id
}
