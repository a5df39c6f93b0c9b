package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

type invoice struct {
	ID     string `json:"id"`
	Amount int64  `json:"amount"`
}

type charged struct {
	ID string `json:"id"`
}

// act is an action of a world.
func act(name string, w *world, c semel.Contract) semel.Action[invoice, charged] {
	return semel.Action[invoice, charged]{
		Name: name,
		Key:  func(i invoice) string { return i.ID + "-" + name },
		Send: semel.Effect[invoice, charged]{Connection: "payments", Contract: c, Destination: w},
	}
}

// rig is a worker over a store, with a clock that a test moves.
type rig struct {
	*testing.T
	store shifted
	runs  semel.Runs
	e     *engine.Engine
	w     *engine.Worker
}

func newRig(t *testing.T, store shifted, workflows ...semel.WorkflowDefinition) *rig {
	t.Helper()
	e := newEngine(t, store, engine.Options{Name: "worker"})
	w, err := engine.NewWorker(t.Context(), e, engine.WorkerOptions{Workflows: workflows, Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	return &rig{T: t, store: store, runs: store.(semel.Runs), e: e, w: w}
}

func (r *rig) start(n semel.NewRun, err error) semel.Run {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
	run, _, err := r.e.Start(r.Context(), n)
	if err != nil {
		r.Fatal(err)
	}
	return run
}

// pass executes what is due and returns the run as it is then.
func (r *rig) pass(id semel.ID) semel.Run {
	r.Helper()
	if _, err := r.w.Pass(r.Context()); err != nil {
		r.Fatal(err)
	}
	run, err := r.runs.LoadRun(r.Context(), id)
	if err != nil {
		r.Fatal(err)
	}
	return run
}

func (r *rig) want(run semel.Run, state semel.RunState, reason string) {
	r.Helper()
	if run.State != state || !strings.Contains(run.Reason, reason) {
		r.Fatalf("run is %s (%s), want %s (%s)", run.State, run.Reason, state, reason)
	}
}

func total(w *world) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, e := range w.effects {
		n += e
	}
	return n
}

func TestRunPerformsItsStepsOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		var w world
		charge, paid := act("charge", &w, semel.Contract{Protection: semel.Unprotected}), act("paid", &w, semel.Contract{Protection: semel.Unprotected})
		calls := 0
		bill := semel.Workflow[invoice]{
			Name: "bill", Key: func(i invoice) string { return i.ID },
			Func: func(ctx semel.Context, i invoice) error {
				calls++
				if _, err := semel.Do(ctx, charge, i); err != nil {
					return err
				}
				if err := semel.Sleep(ctx, "rest", time.Hour); err != nil {
					return err
				}
				_, err := semel.Do(ctx, paid, i)
				return errors.Join(err, ctx.Return("done"))
			},
			Actions: []semel.Definition{charge.Definition(), paid.Definition()},
		}
		store := open()
		r := newRig(t, store, bill.Definition())
		run := r.start(bill.New("", invoice{ID: "i-1", Amount: 5}))
		run = r.pass(run.ID)
		r.want(run, semel.RunWaiting, "rest")
		if total(&w) != 1 {
			t.Fatalf("%d effects before the sleep, want 1", total(&w))
		}
		run = r.pass(run.ID)
		r.want(run, semel.RunWaiting, "rest")
		r = newRig(t, store, bill.Definition()) // another worker
		store.Shift(time.Hour)
		run = r.pass(run.ID)
		r.want(run, semel.RunCompleted, "")
		if total(&w) != 2 || string(run.Result) != `"done"` || calls != 2 {
			t.Errorf("%d effects, result %s, %d calls; want 2, \"done\", 2", total(&w), run.Result, calls)
		}
		steps, err := r.runs.Steps(t.Context(), run.ID)
		if err != nil || len(steps) != 3 {
			t.Fatalf("steps %v, %v; want 3", steps, err)
		}
		again := r.start(bill.New("", invoice{ID: "i-1", Amount: 5}))
		if again.ID != run.ID {
			t.Errorf("a second start is run %s, want %s", again.ID, run.ID)
		}
		_, _, err = r.e.Start(t.Context(), must(bill.New("", invoice{ID: "i-1", Amount: 6})))
		var conflict *semel.RunConflictError
		if !errors.As(err, &conflict) || len(conflict.Fields) != 1 || conflict.Fields[0] != "input.amount" {
			t.Errorf("another input: %v, want a conflict of input.amount", err)
		}
	})
}

