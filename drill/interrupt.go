package drill

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

// Subject is what Interrupt breaks.
type Subject struct {
	// World makes a fresh world for one execution: the store, empty, and
	// destinations that count effects.
	World func() (World, error)
}

// World is one execution's surroundings.
type World struct {
	// Open gives another handle on the store, as another process has it. The
	// drill closes it.
	Open func() (Store, error)
	// Workflows are what workers execute.
	Workflows []semel.WorkflowDefinition
	// Resolve finds destinations that the workflows' Actions do not name.
	Resolve engine.Resolver
	// Start are the runs that somebody asks for, again if nobody heard.
	Start []semel.NewRun
	// Outside does what people and other systems do: it sees the runs after
	// each pass, and may send events and decide. It may be called again for
	// what it has done. Nil does nothing.
	Outside func(ctx context.Context, s Store) error
	// Effects counts what happened, by intention.
	Effects func() (map[string]int, error)
	// Want is what must have happened once in the end.
	Want []string
	// Close releases everything.
	Close func()
}

// Report is what Interrupt found.
type Report struct {
	// Points are the interruption points that were tried.
	Points []Point
	// Calls names the calls of the execution without a death.
	Calls []string
	// Findings are stories of what went wrong; empty is good.
	Findings []string
	// Unknown counts executions that ended with an honest unknown outcome.
	Unknown int
}

// enough is how many passes an execution may take, far more than it needs.
const enough = 200

// Interrupt executes the subject once unharmed, and then once for each side of
// each call of a port that this took. The error says that the drill itself
// could not work.
func Interrupt(ctx context.Context, s Subject) (Report, error) {
	var r Report
	whole := &death{}
	if err := r.try(ctx, s, whole); err != nil {
		return r, fmt.Errorf("without a death: %w", err)
	}
	r.Calls = whole.calls
	for i, name := range whole.calls {
		for _, after := range []bool{false, true} {
			p := Point{Call: i + 1, Name: name, After: after}
			r.Points = append(r.Points, p)
			if err := r.try(ctx, s, &death{at: p}); err != nil {
				return r, fmt.Errorf("%s: %w", p, err)
			}
		}
	}
	return r, nil
}

// try executes the subject with one death and judges the world.
func (r *Report) try(ctx context.Context, s Subject, d *death) error {
	w, err := s.World()
	if err != nil {
		return err
	}
	defer w.Close()
	ahead, err := w.live(ctx, d)
	if err != nil {
		return err
	}
	store, err := w.Open()
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	store.Shift(ahead)
	if d.isDead() {
		store.Shift(time.Minute) // its leases lapse
		if _, err := w.work(ctx, store, &death{}); err != nil {
			return err
		}
	}
	return r.judge(ctx, &w, store, d.at)
}

// live lets the process that may die work until nothing is left to do, or it is
// dead. It returns how far it moved the clock.
func (w *World) live(ctx context.Context, d *death) (ahead time.Duration, err error) {
	store, err := w.Open()
	if err != nil {
		return 0, err
	}
	defer func() { _ = store.Close() }()
	ahead, err = w.work(ctx, &mortalStore{store, d}, d)
	if d.isDead() {
		err = nil
	}
	return ahead, err
}

// work starts the runs and executes them, moving the clock to the next thing
// that is due, and returns how far that was.
func (w *World) work(ctx context.Context, store Store, d *death) (ahead time.Duration, err error) {
	quiet := slog.New(slog.DiscardHandler)
	e, err := engine.New(ctx, store, engine.Options{Name: "worker", Patience: time.Millisecond, Resolve: d.resolver(w.Resolve), Logger: quiet})
	if err != nil {
		return ahead, err
	}
	defer func() { err = errors.Join(err, e.Close(ctx)) }()
	definitions := make([]semel.WorkflowDefinition, len(w.Workflows))
	for i, def := range w.Workflows {
		definitions[i] = mortal(def, d)
	}
	worker, err := engine.NewWorker(ctx, e, engine.WorkerOptions{Workflows: definitions, Strict: true})
	if err != nil {
		return ahead, err
	}
	for _, n := range w.Start {
		if _, _, err := e.Start(ctx, n); err != nil {
			return ahead, err
		}
	}
	for range enough {
		next, err := worker.Pass(ctx)
		if err != nil || d.isDead() {
			return ahead, err
		}
		if w.Outside != nil {
			if err := w.Outside(ctx, store); err != nil {
				return ahead, err
			}
		}
		over, err := w.over(ctx, store)
		if err != nil || over {
			return ahead, err
		}
		now, err := store.Now(ctx)
		if err != nil {
			return ahead, err
		}
		if next.After(now) {
			ahead += next.Sub(now)
			store.Shift(next.Sub(now))
		}
	}
	return ahead, fmt.Errorf("the runs had not ended after %d passes: %s", enough, standing(ctx, store))
}

// standing says where the runs stand.
func standing(ctx context.Context, store Store) string {
	var out strings.Builder
	for run, err := range store.ListRuns(ctx, semel.RunFilter{}) {
		if err != nil {
			return err.Error()
		}
		out.WriteString(fmt.Sprintf("; %s is %s: %s, attempt %d, due %v", run.Workflow, run.State, run.Reason, run.Attempt, run.DueAt))
		waits, err := store.Waits(ctx, run.ID)
		if err != nil {
			return err.Error()
		}
		for _, w := range waits {
			out.WriteString(fmt.Sprintf(", %s until %v", w.Reason, w.Until))
		}
	}
	return out.String()
}

// over reports whether every run has ended or needs a person, or waits for a
// run that does.
func (w *World) over(ctx context.Context, store Store) (bool, error) {
	for run, err := range store.ListRuns(ctx, semel.RunFilter{}) {
		if err != nil {
			return false, err
		}
		if !run.State.Ended() && run.State != semel.RunHeld && !run.DueAt.IsZero() {
			return false, nil
		}
	}
	return true, nil
}

// judge counts effects in the world and compares them with what the store says.
func (r *Report) judge(ctx context.Context, w *World, store Store, at Point) error {
	effects, err := w.Effects()
	if err != nil {
		return err
	}
	unknown := false
	for o, err := range store.List(ctx, semel.Filter{}) {
		if err != nil {
			return err
		}
		unknown = unknown || o.State == semel.Unknown
	}
	if unknown {
		r.Unknown++
	}
	for intention, n := range effects {
		if n > 1 {
			r.Findings = append(r.Findings, fmt.Sprintf("%s: %s happened %d times", at, intention, n))
		}
	}
	for _, intention := range w.Want {
		if effects[intention] == 0 && !unknown {
			r.Findings = append(r.Findings, fmt.Sprintf("%s: %s never happened, and nobody is told", at, intention))
		}
	}
	if unknown {
		return nil // an honest end: a person is asked
	}
	for run, err := range store.ListRuns(ctx, semel.RunFilter{}) {
		if err != nil {
			return err
		}
		if run.State != semel.RunCompleted {
			r.Findings = append(r.Findings, fmt.Sprintf("%s: run %s %q is %s: %s", at, run.Workflow, run.Key, run.State, run.Reason))
		}
	}
	return nil
}
