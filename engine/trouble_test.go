package engine_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

func (r *rig) change(id semel.ID, v semel.RunVerb) {
	r.Helper()
	if _, err := r.runs.ChangeRun(r.Context(), id, semel.RunCommand{Verb: v, By: "ann"}); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) load(id semel.ID) semel.Run {
	r.Helper()
	run, err := r.runs.LoadRun(r.Context(), id)
	if err != nil {
		r.Fatal(err)
	}
	return run
}

// soon is for a pass that might never end.
func (r *rig) soon(id semel.ID) semel.Run {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	if _, err := r.w.Pass(ctx); err != nil {
		r.Error(err)
	}
	return r.load(id)
}

// A run that is retried has its failed child tried again once, not for ever.
func TestFailedChildIsRetriedOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := &world{answer: func(int, *semel.Send) (semel.Event, bool) {
			return semel.Event{Kind: semel.EvRefused, Reason: "declined"}, false
		}}
		ship := act("ship", w, semel.Contract{Protection: semel.Unprotected})
		child := semel.Workflow[invoice]{Name: "ship", Key: func(i invoice) string { return i.ID }, Func: func(ctx semel.Context, i invoice) error {
			_, err := semel.Do(ctx, ship, i)
			return err
		}}
		parent := semel.Workflow[invoice]{Name: "order", Func: func(ctx semel.Context, i invoice) error {
			_, err := semel.Child(ctx, child, "", i)
			return err
		}}
		r := newRig(t, open(), child.Definition(), parent.Definition())
		run := r.pass(r.start(parent.New("a", invoice{ID: "o-1"})).ID)
		for retries := 1; retries <= 2; retries++ {
			r.change(run.ID, semel.RetryRun)
			r.want(r.soon(run.ID), semel.RunFailed, "declined")
			if _, _, n := w.total(); n != 1+retries {
				t.Errorf("%d requests after %d retries, want one for each", n, retries)
			}
		}
	})
}

// A run that is cancelled while it waits for its child ends with it.
func TestCancelReachesChildren(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		rest := func(ctx semel.Context, _ invoice) error { return semel.Sleep(ctx, "rest", time.Hour) }
		child := semel.Workflow[invoice]{Name: "ship", Key: func(i invoice) string { return i.ID }, Func: rest}
		parent := semel.Workflow[invoice]{Name: "order", Func: func(ctx semel.Context, i invoice) error {
			_, err := semel.Child(ctx, child, "", i)
			return err
		}}
		r := newRig(t, open(), child.Definition(), parent.Definition())
		mine := r.pass(r.start(parent.New("a", invoice{ID: "o-1"})).ID)
		others := r.start(child.New("", invoice{ID: "o-2"}))
		shared := r.pass(r.start(parent.New("b", invoice{ID: "o-2"})).ID)
		r.change(mine.ID, semel.CancelRun)
		r.change(shared.ID, semel.CancelRun)
		r.want(r.soon(mine.ID), semel.RunCancelled, "")
		r.want(r.load(shared.ID), semel.RunCancelled, "")
		r.want(r.load(others.ID), semel.RunWaiting, "rest")
		own, err := r.runs.FindRun(t.Context(), "ship", "o-1")
		if err != nil {
			t.Fatal(err)
		}
		r.want(own, semel.RunCancelled, "")
	})
}

// Two items that want different runs under one key: one gets it, the other
// needs a person, and nobody else is disturbed.
func TestConflictOfChildrenIsOneItemsTrouble(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		child := semel.Workflow[invoice]{Name: "ship", Func: func(semel.Context, invoice) error { return nil }}
		parent := semel.Workflow[[]invoice]{Name: "bill", Func: func(ctx semel.Context, all []invoice) error {
			return semel.Each(ctx, "of", all, func(i invoice) string { return i.ID }, 3, func(ctx semel.Context, i invoice) error {
				if i.ID == "sleeper" {
					return semel.Sleep(ctx, "rest", time.Hour)
				}
				_, err := semel.Child(ctx, child, "one", i)
				return err
			})
		}}
		store := open()
		r := newRig(t, store, child.Definition(), parent.Definition())
		run := r.soon(r.start(parent.New("k", []invoice{{ID: "sleeper"}, {ID: "a"}, {ID: "b"}})).ID)
		r.want(run, semel.RunWaiting, "")
		store.Shift(time.Hour)
		run = r.soon(run.ID)
		r.want(run, semel.RunHeld, "another input")
		if run.Done != 2 || run.Total != 3 {
			t.Errorf("%d of %d done, want 2 of 3", run.Done, run.Total)
		}
	})
}