func must(n semel.NewRun, err error) semel.NewRun {
	if err != nil {
		panic(err)
	}
	return n
}

// silent answers nothing: the effect happened.
func silent(int, *semel.Send) (semel.Event, bool) {
	return semel.Event{Kind: semel.EvLost, Reason: "connection reset"}, true
}

func TestUnknownOutcomeSuspendsTheRunUntilItIsSettled(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := &world{answer: silent}
		charge := act("charge", w, semel.Contract{Protection: semel.Unprotected})
		var seen error
		bill := semel.Workflow[invoice]{
			Name: "bill", Key: func(i invoice) string { return i.ID }, Actions: []semel.Definition{charge.Definition()},
			Func: func(ctx semel.Context, i invoice) error {
				_, seen = semel.Do(ctx, charge, i)
				return seen
			},
		}
		r := newRig(t, open(), bill.Definition())
		run := r.pass(r.start(bill.New("", invoice{ID: "i-1"})).ID)
		r.want(run, semel.RunHeld, "outcome unknown")
		steps, err := r.runs.Steps(t.Context(), run.ID)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.e.Settle(t.Context(), steps[0].Operation, engine.Settlement{Happened: true, By: "ann", Reason: "seen in the bank", Result: &semel.Result{Body: []byte(`{"id":"ch_1"}`)}}); err != nil {
			t.Fatal(err)
		}
		r.want(r.pass(run.ID), semel.RunCompleted, "")
		if total(w) != 1 || seen != nil {
			t.Errorf("%d effects and error %v, want 1 and none", total(w), seen)
		}
	})
}

func TestRetriesAreForKnownFailures(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		var healthy atomic.Bool
		w := &world{answer: func(n int, _ *semel.Send) (semel.Event, bool) {
			if healthy.Load() {
				return confirmed(n), true
			}
			return semel.Event{Kind: semel.EvRefused, Reason: "closed for the night"}, false
		}}
		charge := act("charge", w, semel.Contract{Protection: semel.Unprotected})
		bill := semel.Workflow[invoice]{
			Name: "bill", Key: func(i invoice) string { return i.ID }, Actions: []semel.Definition{charge.Definition()},
			Func: func(ctx semel.Context, i invoice) error {
				_, err := semel.Retrying(ctx, charge, i, semel.Retry{Attempts: 3, Backoff: time.Minute})
				return err
			},
		}
		store := open()
		r := newRig(t, store, bill.Definition())
		run := r.pass(r.start(bill.New("", invoice{ID: "i-1"})).ID)
		r.want(run, semel.RunWaiting, "attempt 2 of 3")
		store.Shift(time.Minute + time.Second)
		r.want(r.pass(run.ID), semel.RunWaiting, "attempt 3 of 3")
		store.Shift(2*time.Minute + time.Second)
		run = r.pass(run.ID)
		r.want(run, semel.RunHeld, "after 3 attempts")
		if len(w.keys) != 3 {
			t.Fatalf("%d requests, want 3", len(w.keys))
		}
		healthy.Store(true)
		store.Shift(8 * time.Hour)
		if _, err := r.runs.ChangeRun(t.Context(), run.ID, semel.RunCommand{Verb: semel.RetryRun, By: "ann", Reason: "the bank is back"}); err != nil {
			t.Fatal(err)
		}
		r.want(r.pass(run.ID), semel.RunCompleted, "")
		if total(w) != 1 || len(w.keys) != 4 || w.keys[3] != w.keys[0] {
			t.Errorf("effects %v, keys %v; want one effect under one key", w.effects, w.keys)
		}
	})
}

