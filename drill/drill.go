package drill

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/semel-dev/semel"
)

// Options of a drill. Zero values are useful.
type Options struct {
	// Input of the run, encoded as JSON; nil means {}.
	Input any
	// Key of the run; empty means "drill".
	Key semel.Key
	// Children are workflows that the run starts.
	Children []semel.WorkflowDefinition
	// Trigger of the run; the zero Trigger is a person.
	Trigger semel.Trigger
	// Answers are what the simulated destinations answer, encoded as JSON, by
	// the path of the step, "bill[4417]/charge" before "bill/charge", or by
	// action. Steps without one get {"id": "ACTION-N"}.
	Answers map[string]any
	// Events are what events bring, encoded as JSON, by the path of the wait or
	// by name. The drill sends those that the run waits for; nil keeps one from
	// coming, and one that is not named brings {}.
	Events map[string]any
	// Pairs is how many schedules with two faults are tried, beside all with
	// one; 0 means 200, less than 0 none.
	Pairs int
	// Seed chooses the pairs.
	Seed uint64
	// Adverse also breaks the contracts' promises, one at a time.
	Adverse bool
	// Naive executes the workflow as an engine without operations would, at
	// least once, in the same world: the same table tells what that comes to.
	Naive bool
	// Replay tries one schedule alone, and tells its story.
	Replay Schedule
	// Open opens an empty store for each schedule; nil means SQLite files in a
	// temporary directory.
	Open func(context.Context) (Store, error)
	// Progress, if not nil, hears after each schedule how many of them are done;
	// one call at a time.
	Progress func(done, total int)
}

// drill is a workflow that is broken, and how.
type drill struct {
	options   Options
	workflows []semel.WorkflowDefinition
	start     []semel.NewRun
	open      func(context.Context, func() time.Time) (Store, error)
	seed      uint64
	retention time.Duration

	mu          sync.Mutex
	done, total int // schedules

	// Of the execution that nothing breaks.
	wanted map[intention]string
	events []semel.InboxEvent
}

// most is how many schedules with one fault a drill tries.
const most = 10_000

// DefaultPairs is how many schedules with two faults are tried.
const DefaultPairs = 200

// retention is how long the drill keeps records before they expire: longer than
// any window that is known.
const retention = 400 * 24 * time.Hour

// Run breaks a workflow in every way and says what became of each effect. Its
// destinations are simulated from their contracts: nothing is sent. The error
// says that the drill itself could not work, for example because the workflow
// fails even where nothing is broken; what went wrong in the world is in the
// Verdict.
func Run(ctx context.Context, def semel.WorkflowDefinition, o Options) (*Verdict, error) {
	d, remove, err := prepare(def, o)
	if err != nil {
		return nil, err
	}
	defer remove()
	v := &Verdict{Workflow: def.Name, Seed: o.Seed, Naive: o.Naive, drill: d}
	whole, err := d.unbroken(ctx)
	if err != nil {
		return nil, err
	}
	v.begin(whole)
	if o.Replay != nil {
		if len(d.meant([]Schedule{o.Replay})) == 0 {
			return nil, &ScheduleError{o.Replay, "a fault of these means nothing to an engine without operations"}
		}
		t, err := d.try(ctx, o.Replay)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.Replay, err)
		}
		if !t.broke() {
			return nil, &ScheduleError{o.Replay, fmt.Sprintf("nothing breaks: there are %d calls, and this fault fits none that it is placed at", len(t.calls))}
		}
		v.add(t)
		v.Replay, v.When = t.story, o.Replay.words()
		return v, nil
	}
	singles := d.meant(d.singles(whole))
	if len(singles) > most {
		return nil, fmt.Errorf("an unbroken execution makes %d calls, which are %d ways to break one: give its lists two items, more show nothing else", len(whole.calls), len(singles))
	}
	schedules := singles
	if o.Adverse {
		schedules = slices.Concat(schedules, d.meant(adverse(whole)))
	}
	pairs := o.Pairs
	if pairs == 0 {
		pairs = DefaultPairs
	}
	schedules = slices.Concat(schedules, d.pairs(whole, singles, pairs))
	if err := d.all(ctx, v, schedules); err != nil {
		return nil, err
	}
	v.shrink()
	return v, nil
}