// flaky is a store whose commits of runs fail where a test says so.
type flaky struct {
	shifted
	semel.Runs
	fail func(semel.RunCommit) bool
}

func (f *flaky) CommitRun(ctx context.Context, c semel.RunCommit) semel.RunCommitted {
	if f.fail == nil || !f.fail(c) {
		return f.Runs.CommitRun(ctx, c)
	}
	out := semel.RunCommitted{RunErr: semel.ErrUnavailable}
	if c.Claim != nil {
		out.ClaimErr = semel.ErrUnavailable
	}
	if c.Outcome != nil {
		out.OutcomeErr = semel.ErrUnavailable
	}
	return out
}

func (f *flaky) Commit(ctx context.Context, c semel.Change) (semel.Operation, error) {
	if f.fail != nil && f.fail(semel.RunCommit{Outcome: &c}) {
		return semel.Operation{}, semel.ErrUnavailable
	}
	return f.shifted.Commit(ctx, c)
}

// A run does not complete over an outcome that could be neither recorded nor
// kept: its effect is unknown.
func TestRunDoesNotEndOverALostOutcome(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		var w world
		charge := act("charge", &w, semel.Contract{Protection: semel.Unprotected})
		wf := semel.Workflow[invoice]{Name: "bill", Func: func(ctx semel.Context, i invoice) error {
			_, err := semel.Do(ctx, charge, i)
			return err
		}}
		inner := open()
		store := &flaky{shifted: inner, Runs: inner.(semel.Runs)}
		store.fail = func(c semel.RunCommit) bool { return c.Outcome != nil && c.Outcome.Event.Kind == semel.EvConfirmed }
		e := newEngine(t, store, engine.Options{Patience: 100 * time.Millisecond})
		worker, err := engine.NewWorker(t.Context(), e, engine.WorkerOptions{Workflows: []semel.WorkflowDefinition{wf.Definition()}})
		if err != nil {
			t.Fatal(err)
		}
		r := &rig{T: t, store: store, runs: store, e: e, w: worker}
		run := r.pass(r.start(wf.New("k", invoice{ID: "i"})).ID)
		if run.State.Ended() {
			t.Fatalf("run is %s, and the outcome of its effect is not on record", run.State)
		}
		store.Shift(time.Minute)
		r.want(r.pass(run.ID), semel.RunHeld, "unknown")
	})
}

// The outcome is on its way to the store while the code goes on. When it is
// lost there, the code's next effect is not begun, and the run does not end.
func TestNothingFollowsAnOutcomeThatIsLostMeanwhile(t *testing.T) {
	for _, then := range []string{"end", "effect"} {
		t.Run(then, func(t *testing.T) {
			eachStore(t, func(t *testing.T, open func() shifted) {
				var first, second world
				charge := act("charge", &first, semel.Contract{Protection: semel.Unprotected})
				ship := act("ship", &second, semel.Contract{Protection: semel.Unprotected})
				wf := semel.Workflow[invoice]{Name: "bill", Func: func(ctx semel.Context, i invoice) error {
					if _, err := semel.Do(ctx, charge, i); err != nil {
						return err
					}
					time.Sleep(30 * time.Millisecond) // the outcome's commit is under way by now
					if then == "end" {
						return nil
					}
					_, err := semel.Do(ctx, ship, i)
					return err
				}}
				inner := open()
				store := &flaky{shifted: inner, Runs: inner.(semel.Runs)}
				store.fail = func(c semel.RunCommit) bool { return c.Outcome != nil && c.Outcome.Event.Kind == semel.EvConfirmed }
				e := newEngine(t, store, engine.Options{Patience: 300 * time.Millisecond})
				worker, err := engine.NewWorker(t.Context(), e, engine.WorkerOptions{Workflows: []semel.WorkflowDefinition{wf.Definition()}})
				if err != nil {
					t.Fatal(err)
				}
				r := &rig{T: t, store: store, runs: store, e: e, w: worker}
				run := r.pass(r.start(wf.New("k", invoice{ID: "i"})).ID)
				if _, _, n := second.total(); run.State.Ended() || n > 0 {
					t.Fatalf("run is %s after %d requests of the second step, and the outcome of the first is not on record", run.State, n)
				}
				store.Shift(time.Minute)
				r.want(r.pass(run.ID), semel.RunHeld, "unknown")
			})
		})
	}
}

