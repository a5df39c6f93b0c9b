package drill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/semel-dev/semel"
)

// naive executes runs as an ordinary durable engine does, at least once: the
// result of a step is recorded after the step has returned, a step without a
// record is done again, and everything but an answer counts as a failure. It
// knows no operations. Its record of runs and steps outlives its workers, and
// only who holds a run may write to it, so the one that lost it stops there.
//
// Each attempt sends a key of its own. That is the honest comparison: such an
// engine hands a step its arguments and calls it again; a key that survives the
// call is there only where the author of the workflow makes it from the work
// and passes it on each time, and then knows for how long the destination
// honours it. The step as it is written here says nothing about that.
type naive struct {
	Store // nil: a naive engine has none of Semel's, but for what is below

	t    *trial
	runs []*naiveRun
	asks map[intention]semel.Operation // that a step asked for, by whichever run
	sent int
}

// naiveRun is what a naive engine has on record of a run.
type naiveRun struct {
	semel.Run
	steps  map[string]naiveStep
	tries  map[string]naiveTries
	timers map[string]time.Time
	child  *naiveRun // that it waits for
	idle   bool      // it waits for an event that never comes
	forgot bool      // its record has expired
}

// naiveStep is a step that is over.
type naiveStep struct {
	semel.StepRecord
	of intention // zero for a step without effect
}

// naiveTries counts the attempts of a step that is not over.
type naiveTries struct {
	begun, lost, refused int
}

// naiveNote says what a table of naive execution is about.
const naiveNote = `This is plain at-least-once execution of the same workflow in the same world, without Semel: a step is
repeated until it answers, and recorded after it has. Each attempt sends a key of its own, for an engine's
retry carries none unless the workflow's author makes one from the work and sends it each time.`

// naiveMissed are the faults that mean nothing where there are no operations,
// lookups, approvals that bind or questions to a person, and no clock counts.
var naiveMissed = []Fault{
	LookupBlind, LookupStale, EventEarly, ApprovalRevoked, ApprovalEnds, PersonWrong, ClockAhead, ClockBack,
	IgnoresKeys, HalfWindow, SlowToShow, NeverShows,
}

// meant are the schedules whose faults mean something to whoever executes.
func (d *drill) meant(all []Schedule) []Schedule {
	if !d.options.Naive {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(s Schedule) bool { return s.has(naiveMissed...) })
}

// player executes the runs of a trial, and judges what came of them. A trial is
// its own player, with engines and a store of Semel.
type player interface {
	// play starts runs and executes them until nothing is left to do; limit
	// bounds how long it lets time pass, 0 for no bound.
	play(ctx context.Context, start []semel.NewRun, limit time.Duration) error
	judge(ctx context.Context) error
}

// player is who plays a trial, and where its record is.
func (d *drill) player(ctx context.Context, t *trial) (player, Store, error) {
	if d.options.Naive {
		n := &naive{t: t, asks: map[intention]semel.Operation{}}
		return n, n, nil
	}
	s, err := d.open(ctx, t.clock)
	return t, s, err
}

// play starts runs and executes them until nothing is left to do, as that of a
// trial does.
func (n *naive) play(ctx context.Context, start []semel.NewRun, limit time.Duration) error {
	t := n.t
	until := n.now().Add(limit)
	var p *process
	for range enough {
		if p == nil || p.dead.Load() {
			if p != nil {
				t.pass(lease + time.Second)
			}
			p = t.process()
		}
		for len(start) > 0 && n.start(p, &start[0]) != nil {
			start = start[1:]
		}
		if len(start) > 0 {
			continue // whoever asks for the run asks again
		}
		if n.due() != nil {
			if x := n.claim(ctx, p); x != nil {
				if err := x.execute(); err != nil {
					return err
				}
			}
			continue
		}
		t.world.deliver(intention{})
		at := n.next()
		if at.IsZero() || limit > 0 && at.After(until) {
			return nil
		}
		t.pass(max(at.Sub(n.now()), time.Millisecond))
	}
	return t.stuck(ctx)
}

// write makes one write to the record, again where its answer does not come:
// what it writes is the same each time. It reports whether the worker lives.
func (p *process) write(what string, c call, work func()) bool {
	c.port, c.what, c.writes = "Write", what, true
	done := false
	for {
		err := p.visit(c, func(Fault) {
			if !done {
				work()
			}
			done = true
		})
		if p.dead.Load() {
			return false
		}
		if err == nil {
			return true
		}
	}
}