func TestAFailureThatTheCodeDealtWithStays(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		refuse := &world{answer: func(int, *semel.Send) (semel.Event, bool) {
			return semel.Event{Kind: semel.EvRefused, Reason: "declined"}, false
		}}
		down := atomic.Bool{}
		down.Store(true)
		other := &world{}
		late := &world{answer: func(n int, _ *semel.Send) (semel.Event, bool) {
			if down.Load() {
				return semel.Event{Kind: semel.EvRefused, Reason: "down"}, false
			}
			return confirmed(n), true
		}}
		none := semel.Contract{Protection: semel.Unprotected}
		first, second, third := act("card", refuse, none), act("transfer", other, none), act("book", late, none)
		bill := semel.Workflow[invoice]{
			Name: "bill", Key: func(i invoice) string { return i.ID },
			Func: func(ctx semel.Context, i invoice) error {
				if _, err := semel.Do(ctx, first, i); err != nil {
					if _, err := semel.Do(ctx, second, i); err != nil {
						return err
					}
				}
				_, err := semel.Do(ctx, third, i)
				return err
			},
		}
		r := newRig(t, open(), bill.Definition())
		run := r.pass(r.start(bill.New("", invoice{ID: "i-1"})).ID)
		r.want(run, semel.RunFailed, "down")
		down.Store(false)
		refuse.answer = nil // it would be accepted now
		if _, err := r.runs.ChangeRun(t.Context(), run.ID, semel.RunCommand{Verb: semel.RetryRun, By: "ann", Reason: "try"}); err != nil {
			t.Fatal(err)
		}
		r.want(r.pass(run.ID), semel.RunCompleted, "")
		if total(refuse) != 0 || total(other) != 1 || total(late) != 1 {
			t.Errorf("card %d, transfer %d, book %d effects; want 0, 1, 1", total(refuse), total(other), total(late))
		}
	})
}

func TestEventsWakeRuns(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		type paid struct{ Amount int64 }
		var got paid
		ship := semel.Workflow[invoice]{
			Name: "ship", Key: func(i invoice) string { return i.ID },
			Func: func(ctx semel.Context, i invoice) (err error) {
				got, err = semel.Wait[paid](ctx, "paid", i.ID, time.Hour)
				return err
			},
		}
		store := open()
		r := newRig(t, store, ship.Definition())
		send := func(id, match string) {
			t.Helper()
			if _, err := r.runs.Send(t.Context(), semel.InboxEvent{ID: id, Name: "paid", Match: match, Data: []byte(`{"Amount":9007199254740993}`)}); err != nil {
				t.Fatal(err)
			}
		}
		send("e1", "i-1") // before the run
		run := r.pass(r.start(ship.New("", invoice{ID: "i-1"})).ID)
		r.want(run, semel.RunCompleted, "")
		if got.Amount != 9007199254740993 {
			t.Errorf("got %d", got.Amount)
		}
		run = r.pass(r.start(ship.New("", invoice{ID: "i-2"})).ID)
		r.want(run, semel.RunWaiting, "paid i-2")
		send("e2", "i-3")
		r.want(r.pass(run.ID), semel.RunWaiting, "paid i-2")
		send("e3", "i-2")
		r.want(r.pass(run.ID), semel.RunCompleted, "")
		run = r.pass(r.start(ship.New("", invoice{ID: "i-4"})).ID)
		store.Shift(time.Hour)
		run = r.pass(run.ID)
		r.want(run, semel.RunFailed, "did not come in time")
		send("e4", "i-4")
		r.want(r.pass(run.ID), semel.RunFailed, "did not come in time")
	})
}

func TestOneBadItemStopsNobody(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		bad := atomic.Bool{}
		bad.Store(true)
		w := &world{answer: func(n int, s *semel.Send) (semel.Event, bool) {
			if bad.Load() && strings.HasPrefix(string(s.Operation.Key), "r3") {
				return semel.Event{Kind: semel.EvRefused, Reason: "no such address"}, false
			}
			return confirmed(n), true
		}}
		mail := act("mail", w, semel.Contract{Protection: semel.Unprotected})
		weekly := semel.Workflow[[]invoice]{
			Name: "weekly",
			Func: func(ctx semel.Context, to []invoice) error {
				return semel.Each(ctx, "to", to, func(i invoice) string { return i.ID }, 2, func(ctx semel.Context, i invoice) error {
					_, err := semel.Do(ctx, mail, i)
					return err
				})
			},
		}
		r := newRig(t, open(), weekly.Definition())
		run := r.pass(r.start(weekly.New("w-1", []invoice{{ID: "r1"}, {ID: "r2"}, {ID: "r3"}, {ID: "r4"}, {ID: "r5"}})).ID)
		r.want(run, semel.RunFailed, "1 of 5 items of to failed")
		if total(w) != 4 || run.Done != 5 || run.Total != 5 {
			t.Errorf("%d effects, %d of %d done; want 4, 5 of 5", total(w), run.Done, run.Total)
		}
		bad.Store(false)
		if _, err := r.runs.ChangeRun(t.Context(), run.ID, semel.RunCommand{Verb: semel.RetryRun, By: "ann", Reason: "address mended"}); err != nil {
			t.Fatal(err)
		}
		r.want(r.pass(run.ID), semel.RunCompleted, "")
		if total(w) != 5 || len(w.keys) != 6 {
			t.Errorf("%d effects by %d requests, want 5 by 6", total(w), len(w.keys))
		}
	})
}