func prepare(def semel.WorkflowDefinition, o Options) (d *drill, remove func(), err error) {
	input, err := json.Marshal(o.Input)
	if o.Input == nil {
		input = []byte("{}")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("encode the input: %w", err)
	}
	for name, answer := range o.Answers {
		if _, err := json.Marshal(answer); err != nil {
			return nil, nil, fmt.Errorf("encode the answer of %s: %w", name, err)
		}
	}
	for name, data := range o.Events {
		if _, err := json.Marshal(data); err != nil {
			return nil, nil, fmt.Errorf("encode the data of event %s: %w", name, err)
		}
	}
	key, trigger := o.Key, o.Trigger
	if key == "" {
		key = "drill"
	}
	if trigger.Kind == "" {
		trigger = semel.Trigger{Kind: semel.ByPerson, By: "drill"}
	}
	d = &drill{
		options: o, workflows: append([]semel.WorkflowDefinition{def}, o.Children...), seed: o.Seed, retention: retention,
		start: []semel.NewRun{{Workflow: def.Name, Version: def.Version, Definition: def.Digest, Key: key, Input: input, Trigger: trigger}},
	}
	remove = func() {}
	if o.Open != nil {
		d.open = func(ctx context.Context, _ func() time.Time) (Store, error) { return o.Open(ctx) }
	} else {
		d.open, remove, err = embedded()
	}
	return d, remove, err
}

// unbroken executes the workflow with nothing broken: what it wants.
func (d *drill) unbroken(ctx context.Context) (*trial, error) {
	t, err := d.try(ctx, nil)
	if err != nil {
		return t, fmt.Errorf("with nothing broken: %w", err)
	}
	d.wanted, d.events = map[intention]string{}, t.sent
	for i := range t.verdict.wanted {
		d.wanted[i] = t.verdict.wanted[i]
	}
	for _, e := range t.world.effects {
		d.wanted[e.intention] = e.step
	}
	if len(t.verdict.findings) > 0 {
		f := t.verdict.findings[0]
		return t, &UnbrokenError{Workflow: d.workflows[0].Name, Step: f.step, Why: f.why, Story: t.story}
	}
	if t.verdict.stopped != "" {
		return t, &UnbrokenError{Workflow: d.workflows[0].Name, Step: runColumn, Why: t.plain(t.verdict.stopped), Story: t.story}
	}
	if len(t.world.effects) == 0 {
		return t, &NothingError{Workflow: d.workflows[0].Name, Story: t.story}
	}
	return t, nil
}

// broke reports whether a fault of the schedule met a call that it fits.
func (t *trial) broke() bool {
	return slices.ContainsFunc(t.schedule, func(p Placed) bool {
		k, _ := kindOf(p.Fault)
		return k.fits == nil || p.Call <= len(t.calls) && (p.Fault == SlowCode || k.fits(&t.calls[p.Call-1]))
	})
}

// NothingError says that a workflow had no effect even where nothing was
// broken: its input or the answers keep it from its steps.
type NothingError struct {
	Workflow string
	Story    []string
}

func (e *NothingError) Error() string {
	return fmt.Sprintf("%s does nothing with this input and these answers, so there is nothing to break", e.Workflow)
}

// UnbrokenError says that something is wrong with a workflow where nothing is
// broken, for example that its run waits for what nobody brings.
type UnbrokenError struct {
	Workflow, Step, Why string
	Story               []string
}

func (e *UnbrokenError) Error() string {
	return fmt.Sprintf("with nothing broken, %s: %s", e.Step, e.Why)
}

// ScheduleError says why a schedule cannot be replayed.
type ScheduleError struct {
	Schedule Schedule
	Problem  string
}