// start puts a run on record, or finds it there: such engines, too, know the
// name of a workflow's execution again. Nil: the worker died over it.
func (n *naive) start(p *process, asked *semel.NewRun) *naiveRun {
	var r *naiveRun
	alive := p.write("starting the run of "+asked.Workflow, call{}, func() {
		i := slices.IndexFunc(n.runs, func(r *naiveRun) bool { return r.Workflow == asked.Workflow && r.Key == asked.Key && !r.forgot })
		if i >= 0 {
			r = n.runs[i]
			n.t.tell("the run %q of %s is there", r.Key, r.Workflow)
			return
		}
		now := n.now()
		r = &naiveRun{steps: map[string]naiveStep{}, tries: map[string]naiveTries{}, timers: map[string]time.Time{}, Run: semel.Run{
			ID: semel.NewID(now, [10]byte{9: byte(len(n.runs) + 1)}), Workflow: asked.Workflow, Version: asked.Version, Key: asked.Key, Input: asked.Input,
			Trigger: asked.Trigger, State: semel.RunRunning, CreatedAt: now, UpdatedAt: now, DueAt: now,
		}}
		n.runs = append(n.runs, r)
		n.t.know(&r.Run)
	})
	if !alive {
		return nil
	}
	return r
}

// open reports whether a worker will go on with the run by itself.
func (r *naiveRun) open() bool {
	return !r.State.Ended() && !r.idle && (r.child == nil || r.child.State.Ended())
}

// wake is when a worker can go on with it.
func (r *naiveRun) wake() time.Time {
	if r.LeaseUntil.After(r.DueAt) {
		return r.LeaseUntil
	}
	return r.DueAt
}

// due is a run that a worker should execute now.
func (n *naive) due() *naiveRun {
	i := slices.IndexFunc(n.runs, func(r *naiveRun) bool { return r.open() && !r.wake().After(n.now()) })
	if i < 0 {
		return nil
	}
	return n.runs[i]
}

// claim gives a worker the next run.
func (n *naive) claim(ctx context.Context, p *process) *naiveExecution {
	var r *naiveRun
	alive := p.write("claiming a run", call{}, func() {
		if r = n.due(); r == nil {
			return
		}
		if r.Cancel {
			n.end(p, r, semel.RunNext{State: semel.RunCancelled})
			r = nil
			return
		}
		if !r.LeaseUntil.IsZero() {
			n.t.tell("%s takes the run over from %s, whose lease is over", p.name, r.By)
		}
		r.Attempt++
		r.By, r.LeaseUntil, r.child = p.name, n.now().Add(lease), nil
	})
	if !alive || r == nil {
		return nil
	}
	return &naiveExecution{n: n, ctx: ctx, p: p, r: r, run: r.Run, attempt: r.Attempt}
}

// end is how a run ends.
func (n *naive) end(p *process, r *naiveRun, next semel.RunNext) {
	now := n.now()
	r.State, r.Reason, r.Result, r.EndedAt, r.UpdatedAt, r.LeaseUntil = next.State, next.Reason, next.Result, now, now, time.Time{}
	text := fmt.Sprintf("%s leaves the run %s", p.name, next.State)
	if next.Reason != "" {
		text += ": " + next.Reason
	}
	n.t.tell("%s", text)
}

// next is when anything is due; zero where nothing ever is.
func (n *naive) next() time.Time {
	at := n.t.world.next()
	for _, r := range n.runs {
		if wake := r.wake(); r.open() && (at.IsZero() || wake.Before(at)) {
			at = wake
		}
	}
	return at
}

// naiveBegan is when every trial begins: its clock is that of the trial alone.
var naiveBegan = time.Date(2026, time.January, 5, 9, 0, 0, 0, time.UTC)

func (n *naive) now() time.Time { return naiveBegan.Add(time.Duration(n.t.ahead.Load())) }

// Now is the trial's time.
func (n *naive) Now(context.Context) (time.Time, error) { return n.now(), nil }

// Shift is nothing: the trial itself counts.
func (n *naive) Shift(time.Duration) {}

// Close releases nothing.
func (n *naive) Close() error { return nil }

// ListRuns lists all runs, newest first.
func (n *naive) ListRuns(context.Context, semel.RunFilter) iter.Seq2[semel.Run, error] {
	return func(yield func(semel.Run, error) bool) {
		for _, r := range slices.Backward(n.runs) {
			if !yield(r.Run, nil) {
				return
			}
		}
	}
}

