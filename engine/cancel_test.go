package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

// M18: after a run was cancelled nothing is sent for it again, though its
// request may never have arrived. Where another run waits for the same
// operation, that one has its way.
func TestCancelledRunHasNothingSentAgain(t *testing.T) {
	for _, shared := range []string{"", "and goes on", "and is cancelled, too"} {
		eachStore(t, func(t *testing.T, open func() shifted) {
			w := world{answer: func(n int, _ *semel.Send) (semel.Event, bool) {
				if n == 1 {
					return semel.Event{Kind: semel.EvLost, Reason: "timeout", Closed: true}, false
				}
				return semel.Event{Kind: semel.EvConfirmed}, true
			}}
			charge := act("charge", &w, semel.Contract{Protection: semel.Keyed, Window: 24 * time.Hour, Backoff: time.Minute})
			wf := semel.Workflow[invoice]{Name: "bill", Actions: []semel.Definition{charge.Definition()}, Func: func(ctx semel.Context, i invoice) error {
				_, err := semel.Do(ctx, charge, i)
				return err
			}}
			store := open()
			r := newRig(t, store, wf.Definition())
			run := r.pass(r.start(wf.New("a", invoice{ID: "i"})).ID)
			r.want(run, semel.RunWaiting, "unknown")
			other := run
			if shared != "" {
				other = r.pass(r.start(wf.New("b", invoice{ID: "i"})).ID)
				r.want(other, semel.RunWaiting, "unknown")
			}
			r.change(run.ID, semel.CancelRun)
			r.want(r.pass(run.ID), semel.RunWaiting, "asked to stop")
			if shared == "and is cancelled, too" {
				r.change(other.ID, semel.CancelRun)
				r.want(r.pass(other.ID), semel.RunCancelled, "")
			}
			for range 3 {
				store.Shift(time.Hour)
				run = r.pass(run.ID)
			}
			_, _, requests := w.total()
			if shared == "and goes on" {
				r.want(run, semel.RunCancelled, "")
				if requests != 2 || total(&w) != 1 {
					t.Errorf("%d requests, %d effects: another run still wants it, so it is sent again", requests, total(&w))
				}
				return
			}
			r.want(run, semel.RunWaiting, "asked to stop")
			if requests != 1 {
				t.Errorf("%d requests, want the first alone", requests)
			}
			o, err := store.Load(t.Context(), semel.ActionScope("default", "payments", "charge"), "i-charge")
			if err != nil {
				t.Fatal(err)
			}
			if move := semel.Decide(&o, o.Contract, time.Now().Add(time.Hour)); move.Kind != semel.MovePerson {
				t.Errorf("next is %s, want a person", move.Kind)
			}
			if _, err := r.e.Settle(t.Context(), o.ID, engine.Settlement{Reason: "not in the statement", By: "ann", Force: true}); err != nil {
				t.Fatal(err)
			}
			r.want(r.pass(run.ID), semel.RunCancelled, "")
		})
	}
}

// Law 12: what happened is no error that code may deal with, though its answer
// cannot be read: "if it failed, pay another way" would pay twice.
func TestUnreadableAnswerIsNoErrorForCode(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := world{answer: func(int, *semel.Send) (semel.Event, bool) {
			return semel.Event{Kind: semel.EvConfirmed, Result: &semel.Result{Body: []byte(`"another schema"`)}}, true
		}}
		var other world
		charge, wire := act("charge", &w, semel.Contract{Protection: semel.Unprotected}), act("wire", &other, semel.Contract{Protection: semel.Unprotected})
		pay := func(ctx semel.Context, i invoice) error {
			_, err := semel.Do(ctx, charge, i)
			if err != nil {
				_, err = semel.Do(ctx, wire, i)
			}
			return err
		}
		one := semel.Workflow[invoice]{Name: "one", Func: pay}
		all := semel.Workflow[invoice]{Name: "all", Func: func(ctx semel.Context, i invoice) error {
			return semel.Each(ctx, "of", []invoice{i}, func(i invoice) string { return i.ID }, 1, pay)
		}}
		r := newRig(t, open(), one.Definition(), all.Definition())
		r.want(r.pass(r.start(one.New("k", invoice{ID: "i"})).ID), semel.RunHeld, "happened, but its answer cannot be read")
		r.want(r.pass(r.start(all.New("k", invoice{ID: "j"})).ID), semel.RunHeld, "happened, but its answer cannot be read")
		if total(&w) != 2 || total(&other) != 0 {
			t.Errorf("%d charges and %d wires, want 2 and none", total(&w), total(&other))
		}
	})
}