func (e *ScheduleError) Error() string { return fmt.Sprintf("%s: %s", e.Schedule, e.Problem) }

// singles are all schedules with one fault.
func (d *drill) singles(whole *trial) []Schedule {
	var out []Schedule
	for _, k := range kinds {
		switch {
		case k.fits != nil:
			for i := range whole.calls {
				if k.fits(&whole.calls[i]) {
					out = append(out, Schedule{{k.fault, i + 1}})
				}
			}
		case k.fault != EventEarly || len(d.events) > 0:
			out = append(out, Schedule{{k.fault, 0}})
		}
	}
	return out
}

// adverse are the schedules that break a promise of a contract.
func adverse(whole *trial) []Schedule {
	var out []Schedule
	for _, p := range promises {
		for i := range whole.calls {
			c := &whole.calls[i]
			if !p.given(c) {
				continue
			}
			for _, f := range p.with {
				if k, _ := kindOf(f); k.fits(c) {
					out = append(out, Schedule{{p.fault, 0}, {f, i + 1}})
				}
			}
		}
	}
	return out
}

// pairs are schedules with two faults, chosen by the seed.
func (d *drill) pairs(whole *trial, singles []Schedule, n int) []Schedule {
	r := rand.New(rand.NewPCG(d.seed, 1))
	seen := map[string]bool{}
	var out []Schedule
	for range 20 * max(n, 0) {
		a, b := singles[r.IntN(len(singles))][0], singles[r.IntN(len(singles))][0]
		if a.Call == b.Call {
			continue
		}
		if a.Call > b.Call && b.Call > 0 || a.Call == 0 {
			a, b = b, a
		}
		if b.Call > a.Call && a.Call > 0 { // the calls after a fault are other ones
			b.Call += r.IntN(len(whole.calls)/3 + 1)
		}
		s := Schedule{a, b}
		if seen[s.String()] {
			continue
		}
		seen[s.String()] = true
		if out = append(out, s); len(out) == n {
			break
		}
	}
	return out
}

// all tries schedules, several at a time, and adds them to the verdict in their
// order.
func (d *drill) all(ctx context.Context, v *Verdict, schedules []Schedule) error {
	d.total = len(schedules)
	trials, errs := make([]*trial, len(schedules)), make([]error, len(schedules))
	next := make(chan int)
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for i := range next {
				if trials[i], errs[i] = d.try(ctx, schedules[i]); errs[i] != nil {
					errs[i] = fmt.Errorf("%s: %w", schedules[i], errs[i])
				}
				trials[i].forget()
				d.progress()
			}
		})
	}
	for i := range schedules {
		if ctx.Err() == nil {
			next <- i
		}
	}
	close(next)
	group.Wait()
	if err := cmp.Or(append(errs, ctx.Err())...); err != nil { // the first says enough
		return err
	}
	for _, t := range trials {
		v.add(t)
	}
	return nil
}

func (d *drill) progress() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done++
	if d.options.Progress != nil {
		d.options.Progress(d.done, d.total)
	}
}

// forget frees what only the trial itself needed.
func (t *trial) forget() {
	t.mu.Lock() // dead workers may still look at the clock
	defer t.mu.Unlock()
	t.calls = nil
	if len(t.verdict.findings) == 0 {
		t.story = nil
	}
}

// result is what a destination answers.
func (d *drill) result(step string, o *semel.Operation, n int) *semel.Result {
	r := &semel.Result{Status: 200, MediaType: "application/json", Reference: fmt.Sprintf("%s-%d", o.Request.Action, n)}
	var answer any = map[string]any{"id": r.Reference}
	for _, name := range []string{step, withoutItems(step), o.Request.Action} {
		if given, ok := d.options.Answers[name]; ok {
			answer = given
			break
		}
	}
	r.Body, _ = json.Marshal(answer) // it was encoded before
	r.Size = int64(len(r.Body))
	return r
}
