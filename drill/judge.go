package drill

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/semel-dev/semel"
)

// Outcome is what became of an intention, counted in the world and compared
// with what the record says.
type Outcome string

// The outcomes, the good ones first.
const (
	// Once: it happened once, and is recorded so.
	Once Outcome = "once"
	// Never: it did not happen, and the record says so: a failure, or a run that
	// did not come to it.
	Never Outcome = "never, known"
	// Held: a run is held for a reason that no fault explains, and a person must
	// look: its code asks for something else each time, for example.
	Held Outcome = "held, waits for a person"
	// Unknown: nobody can know, and a person is asked.
	Unknown Outcome = "unknown, waits for a person"
	// Twice: more happened than was asked for, or than was allowed.
	Twice Outcome = "twice"
	// Lost: the record says something else than the world, or nobody goes on
	// and nobody is told.
	Lost Outcome = "lost"
)

// outcomes are all, the worst last.
var outcomes = []Outcome{Once, Never, Held, Unknown, Twice, Lost}

func worse(a, b Outcome) bool { return slices.Index(outcomes, a) > slices.Index(outcomes, b) }

// Bad reports whether the outcome must never be.
func (o Outcome) Bad() bool { return o == Twice || o == Lost }

// finding is what became of one intention.
type finding struct {
	of      intention
	step    string // with its item
	outcome Outcome
	why     string
}

// runColumn stands for a run as a whole.
const runColumn = "the run"

// judged is what a trial came to.
type judged struct {
	columns  map[string]Outcome // the worst
	findings []finding          // bad ones
	wanted   map[intention]string
	steps    map[string]bool // that something is known of
	stopped  string          // why a run did not complete
}

// judge counts effects in the world and compares them with the record.
func (t *trial) judge(ctx context.Context) error {
	ops, runs := map[intention]semel.Operation{}, []semel.Run{}
	for o, err := range t.store.List(ctx, semel.Filter{}) {
		if err != nil {
			return err
		}
		if o, err = t.store.LoadID(ctx, o.ID); err != nil {
			return err
		}
		ops[of(&o)] = o
	}
	for run, err := range t.store.ListRuns(ctx, semel.RunFilter{}) {
		if err != nil {
			return err
		}
		runs = append(runs, run)
	}
	t.verdict = judged{columns: map[string]Outcome{}, wanted: map[intention]string{}}
	for _, i := range t.intentions(ops) {
		o, recorded := ops[i]
		f := t.about(i, &o, recorded)
		if recorded {
			t.verdict.wanted[i] = t.column(&o)
		} else {
			t.verdict.wanted[i] = withoutItems(f.step)
		}
		t.found(t.verdict.wanted[i], f)
	}
	t.unreached()
	for _, f := range slices.Concat(t.world.faults, t.world.overwritten(), t.world.doubled()) {
		outcome, column, step := Twice, runColumn, runColumn
		if o, ok := ops[f.of]; ok {
			column, step = t.column(&o), t.place(&o)
		} else {
			outcome = Lost
		}
		if f.lost {
			outcome = Lost
		}
		t.found(column, finding{f.of, step, outcome, f.why})
	}
	for i := range runs {
		if why := t.stranded(ctx, &runs[i], ops); why != "" {
			t.found(runColumn, finding{step: runColumn, outcome: Lost, why: why})
		}
		t.stopped(&runs[i])
	}
	return nil
}

// unreached are steps that the code did not come to, or went around.
func (t *trial) unreached() {
	reached := maps.Clone(t.verdict.steps)
	for _, step := range t.d.wanted {
		if !reached[step] {
			t.found(withoutItems(step), finding{step: step, outcome: Never})
		}
	}
}

// stopped takes note of a run that did not complete.
func (t *trial) stopped(run *semel.Run) {
	switch run.State {
	case semel.RunHeld, semel.RunFailed, semel.RunCancelled:
	case semel.RunRunning, semel.RunWaiting, semel.RunCompleted:
		return
	}
	t.verdict.stopped = "it is " + string(run.State) + ": " + run.Reason
	for _, o := range t.verdict.columns {
		if o == Unknown || o.Bad() {
			return
		}
	}
	if run.State == semel.RunHeld && !t.schedule.has(Refused, RefusedLate, ChangedPayload, ApprovalRevoked, ApprovalEnds, RecordExpired) {
		t.found(runColumn, finding{step: runColumn, outcome: Held})
	}
}

func (t *trial) found(column string, f finding) {
	if t.verdict.steps == nil {
		t.verdict.steps = map[string]bool{}
	}
	t.verdict.steps[f.step] = true
	if worse(f.outcome, t.verdict.columns[column]) || t.verdict.columns[column] == "" {
		t.verdict.columns[column] = f.outcome
	}
	if f.outcome.Bad() {
		t.verdict.findings = append(t.verdict.findings, f)
	}
}

// intentions are those on record, those that happened, and those of the
// execution that nothing broke.
func (t *trial) intentions(ops map[intention]semel.Operation) []intention {
	all := map[intention]bool{}
	for i := range ops {
		all[i] = true
	}
	for _, i := range t.allDone() {
		all[i] = true
	}
	for _, e := range t.world.effects {
		all[e.intention] = true
	}
	out := make([]intention, 0, len(all))
	for i := range all {
		out = append(out, i)
	}
	slices.SortFunc(out, func(a, b intention) int { return cmp.Or(cmp.Compare(a.scope, b.scope), cmp.Compare(a.key, b.key)) })
	return out
}

