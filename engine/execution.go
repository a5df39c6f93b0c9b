package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-dev/semel"
)

// maxCrashes is how many workers may die in a row over one run before a person
// must look at it.
const maxCrashes = 5

// execution is one claim of a run in the hands of a worker: the workflow
// function is called from its beginning, and its steps return what is recorded.
type execution struct {
	w    *Worker
	run  semel.Run
	def  *semel.WorkflowDefinition
	main *branch   // that of the run itself
	from time.Time // before the claim was asked for
	ctx  context.Context
	stop context.CancelFunc

	until   deadline    // the end of the lease
	fenced  atomic.Bool // another worker may hold the run
	cancel  atomic.Bool // somebody asked to stop it
	pause   atomic.Bool // somebody asked to leave it alone
	aborted atomic.Bool // the store could not take something: nothing new begins

	mu        sync.Mutex
	records   map[string]semel.StepRecord
	earlier   map[string][]string // paths recorded before this execution, by branch, not reached yet
	before    map[string]semel.RunWait
	reached   map[string]bool // paths that the code has asked for
	asleep    map[string]bool // paths of waits in before that are not over, of items left alone
	waits     []semel.RunWait // of this execution
	approvals []semel.Approval
	result    []byte
	done      int
	total     int
	handOver  bool // a worker should go on at once
	arrival   *arrival
	dueNow    bool // the run is due again
}

func newExecution(w *Worker, r semel.Run, from time.Time) *execution {
	x := &execution{
		w: w, run: r, def: w.definition(&r), from: from,
		records: map[string]semel.StepRecord{}, earlier: map[string][]string{}, before: map[string]semel.RunWait{}, asleep: map[string]bool{}, reached: map[string]bool{},
	}
	x.ctx, x.stop = context.WithCancel(w.e.ctx)
	x.until.set(from.Add(w.e.opt.Lease))
	x.cancel.Store(r.Cancel)
	x.pause.Store(r.Paused)
	return x
}

func (x *execution) fence() semel.RunFence {
	return semel.RunFence{Run: x.run.ID, Attempt: x.run.Attempt}
}

// renewed takes note of a renewal that was asked for at a time.
func (x *execution) renewed(asked time.Time, r *semel.Run) {
	x.until.set(asked.Add(x.w.e.opt.Lease))
	x.cancel.Store(r.Cancel)
	x.pause.Store(r.Paused)
}

// lose marks that another worker may hold the run.
func (x *execution) lose() {
	x.fenced.Store(true)
	x.stop()
}

// lost reports whether the claim may be another's by now.
func (x *execution) lost() bool {
	return x.fenced.Load() || x.until.over(x.w.e.clock())
}

// execute goes on with the run as far as it can, and makes durable where it
// stands then.
func (x *execution) execute() {
	defer x.stop()
	next, main := x.goOn()
	switch {
	case x.fenced.Load():
		main.conclude()
	case x.lost(), x.aborted.Load():
		x.handBack(main)
	default:
		x.finish(main, next)
	}
}

// goOn executes the workflow function and says what is next; main is the
// branch of the run itself.
func (x *execution) goOn() (semel.RunNext, *branch) {
	main := x.branch("")
	x.main = main
	if err := x.load(); err != nil {
		x.abort(err)
		return semel.RunNext{}, main
	}
	x.adopt(main)
	switch {
	case x.cancel.Load():
		return x.cancelled(), main
	case x.pause.Load():
		return x.suspended(), main
	case x.run.Crashes >= maxCrashes+2*x.suspects():
		return x.held(fmt.Sprintf("the worker died %d times in a row while it executed this run; nothing is sent until a person retries it", x.run.Crashes)), main
	case x.def == nil || x.run.Definition != x.def.Digest:
		return x.held(x.definitionChanged()), main
	}
	end := main.call(func(ctx semel.Context) error { return x.def.Run(ctx) })
	return x.conclude(main, end), main
}

// definitionPath is where a run remembers the definition that it began with, if
// whoever started it did not know one. No step has this path.
const definitionPath = "[definition]"