// A late answer to an effect that needs no record is not kept: nobody could
// ever take it in.
func TestLateAnswerWithoutOperationIsDropped(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		var late func(semel.Event)
		w := world{answer: func(n int, s *semel.Send) (semel.Event, bool) {
			if n == 1 {
				late = s.Late
				return semel.Event{Kind: semel.EvLost, Reason: "timeout"}, true
			}
			return semel.Event{Kind: semel.EvConfirmed}, true
		}}
		tag := act("tag", &w, semel.Contract{Protection: semel.Commutes})
		wf := semel.Workflow[invoice]{Name: "bill", Func: func(ctx semel.Context, i invoice) error {
			_, err := semel.Do(ctx, tag, i)
			return err
		}}
		store, kept := open(), &shelf{}
		e := newEngine(t, store, engine.Options{Late: true, Spool: kept, Patience: 50 * time.Millisecond})
		worker, err := engine.NewWorker(t.Context(), e, engine.WorkerOptions{Workflows: []semel.WorkflowDefinition{wf.Definition()}})
		if err != nil {
			t.Fatal(err)
		}
		r := &rig{T: t, store: store, runs: store.(semel.Runs), e: e, w: worker}
		run := r.pass(r.start(wf.New("k", invoice{ID: "i"})).ID)
		late(semel.Event{Kind: semel.EvConfirmed})
		if len(kept.all) > 0 {
			t.Errorf("the spool keeps %v", kept.all[0].Event.Kind)
		}
		store.Shift(time.Minute)
		r.want(r.pass(run.ID), semel.RunCompleted, "")
	})
}

// A claim that could not be confirmed sent nothing: its step is made again, and
// the run does not fail.
func TestStepWhoseClaimIsInDoubtIsMadeAgain(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		var w world
		charge := act("charge", &w, semel.Contract{Protection: semel.Unprotected})
		wf := semel.Workflow[invoice]{Name: "bill", Func: func(ctx semel.Context, i invoice) error {
			_, err := semel.Do(ctx, charge, i)
			return err
		}}
		inner, kept := open(), &shelf{}
		doubt := true
		store := &doubtful{shifted: inner, Runs: inner.(semel.Runs), doubt: &doubt}
		e := newEngine(t, store, engine.Options{Spool: kept, Patience: 50 * time.Millisecond})
		worker, err := engine.NewWorker(t.Context(), e, engine.WorkerOptions{Workflows: []semel.WorkflowDefinition{wf.Definition()}})
		if err != nil {
			t.Fatal(err)
		}
		r := &rig{T: t, store: store, runs: store, e: e, w: worker}
		run := r.pass(r.start(wf.New("k", invoice{ID: "i"})).ID)
		doubt = false
		if len(kept.all) != 1 {
			t.Fatalf("%d pieces of evidence are kept, want that nothing was sent", len(kept.all))
		}
		store.Shift(time.Minute)
		r.e = newEngine(t, store, engine.Options{Spool: kept})
		if r.w, err = engine.NewWorker(t.Context(), r.e, engine.WorkerOptions{Workflows: []semel.WorkflowDefinition{wf.Definition()}}); err != nil {
			t.Fatal(err)
		}
		r.pass(run.ID)
		store.Shift(time.Minute)
		r.want(r.pass(run.ID), semel.RunCompleted, "")
		if total(&w) != 1 {
			t.Errorf("%d effects, want 1", total(&w))
		}
	})
}

// doubtful is a store that writes claims of runs and does not say so.
type doubtful struct {
	shifted
	semel.Runs
	doubt *bool
}

func (d *doubtful) CommitRun(ctx context.Context, c semel.RunCommit) semel.RunCommitted {
	out := d.Runs.CommitRun(ctx, c)
	if *d.doubt && c.Claim != nil {
		return semel.RunCommitted{ClaimErr: semel.ErrUnconfirmed, RunErr: semel.ErrUnconfirmed}
	}
	return out
}