func TestApprovalCoversOneExactRequest(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		var w world
		pay := act("pay", &w, semel.Contract{Protection: semel.Unprotected})
		amount := int64(100)
		wf := semel.Workflow[invoice]{
			Name: "payout", Key: func(i invoice) string { return i.ID },
			Func: func(ctx semel.Context, i invoice) error {
				if err := semel.Approve(ctx, pay, i, semel.Ask{Of: "finance"}); err != nil {
					return err
				}
				i.Amount = amount
				_, err := semel.Do(ctx, pay, i)
				return err
			},
		}
		r := newRig(t, open(), wf.Definition())
		approve := func(run semel.Run, d semel.ApprovalState) {
			t.Helper()
			for a, err := range r.runs.Approvals(t.Context(), run.ID, semel.ApprovalPending) {
				if err != nil {
					t.Fatal(err)
				}
				if _, err := r.runs.Decide(t.Context(), a.ID, semel.Decision{State: d, By: "ann", Reason: "read", Digest: a.Digest}); err != nil {
					t.Fatal(err)
				}
			}
		}
		run := r.pass(r.start(wf.New("", invoice{ID: "p-1", Amount: 100})).ID)
		r.want(run, semel.RunWaiting, "approval")
		approve(run, semel.ApprovalGiven)
		r.want(r.pass(run.ID), semel.RunCompleted, "")
		run = r.pass(r.start(wf.New("", invoice{ID: "p-2", Amount: 100})).ID)
		amount = 1000 // changed after it was put to a person
		approve(run, semel.ApprovalGiven)
		r.want(r.pass(run.ID), semel.RunHeld, "stale")
		run = r.pass(r.start(wf.New("", invoice{ID: "p-3", Amount: 100})).ID)
		approve(run, semel.ApprovalRejected)
		r.want(r.pass(run.ID), semel.RunFailed, "not approved")
		if total(&w) != 1 {
			t.Errorf("%d effects, want 1", total(&w))
		}
	})
}

func TestChildRunsAreSharedByTheirKey(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		var w world
		ship := act("ship", &w, semel.Contract{Protection: semel.Unprotected})
		child := semel.Workflow[invoice]{Name: "ship", Key: func(i invoice) string { return i.ID }, Func: func(ctx semel.Context, i invoice) error {
			c, err := semel.Do(ctx, ship, i)
			return errors.Join(err, ctx.Return(c.ID+"!"))
		}}
		var got atomic.Value
		parent := semel.Workflow[invoice]{Name: "order", Func: func(ctx semel.Context, i invoice) error {
			end, err := semel.Child(ctx, child, "", i)
			var result string
			err = errors.Join(err, end.Into(&result))
			got.Store(result)
			return err
		}}
		r := newRig(t, open(), child.Definition(), parent.Definition())
		a := r.start(parent.New("a", invoice{ID: "o-1"}))
		b := r.start(parent.New("b", invoice{ID: "o-1"}))
		r.pass(a.ID)
		r.want(r.pass(a.ID), semel.RunCompleted, "")
		r.want(r.pass(b.ID), semel.RunCompleted, "")
		if result, _ := got.Load().(string); total(&w) != 1 || !strings.HasSuffix(result, "!") {
			t.Errorf("%d effects, result %q", total(&w), result)
		}
	})
}

func TestCancelStopsBeforeTheNextStep(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		var w world
		none := semel.Contract{Protection: semel.Unprotected}
		charge, mail := act("charge", &w, none), act("mail", &w, none)
		wf := semel.Workflow[invoice]{Name: "bill", Key: func(i invoice) string { return i.ID }, Func: func(ctx semel.Context, i invoice) error {
			if _, err := semel.Do(ctx, charge, i); err != nil {
				return err
			}
			if err := semel.Sleep(ctx, "rest", time.Hour); err != nil {
				return err
			}
			_, err := semel.Do(ctx, mail, i)
			return err
		}}
		store := open()
		r := newRig(t, store, wf.Definition())
		run := r.pass(r.start(wf.New("", invoice{ID: "i-1"})).ID)
		for range 2 {
			if _, err := r.runs.ChangeRun(t.Context(), run.ID, semel.RunCommand{Verb: semel.CancelRun, By: "ann", Reason: "wrong customer"}); err != nil {
				if _, ok := errors.AsType[*semel.RunStateError](err); !ok {
					t.Fatal(err)
				}
			}
		}
		store.Shift(2 * time.Hour)
		r.want(r.pass(run.ID), semel.RunCancelled, "")
		if total(&w) != 1 {
			t.Errorf("%d effects, want the charge alone", total(&w))
		}
	})
}

