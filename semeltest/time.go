package semeltest

import (
	"context"
	"time"

	"github.com/semel-dev/semel"
)

const (
	// maxPasses is how often Await and Advance let something become due.
	maxPasses = 10_000
	// patience is how long, in real time, what is due at one moment may take.
	patience = time.Minute
)

// Now is the time in the world. It passes by itself, too, as real time does.
func (w *World) Now() time.Time {
	w.t.Helper()
	now, err := w.store.Now(context.Background())
	if err != nil {
		w.t.Fatalf("semeltest: %v", err)
	}
	return now
}

// Start makes a run durable, as Workflow.New asks for it. Nothing is executed
// yet. A run that has the key already is returned as it is.
func (w *World) Start(n semel.NewRun, err error) semel.Run {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("semeltest: %v", err)
		return semel.Run{}
	}
	if ref := (semel.WorkflowRef{Name: n.Workflow, Version: n.Version}); !w.has(ref) {
		w.t.Fatalf("semeltest: workflow %s is unknown in this world: give its definition to New", ref)
		return semel.Run{}
	}
	run, _, err := w.engine.Start(context.Background(), n)
	if err != nil {
		w.t.Fatalf("semeltest: %v", err)
	}
	return run
}

// Run is Start and Await:
//
//	run := w.Run(billing.New("", Invoice{ID: "4417"}))
func (w *World) Run(n semel.NewRun, err error) semel.Run {
	w.t.Helper()
	return w.Await(w.Start(n, err))
}

// Await lets time pass until the run has ended, is held or paused, or waits for
// what only the outside can bring: an event, an approval, a person. It returns
// the run as it is then.
func (w *World) Await(run semel.Run) semel.Run {
	w.t.Helper()
	for range maxPasses {
		due := w.pass()
		if run = w.load(run.ID); run.State.Ended() || run.State == semel.RunHeld || run.Paused || w.needsOutside(run.ID) {
			return run
		}
		next := w.next(due)
		if next.IsZero() {
			return run
		}
		w.moveTo(next)
	}
	w.t.Fatalf("semeltest: run %s of %s is %s (%s) after something became due %d times, at %s: use Advance", run.ID, run.Workflow, run.State, run.Reason, maxPasses, w.Now().Format(time.RFC3339))
	return run
}

// Advance lets time pass by d, and executes what becomes due meanwhile at its
// time. With 0 it executes what is due now.
func (w *World) Advance(d time.Duration) {
	w.t.Helper()
	until := w.Now().Add(d)
	for range maxPasses {
		next := w.next(w.pass())
		if next.IsZero() || next.After(until) {
			w.moveTo(until)
			w.pass()
			return
		}
		w.moveTo(next)
	}
	w.t.Fatalf("semeltest: something became due %d times until %s: advance in smaller steps", maxPasses, w.Now().Format(time.RFC3339))
}

// pass executes what is due and returns when the next run or schedule is.
func (w *World) pass() time.Time {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	due, err := w.worker.Pass(ctx)
	if err != nil {
		w.t.Fatalf("semeltest: execute what is due at %s: %v", w.Now().Format(time.RFC3339), err)
	}
	return due
}

// next is when something is due: a run or schedule, as the worker knows, or the
// recovery of an operation. Zero: nothing ever is.
func (w *World) next(due time.Time) time.Time {
	w.t.Helper()
	now := w.Now()
	for o, err := range w.store.List(context.Background(), semel.Filter{State: semel.Unknown}) {
		if err != nil {
			w.t.Fatalf("semeltest: %v", err)
			return due
		}
		if o.CheckAt.After(now) && (due.IsZero() || o.CheckAt.Before(due)) {
			due = o.CheckAt
		}
	}
	return due
}

// moveTo moves the clock on. Nothing is executed at that moment, so no lease is
// held that it could end.
func (w *World) moveTo(at time.Time) {
	w.t.Helper()
	if d := at.Sub(w.Now()); d > 0 {
		w.store.Shift(d)
	}
}

// needsOutside reports whether a run waits, and for nothing that time brings.
func (w *World) needsOutside(run semel.ID) bool {
	w.t.Helper()
	waits, err := w.store.Waits(context.Background(), run)
	if err != nil {
		w.t.Fatalf("semeltest: %v", err)
	}
	for _, wait := range waits {
		switch wait.Kind {
		case semel.WaitEvent, semel.WaitApproval, semel.WaitPerson:
		case semel.WaitOperation:
			if !wait.Person {
				return false
			}
		case semel.WaitRun:
			if child := w.load(wait.Target); child.State != semel.RunHeld && !w.needsOutside(child.ID) {
				return false
			}
		case semel.WaitTime:
			return false
		}
	}
	return len(waits) > 0
}