// A sleep that is over stays over when the store is away for a moment then.
func TestSleepIsNotBegunAnewAfterTrouble(t *testing.T) {
	for _, where := range []string{"run", "item"} {
		t.Run(where, func(t *testing.T) {
			eachStore(t, func(t *testing.T, open func() shifted) {
				var w world
				charge := act("charge", &w, semel.Contract{Protection: semel.Unprotected})
				body := func(ctx semel.Context, i invoice) error {
					if err := semel.Sleep(ctx, "rest", time.Hour); err != nil {
						return err
					}
					_, err := semel.Do(ctx, charge, i)
					return err
				}
				wf := semel.Workflow[invoice]{Name: "bill", Func: func(ctx semel.Context, i invoice) error {
					if where == "run" {
						return body(ctx, i)
					}
					return semel.Each(ctx, "of", []invoice{i}, func(i invoice) string { return i.ID }, 2, body)
				}}
				inner := open()
				store := &flaky{shifted: inner, Runs: inner.(semel.Runs)}
				r := newRig(t, store, wf.Definition())
				run := r.pass(r.start(wf.New("k", invoice{ID: "i"})).ID)
				r.want(run, semel.RunWaiting, "sleeps")
				store.Shift(time.Hour)
				store.fail = func(c semel.RunCommit) bool { return c.Next == nil }
				r.want(r.pass(run.ID), semel.RunRunning, "")
				store.fail = nil
				store.Shift(5 * time.Second)
				r.want(r.pass(run.ID), semel.RunCompleted, "")
			})
		})
	}
}

// An item that kills workers is left to a person again after a retry.
func TestDeadlyItemIsIsolatedAfterARetry(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		var wg sync.WaitGroup
		defer wg.Wait()
		entered, release := make(chan struct{}), make(chan struct{})
		defer close(release)
		wf := semel.Workflow[[]invoice]{Name: "bill", Func: func(ctx semel.Context, all []invoice) error {
			return semel.Each(ctx, "of", all, func(i invoice) string { return i.ID }, 1, func(_ semel.Context, i invoice) error {
				if i.ID == "deadly" {
					select {
					case entered <- struct{}{}:
						<-release
					case <-release:
					}
				}
				return nil
			})
		}}
		store := open()
		r := newRig(t, store, wf.Definition())
		run := r.start(wf.New("k", []invoice{{ID: "good"}, {ID: "deadly"}, {ID: "fine"}}))
		die := func() {
			for deaths := 0; ; deaths++ {
				worker, err := engine.NewWorker(t.Context(), newEngine(t, store, engine.Options{}), engine.WorkerOptions{Workflows: []semel.WorkflowDefinition{wf.Definition()}})
				if err != nil {
					t.Fatal(err)
				}
				done := make(chan struct{})
				wg.Go(func() {
					defer close(done)
					_, _ = worker.Pass(context.WithoutCancel(t.Context()))
				})
				select {
				case <-entered:
					store.Shift(time.Minute) // as if the worker were dead
				case <-done:
					return
				}
				if deaths == 8 {
					t.Fatalf("%d workers died, run %+v", deaths, r.load(run.ID))
				}
			}
		}
		for range 2 {
			die()
			r.want(r.load(run.ID), semel.RunHeld, "of[deadly]")
			if run := r.load(run.ID); run.Done != 2 || run.Total != 3 {
				t.Errorf("%d of %d done, want 2 of 3", run.Done, run.Total)
			}
			r.change(run.ID, semel.RetryRun)
		}
	})
}

