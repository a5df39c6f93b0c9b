package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

// Law 12: a step that may have happened is no failure because its request cannot
// be made any more.
func TestStepOnRecordIsNoFailureOfChangedCode(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := &world{answer: func(int, *semel.Send) (semel.Event, bool) { return lost("timeout"), true }}
		var other world
		wire := act("wire", &other, semel.Contract{Protection: semel.Unprotected})
		define := func(c semel.Contract) semel.WorkflowDefinition {
			charge := act("charge", w, c)
			return semel.Workflow[invoice]{Name: "bill", Func: func(ctx semel.Context, i invoice) error {
				_, err := semel.Do(ctx, charge, i)
				if err != nil {
					_, err = semel.Do(ctx, wire, i)
				}
				return err
			}}.Definition()
		}
		store := open()
		r := newRig(t, store, define(semel.Contract{Protection: semel.Unprotected}))
		run := r.pass(r.start(semel.NewRun{Workflow: "bill", Version: 1, Key: "k", Input: []byte(`{"id":"i"}`)}, nil).ID)
		r.want(run, semel.RunHeld, "unknown")
		r = newRig(t, store, define(semel.Contract{Protection: semel.Keyed})) // without a window
		r.change(run.ID, semel.RetryRun)
		r.want(r.pass(run.ID), semel.RunHeld, "changed code")
		if n := total(&other); n != 0 {
			t.Errorf("%d wires beside a charge that may have happened", n)
		}
	})
}

// M18: what was asked to stop is not tried again by a Retry or by another run,
// which would ask the store for ever.
func TestFailureThatWasAskedToStopNeedsAPerson(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		var e *engine.Engine
		w := &world{}
		w.answer = func(n int, s *semel.Send) (semel.Event, bool) {
			if n == 1 {
				if _, err := e.Cancel(t.Context(), s.Operation.ID, "ann", "wrong amount"); err != nil {
					t.Error(err)
				}
				return semel.Event{Kind: semel.EvRefused, Reason: "declined"}, false
			}
			return confirmed(n), true
		}
		charge := act("charge", w, semel.Contract{Protection: semel.Unprotected})
		wf := semel.Workflow[invoice]{Name: "bill", Func: func(ctx semel.Context, i invoice) error {
			_, err := semel.Retrying(ctx, charge, i, semel.Retry{Attempts: 3})
			return err
		}}
		store := open()
		r := newRig(t, store, wf.Definition())
		e = r.e
		run := r.pass(r.start(wf.New("a", invoice{ID: "i"})).ID)
		r.want(run, semel.RunHeld, "was asked to stop")
		r.want(r.pass(r.start(wf.New("b", invoice{ID: "i"})).ID), semel.RunHeld, "was asked to stop")
		if _, _, n := w.total(); n != 1 {
			t.Fatalf("%d requests, want 1", n)
		}
		o, err := store.Load(t.Context(), semel.ActionScope("default", "payments", "charge"), "i-charge")
		if err != nil {
			t.Fatal(err)
		}
		person := newEngine(t, store, engine.Options{Resolve: resolve(w, semel.Contract{Protection: semel.Unprotected})})
		if out, err := person.Retry(t.Context(), o.ID, "ann"); err != nil || out.Status != semel.StatusCompleted {
			t.Fatalf("%s, %v", out.Status, err)
		}
		r.change(run.ID, semel.RetryRun)
		r.want(r.pass(run.ID), semel.RunCompleted, "")
	})
}

// M25: a run that meets a failure whose record has expired is held, and does
// not ask the store for ever.
func TestFailureThatExpiredHoldsTheNextRun(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := &world{answer: func(int, *semel.Send) (semel.Event, bool) {
			return semel.Event{Kind: semel.EvRefused, Reason: "declined"}, false
		}}
		charge := act("charge", w, semel.Contract{Protection: semel.Unprotected})
		wf := semel.Workflow[invoice]{Name: "bill", Func: func(ctx semel.Context, i invoice) error {
			_, err := semel.Do(ctx, charge, i)
			return err
		}}
		store := open()
		r := newRig(t, store, wf.Definition())
		r.want(r.pass(r.start(wf.New("a", invoice{ID: "i"})).ID), semel.RunFailed, "declined")
		n, err := store.(interface {
			Expire(ctx context.Context, before time.Time, limit int) (int, error)
		}).Expire(t.Context(), time.Now().Add(time.Hour), 10)
		if err != nil || n != 1 {
			t.Fatalf("%d operations expired, %v; want 1", n, err)
		}
		r.want(r.pass(r.start(wf.New("b", invoice{ID: "i"})).ID), semel.RunHeld, "has expired")
	})
}

// losing is a store that loses the outcome which comes with a claim.
type losing struct {
	shifted
	semel.Runs
	lost atomic.Int32
}

func (l *losing) CommitRun(ctx context.Context, c semel.RunCommit) semel.RunCommitted {
	if c.Outcome == nil || c.Claim == nil {
		return l.Runs.CommitRun(ctx, c)
	}
	c.Outcome = nil
	out := l.Runs.CommitRun(ctx, c)
	out.OutcomeErr = semel.ErrUnavailable
	return out
}

func (l *losing) Commit(ctx context.Context, c semel.Change) (semel.Operation, error) {
	if c.Event.Kind == semel.EvConfirmed {
		l.lost.Add(1)
		return semel.Operation{}, semel.ErrUnavailable
	}
	return l.shifted.Commit(ctx, c)
}

// Nothing is sent after an outcome that is on record nowhere, though the claim
// that came with it is.
func TestNothingIsSentUnderAClaimWhoseOutcomeBeforeIsLost(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		var first, second world
		charge := act("charge", &first, semel.Contract{Protection: semel.Unprotected})
		ship := act("ship", &second, semel.Contract{Protection: semel.Unprotected})
		wf := semel.Workflow[invoice]{Name: "bill", Func: func(ctx semel.Context, i invoice) error {
			if _, err := semel.Do(ctx, charge, i); err != nil {
				return err
			}
			_, err := semel.Do(ctx, ship, i)
			return err
		}}
		inner := open()
		store := &losing{shifted: inner, Runs: inner.(semel.Runs)}
		e := newEngine(t, store, engine.Options{Patience: 100 * time.Millisecond, Linger: time.Hour})
		worker, err := engine.NewWorker(t.Context(), e, engine.WorkerOptions{Workflows: []semel.WorkflowDefinition{wf.Definition()}})
		if err != nil {
			t.Fatal(err)
		}
		r := &rig{T: t, store: store, runs: store, e: e, w: worker}
		run := r.pass(r.start(wf.New("k", invoice{ID: "i"})).ID)
		if store.lost.Load() == 0 {
			t.Fatal("the outcome did not come with a claim")
		}
		if n := total(&second); n != 0 {
			t.Errorf("%d shipments after a charge that is not on record", n)
		}
		store.Shift(time.Minute)
		r.want(r.pass(run.ID), semel.RunHeld, "unknown")
	})
}