func TestWorkerHandsOverWhenItMustEnd(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		var w world
		begun := make(chan struct{})
		go1 := make(chan struct{})
		w.before = func(n int) {
			if n == 1 {
				close(begun)
				<-go1
			}
		}
		none := semel.Contract{Protection: semel.Unprotected}
		charge, mail := act("charge", &w, none), act("mail", &w, none)
		wf := semel.Workflow[invoice]{Name: "bill", Key: func(i invoice) string { return i.ID }, Func: func(ctx semel.Context, i invoice) error {
			if _, err := semel.Do(ctx, charge, i); err != nil {
				return err
			}
			_, err := semel.Do(ctx, mail, i)
			return err
		}}
		store := open()
		r := newRig(t, store, wf.Definition())
		run := r.start(wf.New("", invoice{ID: "i-1"}))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.w.Run(ctx) }()
		<-begun
		stop()
		time.Sleep(50 * time.Millisecond)
		close(go1)
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if total(&w) != 1 {
			t.Fatalf("%d effects, want the charge alone", total(&w))
		}
		run, err := r.runs.LoadRun(t.Context(), run.ID)
		if err != nil || run.State != semel.RunRunning || !run.LeaseUntil.IsZero() {
			t.Fatalf("run %+v, %v; want one that waits for a worker", run, err)
		}
		r2 := newRig(t, store, wf.Definition())
		run = r2.pass(run.ID)
		r2.want(run, semel.RunCompleted, "")
		if total(&w) != 2 || run.Crashes != 0 {
			t.Errorf("%d effects, %d crashes; want 2 and none", total(&w), run.Crashes)
		}
	})
}

func TestItemsMayHaveSlashesInTheirKeys(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		var w world
		charge := act("charge", &w, semel.Contract{Protection: semel.Unprotected})
		wf := semel.Workflow[[]invoice]{Name: "bill", Func: func(ctx semel.Context, all []invoice) error {
			return semel.Each(ctx, "of", all, func(i invoice) string { return i.ID }, 2, func(ctx semel.Context, i invoice) error {
				if _, err := semel.Do(ctx, charge, i); err != nil {
					return err
				}
				if err := semel.Sleep(ctx, "rest", time.Hour); err != nil {
					return err
				}
				_, err := semel.Do(ctx.Named("again"), charge, i)
				return err
			})
		}}
		store := open()
		r := newRig(t, store, wf.Definition())
		run := r.pass(r.start(wf.New("k", []invoice{{ID: "INV/2027/1"}, {ID: "INV/2027/2"}})).ID)
		r.want(run, semel.RunWaiting, "rest")
		store.Shift(time.Hour)
		r.want(r.pass(run.ID), semel.RunCompleted, "")
		if total(&w) != 2 {
			t.Errorf("%d effects, want 2", total(&w))
		}
	})
}

func TestARunStartedBeforeItsDefinitionWasKnownKeepsTheFirst(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		var w world
		charge := act("charge", &w, semel.Contract{Protection: semel.Unprotected})
		define := func(digest string) semel.WorkflowDefinition {
			d := semel.Workflow[invoice]{Name: "bill", Func: func(ctx semel.Context, i invoice) error {
				if err := semel.Sleep(ctx, "rest", time.Hour); err != nil {
					return err
				}
				_, err := semel.Do(ctx, charge, i)
				return err
			}}.Definition()
			d.Digest, d.Text = digest, []byte(digest)
			return d
		}
		store := open()
		r := newRig(t, store, define("one"))
		run := r.pass(r.start(semel.NewRun{Workflow: "bill", Version: 1, Key: "k", Input: []byte(`{"id":"1"}`)}, nil).ID)
		r.want(run, semel.RunWaiting, "rest")
		store.Shift(time.Hour)
		r = newRig(t, store, define("two"))
		r.want(r.pass(run.ID), semel.RunHeld, "the definition of bill@1 changed")
		if _, err := r.runs.ChangeRun(t.Context(), run.ID, semel.RunCommand{Verb: semel.RetryRun, By: "ann", Reason: "put back"}); err != nil {
			t.Fatal(err)
		}
		r = newRig(t, store, define("one"))
		r.want(r.pass(run.ID), semel.RunCompleted, "")
		if total(&w) != 1 {
			t.Errorf("%d effects, want 1", total(&w))
		}
	})
}