// ChangeRun asks a run to stop, which it does before its next step.
func (n *naive) ChangeRun(_ context.Context, id semel.ID, c semel.RunCommand) (semel.Run, error) {
	for _, r := range n.runs {
		if r.ID != id {
			continue
		}
		if r.State.Ended() || c.Verb != semel.CancelRun {
			return r.Run, &semel.RunStateError{Run: r.Run, Verb: c.Verb}
		}
		r.Cancel, r.idle = true, false
		return r.Run, nil
	}
	return semel.Run{}, semel.ErrNotFound
}

// Expire forgets the names of runs that ended long ago.
func (n *naive) Expire(_ context.Context, before time.Time, _ int) (count int, err error) {
	for _, r := range n.runs {
		if r.State.Ended() && r.EndedAt.Before(before) && !r.forgot {
			r.forgot = true
			count++
		}
	}
	return count, nil
}

// judge counts effects in the world and compares them with what the runs have
// on record.
func (n *naive) judge(context.Context) error {
	t := n.t
	t.verdict = judged{columns: map[string]Outcome{}, wanted: map[intention]string{}}
	for _, i := range t.intentions(n.asks) {
		o, asked := n.asks[i]
		if !asked || t.world.count(i) == 0 && n.movedOn(&o) {
			continue // the step was done under another key, and so it is asked about there
		}
		f := n.about(i, &o)
		t.verdict.wanted[i] = withoutItems(f.step)
		t.found(t.verdict.wanted[i], f)
	}
	t.unreached()
	seen := slices.Concat(t.world.faults, t.world.overwritten(), t.world.doubled())
	slices.SortStableFunc(seen, func(a, b fault) int {
		return cmp.Or(cmp.Compare(a.of.scope, b.of.scope), cmp.Compare(a.of.key, b.of.key), cmp.Compare(a.why, b.why))
	})
	for _, w := range seen {
		f := finding{of: w.of, step: runColumn, outcome: Lost, why: w.why}
		if o, ok := n.asks[w.of]; ok {
			f.step, f.outcome = t.place(&o), Twice
		}
		if w.why == anotherRequest {
			f.why = "it was sent again with another payload" // there is no key that knows the first
		}
		t.found(withoutItems(f.step), f)
	}
	return nil
}

// about says what became of one intention.
func (n *naive) about(i intention, o *semel.Operation) finding {
	f := finding{of: i, step: n.t.place(o)}
	count := n.t.world.count(i)
	done, failed := n.recorded(i)
	switch {
	case count > 1:
		f.outcome, f.why = Twice, fmt.Sprintf("it happened %d times", count)
	case count > 0 && (done || n.movedOn(o) || n.t.world.commutes(i)):
		f.outcome = Once
	case count > 0 && failed:
		f.outcome, f.why = Lost, "it happened, and the record says that it failed"
	case count > 0:
		f.outcome, f.why = Lost, "it happened, and nothing is on record"
	case done:
		f.outcome, f.why = Lost, "it never happened, and the record says that it did"
	default:
		f.outcome = Never
	}
	return f
}

// recorded is what the runs have on record of an intention.
func (n *naive) recorded(i intention) (done, failed bool) {
	for _, r := range n.runs {
		for _, s := range r.steps {
			if s.of == i {
				done = done || s.Outcome == semel.StepCompleted
				failed = failed || s.Outcome == semel.StepFailed
			}
		}
	}
	return done, failed
}

// movedOn reports whether the run has the step on record as done under another
// key: such an engine does not notice that a key differs from try to try.
func (n *naive) movedOn(o *semel.Operation) bool {
	return slices.ContainsFunc(n.runs, func(r *naiveRun) bool {
		s, ok := r.steps[o.Step]
		return ok && r.ID == o.Run && s.of != of(o) && s.Outcome == semel.StepCompleted
	})
}

// definition is that of a run.
func (n *naive) definition(r *naiveRun) (semel.WorkflowDefinition, error) {
	for _, def := range n.t.d.workflows {
		if def.Name == r.Workflow && def.Run != nil {
			return def, nil
		}
	}
	return semel.WorkflowDefinition{}, errors.New("workflow " + r.Workflow + " is started, and is not among the children given: add it to Options.Children")
}