// A pause that is over before the execution is leaves no item behind.
func TestPauseThatIsOverSoonLosesNoItem(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		var w world
		sending, answer, paused, stopped := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
		w.answer = func(n int, _ *semel.Send) (semel.Event, bool) {
			if n == 1 {
				close(sending)
				<-answer
			}
			return confirmed(n), true
		}
		charge := act("charge", &w, semel.Contract{Protection: semel.Unprotected})
		var once sync.Once
		wf := semel.Workflow[[]invoice]{Name: "bill", Func: func(ctx semel.Context, all []invoice) error {
			return semel.Each(ctx, "of", all, func(i invoice) string { return i.ID }, 3, func(ctx semel.Context, i invoice) error {
				if i.ID == "waits" {
					_, err := semel.Wait[string](ctx, "paid", "x", 0)
					return err
				}
				if i.ID == "quick" {
					<-paused
					defer once.Do(func() { close(stopped) })
				}
				_, err := semel.Do(ctx, charge, i)
				return err
			})
		}}
		store := open()
		e := newEngine(t, store, engine.Options{Lease: 1500 * time.Millisecond})
		worker, err := engine.NewWorker(t.Context(), e, engine.WorkerOptions{Workflows: []semel.WorkflowDefinition{wf.Definition()}})
		if err != nil {
			t.Fatal(err)
		}
		r := &rig{T: t, store: store, runs: store.(semel.Runs), e: e, w: worker}
		run := r.start(wf.New("k", []invoice{{ID: "waits"}, {ID: "slow"}, {ID: "quick"}}))
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = r.w.Pass(context.WithoutCancel(t.Context()))
		}()
		<-sending
		r.change(run.ID, semel.PauseRun)
		time.Sleep(1200 * time.Millisecond) // its worker has heard of it
		close(paused)
		<-stopped
		r.change(run.ID, semel.ResumeRun)
		time.Sleep(1200 * time.Millisecond)
		close(answer)
		<-done
		if n := total(&w); n != 2 {
			t.Errorf("%d effects, want 2; run %+v", n, r.load(run.ID))
		}
	})
}

// Starting a run again under its own ID executes it once.
func TestStartTwiceUnderOneIDExecutesOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		var calls atomic.Int32
		release := make(chan struct{})
		wf := semel.Workflow[invoice]{Name: "bill", Func: func(semel.Context, invoice) error {
			calls.Add(1)
			<-release
			return nil
		}}
		r := newRig(t, open(), wf.Definition())
		n, err := wf.New("k", invoice{ID: "i"})
		if err != nil {
			t.Fatal(err)
		}
		n.ID = semel.NewID(time.Now(), [10]byte{1})
		for i := range 2 {
			if _, existing, err := r.w.Start(t.Context(), n); err != nil || existing != (i == 1) {
				t.Errorf("start %d: existing %v, %v", i+1, existing, err)
			}
		}
		time.Sleep(50 * time.Millisecond)
		close(release)
		if run, err := r.e.Await(t.Context(), n.ID); err != nil || run.State != semel.RunCompleted || calls.Load() != 1 {
			t.Errorf("%d executions, run %s, %v; want one", calls.Load(), run.State, err)
		}
	})
}