func TestAChildThatAnotherRunWaitsForGoesOn(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		var w world
		ship := act("ship", &w, semel.Contract{Protection: semel.Unprotected})
		child := semel.Workflow[invoice]{Name: "ship", Key: func(i invoice) string { return i.ID }, Func: func(ctx semel.Context, i invoice) error {
			if err := semel.Sleep(ctx, "rest", time.Hour); err != nil {
				return err
			}
			_, err := semel.Do(ctx, ship, i)
			return err
		}}
		parent := semel.Workflow[invoice]{Name: "order", Func: func(ctx semel.Context, i invoice) error {
			_, err := semel.Child(ctx, child, "", i)
			return err
		}}
		store := open()
		r := newRig(t, store, child.Definition(), parent.Definition())
		a, b := r.start(parent.New("a", invoice{ID: "o"})), r.start(parent.New("b", invoice{ID: "o"}))
		r.pass(a.ID)
		started, err := r.runs.FindRun(t.Context(), "ship", "o")
		if err != nil {
			t.Fatal(err)
		}
		other := b
		if started.Parent == b.ID {
			other = a
		}
		if _, err := r.runs.ChangeRun(t.Context(), started.Parent, semel.RunCommand{Verb: semel.CancelRun, By: "ann", Reason: "changed my mind"}); err != nil {
			t.Fatal(err)
		}
		r.want(r.pass(started.Parent), semel.RunCancelled, "")
		store.Shift(time.Hour)
		r.want(r.pass(other.ID), semel.RunCompleted, "")
		if total(&w) != 1 {
			t.Errorf("%d effects, want 1", total(&w))
		}
	})
}

func TestAnApprovalThatEndedIsAskedForAgain(t *testing.T) {
	for _, protection := range []semel.Protection{semel.Unprotected, semel.Commutes} {
		t.Run(string(protection), func(t *testing.T) { testAnApprovalThatEnded(t, protection) })
	}
}

func testAnApprovalThatEnded(t *testing.T, protection semel.Protection) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		var w world
		pay := act("pay", &w, semel.Contract{Protection: protection})
		wf := semel.Workflow[invoice]{Name: "payout", Key: func(i invoice) string { return i.ID }, Func: func(ctx semel.Context, i invoice) error {
			if err := semel.Approve(ctx, pay, i, semel.Ask{Valid: time.Hour}); err != nil {
				return err
			}
			if err := semel.Sleep(ctx, "later", 2*time.Hour); err != nil {
				return err
			}
			_, err := semel.Do(ctx, pay, i)
			return err
		}}
		short := wf
		short.Name, short.Func = "prompt", func(ctx semel.Context, i invoice) error {
			if err := semel.Approve(ctx, pay, i, semel.Ask{Valid: time.Hour, Timeout: time.Hour}); err != nil {
				return err
			}
			_, err := semel.Do(ctx, pay, i)
			return err
		}
		store := open()
		r := newRig(t, store, wf.Definition(), short.Definition())
		approve := func(run semel.Run) error {
			for a, err := range r.runs.Approvals(t.Context(), run.ID, semel.ApprovalPending) {
				if err != nil {
					return err
				}
				if _, err := r.runs.Decide(t.Context(), a.ID, semel.Decision{State: semel.ApprovalGiven, By: "ann", Digest: a.Digest}); err != nil {
					return err
				}
			}
			return nil
		}
		run := r.pass(r.start(short.New("", invoice{ID: "late"})).ID)
		store.Shift(3 * time.Hour)
		if err := approve(run); err == nil || !strings.Contains(err.Error(), "its time is over") {
			t.Errorf("a late approval: error %v", err)
		}
		r.want(r.pass(run.ID), semel.RunFailed, "did not come in time")

		run = r.pass(r.start(wf.New("", invoice{ID: "p"})).ID)
		if err := approve(run); err != nil {
			t.Fatal(err)
		}
		r.want(r.pass(run.ID), semel.RunWaiting, "later")
		store.Shift(2 * time.Hour)
		r.want(r.pass(run.ID), semel.RunHeld, "no approval covers")
		if total(&w) != 0 {
			t.Fatalf("%d effects under an approval that had ended", total(&w))
		}
		if _, err := r.runs.ChangeRun(t.Context(), run.ID, semel.RunCommand{Verb: semel.RetryRun, By: "ann", Reason: "asks again"}); err != nil {
			t.Fatal(err)
		}
		run = r.pass(run.ID)
		r.want(run, semel.RunWaiting, "approval")
		if err := approve(run); err != nil {
			t.Fatal(err)
		}
		r.want(r.pass(run.ID), semel.RunCompleted, "")
		if total(&w) != 1 {
			t.Errorf("%d effects, want 1", total(&w))
		}
	})
}