// about says what became of one intention.
func (t *trial) about(i intention, o *semel.Operation, recorded bool) finding {
	f := finding{of: i, step: t.stepOf(i, o, recorded)}
	n := t.world.count(i)
	state := o.StateAt(t.now())
	switch {
	case n > 1:
		f.outcome, f.why = Twice, fmt.Sprintf("it happened %d times", n)
	case !recorded && n > 0 && t.world.commutes(i):
		f.outcome = Once // it needs no record
	case !recorded && n > 0:
		f.outcome, f.why = Lost, "it happened, and nothing is on record"
	case !recorded && t.isDone(i):
		f.outcome, f.why = Lost, "it never happened, and the workflow was told that it did"
	case !recorded:
		f.outcome = Never
	case t.late[i] && state == semel.Unknown && o.Incident == "":
		f.outcome, f.why = Lost, "the destination's late answer came, and the record still says that nobody knows"
	case t.knows(i) && state == semel.Unknown && o.Incident == "":
		f.outcome, f.why = Lost, "a worker got the destination's answer, and the record still says that nobody knows"
	case o.Incident != "":
		f.outcome = Unknown
	case (state == semel.Unknown || state == semel.InProgress) && t.isDenied(i, o):
		f.outcome, f.why = Lost, "the workflow was told that nothing happened, and nobody knows that"
	case state == semel.Unknown && t.waitsForPerson(o):
		f.outcome = Unknown
	case state == semel.Unknown || state == semel.InProgress:
		f.outcome, f.why = Lost, "nobody knows whether it happened, nobody finds out, and nobody is told"
	case state == semel.Failed && n > 0:
		f.outcome, f.why = Lost, "it happened, and the record says that nothing happened"
	case state == semel.Failed:
		f.outcome = Never
	case state == semel.Completed && n == 0:
		f.outcome, f.why = Lost, "it never happened, and the record says that it did"
	default:
		f.outcome = Once
	}
	return f
}

func (t *trial) stepOf(i intention, o *semel.Operation, recorded bool) string {
	if recorded {
		return t.place(o)
	}
	for _, e := range t.world.effects {
		if e.intention == i {
			return e.step
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.done[i]
}

// waitsForPerson reports whether the review queue shows an operation.
func (t *trial) waitsForPerson(o *semel.Operation) bool {
	return semel.Decide(o, o.Contract, t.now()).Kind == semel.MovePerson
}

// stranded says why a run must not stand where it does.
func (t *trial) stranded(ctx context.Context, run *semel.Run, ops map[intention]semel.Operation) string {
	switch run.State {
	case semel.RunCompleted:
		if !t.isReturned(run.ID) {
			return "it is completed, though its code never came to its end"
		}
		if item := t.skippedIn(run.ID); item != "" {
			return "it is completed, though " + t.prefix(run.ID) + item + " was left out"
		}
		for _, i := range t.intentions(ops) {
			if o, ok := ops[i]; ok && o.Run == run.ID && o.State != semel.Completed && o.State != semel.Failed && o.Incident == "" {
				return "it is completed, though " + t.place(&o) + " is " + o.State.Words()
			}
		}
	case semel.RunHeld, semel.RunFailed, semel.RunCancelled:
	case semel.RunRunning, semel.RunWaiting:
		rests, err := t.rests(ctx, run)
		if err != nil {
			t.fail(err)
		}
		if rests {
			return t.missed(ctx, run)
		}
		return fmt.Sprintf("%s %q is %s, and nobody goes on with it: %s", run.Workflow, run.Key, run.State, run.Reason)
	}
	return ""
}

// missed says which event a run waits for although it came, and no run of the
// workflow took it.
func (t *trial) missed(ctx context.Context, run *semel.Run) string {
	waits, err := t.store.Waits(ctx, run.ID)
	if err != nil {
		t.fail(err)
	}
	for _, w := range waits {
		came := slices.ContainsFunc(slices.Concat(t.sent, t.early), func(e semel.InboxEvent) bool { return e.Name == w.Event && e.Match == w.Match })
		if w.Kind == semel.WaitEvent && came && !t.taken(ctx, run.Workflow, w.Event+" "+w.Match) {
			return fmt.Sprintf("%s %q waits for event %s, which has come", run.Workflow, run.Key, w.Event)
		}
	}
	return ""
}

// taken reports whether a run of the workflow took an event.
func (t *trial) taken(ctx context.Context, workflow, what string) bool {
	for run, err := range t.store.ListRuns(ctx, semel.RunFilter{Workflow: workflow}) {
		if err != nil {
			t.fail(err)
			return false
		}
		h, err := t.store.History(ctx, run.ID)
		if err != nil {
			t.fail(err)
		}
		if slices.ContainsFunc(h.Steps, func(r semel.StepRecord) bool {
			return r.Kind == semel.StepEvent && r.What == what && r.Outcome == semel.StepCompleted
		}) {
			return true
		}
	}
	return false
}
