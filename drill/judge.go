package drill

import (
	"cmp"
	"context"
	"fmt"
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
	// Unknown: nobody can know, and a person is asked.
	Unknown Outcome = "unknown, waits for a person"
	// Twice: more happened than was asked for, or than was allowed.
	Twice Outcome = "twice"
	// Lost: the record says something else than the world, or nobody goes on
	// and nobody is told.
	Lost Outcome = "lost"
)

// outcomes are all, the worst last.
var outcomes = []Outcome{Once, Never, Unknown, Twice, Lost}

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
		f := t.about(i, &o, recorded, runs)
		if recorded {
			t.verdict.wanted[i] = t.column(&o)
		} else {
			t.verdict.wanted[i] = withoutItems(f.step)
		}
		t.found(t.verdict.wanted[i], f)
	}
	for _, f := range slices.Concat(t.world.faults, t.world.overwritten()) {
		outcome, column, step := Twice, runColumn, runColumn
		if o, ok := ops[f.of]; ok {
			column, step = t.column(&o), t.place(&o)
		} else {
			outcome = Lost
		}
		t.found(column, finding{f.of, step, outcome, f.why})
	}
	for i := range runs {
		if why := t.stranded(ctx, &runs[i], ops); why != "" {
			t.found(runColumn, finding{step: runColumn, outcome: Lost, why: why})
		}
	}
	return nil
}

func (t *trial) found(column string, f finding) {
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
	for i := range t.d.wanted {
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
func (t *trial) about(i intention, o *semel.Operation, recorded bool, runs []semel.Run) finding {
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
	case !recorded && completed(runs) && !t.schedule.has(EventEarly): // which may take another way
		f.outcome, f.why = Lost, "it never happened, and its run is completed"
	case !recorded:
		f.outcome = Never
	case t.late[i] && state == semel.Unknown && o.Incident == "":
		f.outcome, f.why = Lost, "the destination's late answer came, and the record still says that nobody knows"
	case o.Incident != "":
		f.outcome = Unknown
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
	return t.d.wanted[i]
}

// waitsForPerson reports whether the review queue shows an operation.
func (t *trial) waitsForPerson(o *semel.Operation) bool {
	return semel.Decide(o, o.Contract, t.now()).Kind == semel.MovePerson
}

func completed(runs []semel.Run) bool {
	return !slices.ContainsFunc(runs, func(r semel.Run) bool { return r.State != semel.RunCompleted })
}

// stranded says why a run must not stand where it does.
func (t *trial) stranded(ctx context.Context, run *semel.Run, ops map[intention]semel.Operation) string {
	switch run.State {
	case semel.RunCompleted:
		for _, o := range ops {
			if o.Run == run.ID && o.State != semel.Completed && o.State != semel.Failed {
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
			return ""
		}
		return fmt.Sprintf("%s %q is %s, and nobody goes on with it: %s", run.Workflow, run.Key, run.State, run.Reason)
	}
	return ""
}