func TestASecondRunTriesAgainWhatHadFailed(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		var healthy atomic.Bool
		w := &world{answer: func(n int, _ *semel.Send) (semel.Event, bool) {
			if healthy.Load() {
				return confirmed(n), true
			}
			return semel.Event{Kind: semel.EvRefused, Reason: "expired card"}, false
		}}
		charge := act("charge", w, semel.Contract{Protection: semel.Unprotected})
		wf := semel.Workflow[invoice]{Name: "bill", Func: func(ctx semel.Context, i invoice) error {
			_, err := semel.Do(ctx, charge, i)
			return err
		}}
		r := newRig(t, open(), wf.Definition())
		r.want(r.pass(r.start(wf.New("k1", invoice{ID: "i"})).ID), semel.RunFailed, "expired card")
		healthy.Store(true)
		r.want(r.pass(r.start(wf.New("k2", invoice{ID: "i"})).ID), semel.RunCompleted, "")
		if total(w) != 1 || len(w.keys) != 2 || w.keys[0] != w.keys[1] {
			t.Errorf("effects %v, keys %v; want one, under one key", w.effects, w.keys)
		}
	})
}

type angry struct{}

func (*angry) Error() string { panic("no words") }

func TestCodeThatCannotBeExecutedSafelyHoldsItsRun(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		var w world
		tag := act("tag", &w, semel.Contract{Protection: semel.Commutes})
		for name, test := range map[string]struct {
			code func(semel.Context, invoice) error
			says string
		}{
			"an error that panics": {func(semel.Context, invoice) error { return (*angry)(nil) }, "panicked"},
			"a nil of an error":    {func(semel.Context, invoice) error { var e *semel.FailedError; return e }, "panicked"},
			"one name for two sleeps": {func(ctx semel.Context, _ invoice) error {
				return errors.Join(semel.Sleep(ctx, "s", 0), semel.Sleep(ctx, "s", 0))
			}, "asked for twice"},
			"one name for two tags": {func(ctx semel.Context, i invoice) error {
				if _, err := semel.Do(ctx, tag, i); err != nil {
					return err
				}
				i.Amount++
				_, err := semel.Do(ctx, tag, i)
				return err
			}, "another request"},
			"a step that nobody waits for": {func(ctx semel.Context, i invoice) error {
				began := make(chan struct{})
				slow := &world{before: func(int) {
					close(began)
					time.Sleep(200 * time.Millisecond)
				}}
				go func() { _, _ = semel.Do(ctx, act("slow", slow, semel.Contract{Protection: semel.Unprotected}), i) }()
				<-began
				return nil
			}, "wrong use of a Context"},
			"words that no database takes": {func(semel.Context, invoice) error { panic("bad \x00 news") }, "bad"},
		} {
			t.Run(name, func(t *testing.T) {
				wf := semel.Workflow[invoice]{Name: "w", Func: test.code}
				store := open()
				e := newEngine(t, store, engine.Options{})
				worker, err := engine.NewWorker(t.Context(), e, engine.WorkerOptions{Workflows: []semel.WorkflowDefinition{wf.Definition()}})
				if err != nil {
					t.Fatal(err)
				}
				r := &rig{T: t, store: store, runs: store.(semel.Runs), e: e, w: worker}
				r.want(r.pass(r.start(wf.New(semel.Key(name), invoice{ID: "i"})).ID), semel.RunHeld, test.says)
			})
		}
	})
}