// adopt gives such a run the definition that this worker has of its version.
func (x *execution) adopt(main *branch) {
	if x.run.Definition != "" || x.def == nil {
		return
	}
	if r, ok := x.records[definitionPath]; ok {
		x.run.Definition = r.What
		x.def = x.w.definition(&x.run)
		return
	}
	if x.def.Digest != "" {
		x.run.Definition = x.def.Digest
		main.keep(semel.StepRecord{Path: definitionPath, Kind: semel.StepValue, What: x.def.Digest, Outcome: semel.StepCompleted})
	}
}

// load reads what earlier executions recorded.
func (x *execution) load() error {
	if x.run.Attempt == 1 && x.run.Crashes == 0 {
		return nil
	}
	history, err := x.w.runs.History(x.ctx, x.run.ID)
	if err != nil {
		return fmt.Errorf("read what was recorded: %w", err)
	}
	for _, r := range history.Steps {
		if r.Kind == semel.StepAction && r.Effect == nil && len(r.Result) > 0 {
			r.Effect = &semel.Operation{State: semel.Completed, Result: &semel.Result{}}
			if err := json.Unmarshal(r.Result, r.Effect.Result); err != nil {
				return fmt.Errorf("read the record of step %s: %w", r.Path, err)
			}
		}
		x.records[r.Path] = r
		if r.Kind != semel.StepItem && r.Path != definitionPath {
			x.expect(r.Path)
		}
	}
	for _, w := range history.Waits {
		x.before[w.Path] = w
		if _, recorded := x.records[w.Path]; !recorded && w.Kind != semel.WaitPerson {
			x.expect(w.Path)
		}
	}
	return nil
}

func (x *execution) expect(path string) {
	of := branchOf(path)
	x.earlier[of] = append(x.earlier[of], path)
}

// branchOf is the branch that a step belongs to, or that a list's item does. The
// key of an item may hold slashes.
func branchOf(path string) string {
	depth := 0
	for i := len(path) - 1; i >= 0; i-- {
		switch path[i] {
		case ']':
			depth++
		case '[':
			depth--
		case '/':
			if depth == 0 {
				return path[:i]
			}
		}
	}
	return ""
}

// reach takes note that the code asks for a step. It returns recorded steps of
// the branch that the code should have asked for before a new one; again: it
// asked for this one before.
func (x *execution) reach(path string) (r semel.StepRecord, recorded bool, skipped []string, again bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	of := branchOf(path)
	again = x.reached[path]
	x.reached[path] = true
	r, recorded = x.records[path]
	if i := slices.Index(x.earlier[of], path); i >= 0 {
		x.earlier[of] = slices.Delete(x.earlier[of], i, i+1)
	} else if !recorded {
		skipped = slices.Clone(x.earlier[of])
	}
	return r, recorded, skipped, again
}

// later reports whether steps of the branch were recorded after those that the
// code has reached.
func (x *execution) later(branch string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.earlier[branch]) > 0
}

func (x *execution) record(r semel.StepRecord) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.records[r.Path] = r
}

func (x *execution) recorded(path string) (semel.StepRecord, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	r, ok := x.records[path]
	return r, ok
}

func (x *execution) wait(w semel.RunWait) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.waits = append(x.waits, w)
}

// waited is what a step waited for when the run was suspended last.
func (x *execution) waited(path string) (semel.RunWait, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	w, ok := x.before[path]
	return w, ok
}

// abort ends the execution because the store does not answer.
func (x *execution) abort(err error) {
	if !x.aborted.Swap(true) && x.ctx.Err() == nil {
		x.w.e.log.Warn("the run goes on later", "run", x.run.ID, "workflow", x.run.Workflow, "err", err)
	}
}

// goOnSoon takes note that something stops short of a wait: a worker should go
// on with the run at once, unless somebody asks it to stop by then.
func (x *execution) goOnSoon() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.handOver = true
}

func (x *execution) definitionChanged() string {
	reason := fmt.Sprintf("the definition of %s@%d changed since the run began", x.run.Workflow, x.run.Version)
	text, err := x.w.runs.Registered(x.ctx, x.run.Definition)
	if err == nil && x.def != nil && x.def.Diff != nil {
		if d := x.def.Diff(text); len(d) > 0 {
			reason += ": " + strings.Join(d, "; ")
		}
	}
	return reason + "; give the changed definition a new version, and this run goes on with the old one"
}