// A worker that got back a run which it had lost keeps it, whatever becomes of
// the execution from before.
func TestRunThatCameBackIsKept(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		executing, first, second := make(chan struct{}), make(chan struct{}), make(chan struct{})
		var calls atomic.Int32
		wf := semel.Workflow[invoice]{Name: "bill", Func: func(semel.Context, invoice) error {
			n := calls.Add(1)
			executing <- struct{}{}
			if n == 1 {
				<-first
			} else {
				<-second
			}
			return nil
		}}
		store := open()
		e := newEngine(t, store, engine.Options{Lease: 2 * time.Second})
		w, err := engine.NewWorker(t.Context(), e, engine.WorkerOptions{Workflows: []semel.WorkflowDefinition{wf.Definition()}})
		if err != nil {
			t.Fatal(err)
		}
		r := &rig{T: t, store: store, runs: store.(semel.Runs), e: e, w: w}
		run := r.start(wf.New("k", invoice{ID: "i"}))
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		defer wg.Wait()
		defer stop()
		wg.Go(func() { _ = w.Run(ctx) })
		<-executing
		store.Shift(time.Minute) // the lease is over
		<-executing
		close(first)
		time.Sleep(3 * time.Second)
		if n := calls.Load(); n != 2 {
			t.Errorf("%d executions, want 2", n)
		}
		if run := r.load(run.ID); run.Attempt != 2 {
			t.Errorf("attempt %d, want 2", run.Attempt)
		}
		close(second)
	})
}

// definitions are two of one workflow and version.
func definitions[In any](wf semel.Workflow[In]) (first, changed semel.WorkflowDefinition) {
	first, changed = wf.Definition(), wf.Definition()
	first.Digest, changed.Digest = "first", "changed"
	return first, changed
}

// M18: a held run with an effect that nobody knows about is not cancelled
// before that is settled, whatever it is held for.
func TestCancelOfAHeldRunWaitsForItsEffect(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := &world{answer: func(int, *semel.Send) (semel.Event, bool) { return lost("timeout"), true }}
		charge := act("charge", w, semel.Contract{Protection: semel.Unprotected})
		wf := semel.Workflow[invoice]{Name: "bill", Func: func(ctx semel.Context, i invoice) error {
			_, err := semel.Do(ctx, charge, i)
			return err
		}}
		store := open()
		first, changed := definitions(wf)
		n, err := wf.New("k", invoice{ID: "i"})
		n.Definition = first.Digest
		r := newRig(t, store, first)
		run := r.pass(r.start(n, err).ID)
		r = newRig(t, store, changed)
		store.Shift(time.Hour)
		r.want(r.pass(run.ID), semel.RunHeld, "changed")
		r.change(run.ID, semel.CancelRun)
		r.want(r.pass(run.ID), semel.RunWaiting, "asked to stop")
		steps, err := r.runs.Steps(t.Context(), run.ID)
		if err != nil || len(steps) != 1 {
			t.Fatal(steps, err)
		}
		if _, err := r.e.Settle(t.Context(), steps[0].Operation, engine.Settlement{Happened: true, By: "ann", Reason: "seen"}); err != nil {
			t.Fatal(err)
		}
		r.want(r.pass(run.ID), semel.RunCancelled, "")
	})
}

// M5: what was done stays in sight while a run is held before its list.
func TestProgressStaysWhereTheListIsNotReached(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		wf := semel.Workflow[[]invoice]{Name: "bill", Func: func(ctx semel.Context, all []invoice) error {
			return semel.Each(ctx, "of", all, func(i invoice) string { return i.ID }, 3, func(ctx semel.Context, i invoice) error {
				if i.ID == "b" {
					return semel.Sleep(ctx, "rest", time.Hour)
				}
				return nil
			})
		}}
		store := open()
		first, changed := definitions(wf)
		n, err := wf.New("k", []invoice{{ID: "a"}, {ID: "b"}})
		n.Definition = first.Digest
		r := newRig(t, store, first)
		run := r.pass(r.start(n, err).ID)
		store.Shift(time.Hour)
		run = newRig(t, store, changed).pass(run.ID)
		if run.State != semel.RunHeld || run.Done != 1 || run.Total != 2 {
			t.Errorf("run is %s with %d of %d done, want held with 1 of 2", run.State, run.Done, run.Total)
		}
	})
}