// conclude turns the end of the workflow function into what is next.
func (x *execution) conclude(main *branch, end ending) semel.RunNext {
	switch {
	case end.reason != "":
		return x.held(end.reason)
	case end.suspended:
		return x.suspended()
	}
	if x.ctx.Err() != nil && (end.err != nil || len(x.missed()) > 0) { // it may have stopped because the worker does
		x.goOnSoon()
		return x.suspended()
	}
	if missed := x.missed(); len(missed) > 0 {
		reason := fmt.Sprintf("changed code: the record has step %s, which the code no longer reaches", missed[0])
		if end.err != nil {
			reason += "; it returned: " + end.err.Error()
		}
		return x.held(reason)
	}
	if end.err == nil {
		return x.next(semel.RunCompleted, "")
	}
	if needsPerson(end.err) {
		return x.held(end.err.Error())
	}
	return x.next(semel.RunFailed, end.err.Error())
}

// missed lists recorded steps of the run itself that the code did not reach.
func (x *execution) missed() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.earlier[""]
}

// needsPerson: what failed can be tried again, or has happened.
func needsPerson(err error) bool {
	if f, ok := errors.AsType[*semel.FailedError](err); ok && f.Exhausted {
		return true
	}
	if _, ok := errors.AsType[*semel.UnreadableError](err); ok {
		return true
	}
	items, ok := errors.AsType[*semel.ItemsError](err)
	return ok && slices.ContainsFunc(items.Failed, func(f semel.ItemFailure) bool { return f.Exhausted })
}

func (x *execution) next(state semel.RunState, reason string) semel.RunNext {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := semel.RunNext{State: state, Reason: reason, Done: x.done, Total: x.total}
	if x.total < x.run.Total { // it did not come to all of its lists
		n.Done, n.Total = x.run.Done, x.run.Total
	}
	if state.Ended() {
		n.Result = x.result
	} else {
		n.Waits = x.allWaits()
	}
	return n
}

// allWaits are those of this execution, and those of branches that it did not
// come to.
func (x *execution) allWaits() []semel.RunWait {
	waits := slices.Clone(x.waits)
	have, elsewhere := map[string]bool{}, x.stopped()
	for _, w := range waits {
		have[w.Path] = true
	}
	for path, w := range x.before {
		_, reached := x.records[path] // a claim is on record before its outcome is known
		if reached && !x.asleep[path] || have[path] {
			continue
		}
		if !elsewhere[branchOf(path)] {
			waits = append(waits, w)
		} else if w, kept := x.aside(w); kept {
			waits = append(waits, w)
		}
	}
	slices.SortFunc(waits, func(a, b semel.RunWait) int { return strings.Compare(a.Path, b.Path) })
	return waits
}

// stopped are the branches that this execution came to the end of for now.
func (x *execution) stopped() map[string]bool {
	stopped := map[string]bool{}
	for _, w := range x.waits {
		stopped[branchOf(w.Path)] = true
		stopped[w.Path] = true // of an item that is held as a whole
	}
	return stopped
}

// aside is a wait from before in a branch that is held or waits
// elsewhere by now. It must not wake the run, which would come to the same end,
// so only times are kept, for a sleep that began is not begun anew: one that is
// over has no Until any more.
func (x *execution) aside(w semel.RunWait) (kept semel.RunWait, ok bool) {
	if w.Kind == semel.WaitTime && !w.Until.After(x.w.e.estimate()) {
		w.Until = time.Time{}
	}
	return w, w.Kind == semel.WaitTime
}

// held is how an execution ends that only a person can help.
func (x *execution) held(reason string) semel.RunNext {
	n := x.next(semel.RunHeld, reason)
	all := n.Waits
	n.Waits = nil
	for _, w := range all {
		if w.Kind == semel.WaitPerson {
			n.Waits = append(n.Waits, w)
		} else if w, kept := x.aside(w); kept {
			n.Waits = append(n.Waits, w)
		}
	}
	return n
}
