package engine_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

// watched is a store that keeps runs, and in which a test has a say.
type watched struct {
	shifted
	semel.Runs
	commit func(c semel.RunCommit, commit func() semel.RunCommitted) semel.RunCommitted
	renew  func(runs []semel.Run, err error) ([]semel.Run, error)
}

func watch(s shifted) *watched { return &watched{shifted: s, Runs: s.(semel.Runs)} }

func (s *watched) CommitRun(ctx context.Context, c semel.RunCommit) semel.RunCommitted {
	commit := func() semel.RunCommitted { return s.Runs.CommitRun(ctx, c) }
	if s.commit == nil {
		return commit()
	}
	return s.commit(c, commit)
}

func (s *watched) RenewRuns(ctx context.Context, held []semel.RunFence, lease time.Duration) ([]semel.Run, error) {
	runs, err := s.Runs.RenewRuns(ctx, held, lease)
	if s.renew == nil {
		return runs, err
	}
	return s.renew(runs, err)
}

// TestAStepBeginsAfterItsClaim: its effect begins when the store has
// acknowledged the claim, and everything that the run recorded before; where
// the claim fails, nothing begins.
func TestAStepBeginsAfterItsClaim(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		var w world
		charge := act("charge", &w, semel.Contract{Protection: semel.Unprotected})
		bill := semel.Workflow[invoice]{Name: "bill", Key: func(i invoice) string { return i.ID }, Func: func(ctx semel.Context, i invoice) error {
			if _, err := semel.Random(ctx, "luck"); err != nil {
				return err
			}
			_, err := semel.Do(ctx, charge, i)
			return err
		}}
		var acknowledged, down atomic.Bool
		store := watch(open())
		store.commit = func(c semel.RunCommit, commit func() semel.RunCommitted) semel.RunCommitted {
			if c.Claim == nil {
				return commit()
			}
			if down.Load() {
				return semel.RunCommitted{ClaimErr: semel.ErrUnavailable, RunErr: semel.ErrUnavailable}
			}
			time.Sleep(50 * time.Millisecond) // a slow disk
			out := commit()
			acknowledged.Store(true)
			return out
		}
		r := newRig(t, store, bill.Definition())
		run := r.start(bill.New("", invoice{ID: "i-1"}))
		w.before = func(int) {
			steps, err := r.runs.Steps(t.Context(), run.ID)
			if err != nil || len(steps) != 2 || steps[0].Path != "luck" || !acknowledged.Load() {
				t.Errorf("the effect begins while the store has steps %v, %v, acknowledged: %t", steps, err, acknowledged.Load())
			}
		}
		r.want(r.pass(run.ID), semel.RunCompleted, "")
		wantEffects(t, &w, 1, 1)
		down.Store(true)
		run = r.start(bill.New("", invoice{ID: "i-2"}))
		r.want(r.pass(run.ID), semel.RunRunning, "")
		wantEffects(t, &w, 1, 1)
		down.Store(false)
		store.Shift(time.Minute)
		r.want(r.pass(run.ID), semel.RunCompleted, "")
		wantEffects(t, &w, 2, 2)
	})
}

// TestAnswerIsKeptHoweverTheRunEnds: an answer may wait for the next commit of
// its run, and is on record when the execution has ended in any way.
func TestAnswerIsKeptHoweverTheRunEnds(t *testing.T) {
	ends := map[string]struct {
		then func(ctx semel.Context) error
		lost bool
	}{
		"completed": {then: func(semel.Context) error { return nil }},
		"suspended": {then: func(ctx semel.Context) error { return semel.Sleep(ctx, "rest", time.Hour) }},
		"panicked":  {then: func(semel.Context) error { panic("oh no") }},
		"lost":      {then: func(semel.Context) error { return nil }, lost: true},
	}
	eachStore(t, func(t *testing.T, open func() shifted) {
		base := open()
		for name, end := range ends {
			var w world
			charge := act("charge", &w, semel.Contract{Protection: semel.Unprotected})
			bill := semel.Workflow[invoice]{Name: "bill", Key: func(i invoice) string { return i.ID }, Func: func(ctx semel.Context, i invoice) error {
				if _, err := semel.Do(ctx, charge, i); err != nil {
					return err
				}
				return end.then(ctx)
			}}
			store := watch(base)
			if end.lost {
				told := make(chan struct{})
				store.renew = func([]semel.Run, error) ([]semel.Run, error) { defer close(told); return nil, nil }
				w.answer = func(n int, _ *semel.Send) (semel.Event, bool) {
					<-told
					time.Sleep(50 * time.Millisecond) // the worker draws its conclusions
					return confirmed(n), true
				}
			}
			e := newEngine(t, store, engine.Options{Lease: time.Second})
			worker, err := engine.NewWorker(t.Context(), e, engine.WorkerOptions{Workflows: []semel.WorkflowDefinition{bill.Definition()}})
			if err != nil {
				t.Fatal(err)
			}
			r := &rig{T: t, store: store, runs: store, e: e, w: worker}
			r.pass(r.start(bill.New("", invoice{ID: name})).ID)
			o, err := store.Load(t.Context(), semel.ActionScope("default", "payments", "charge"), semel.Key(name+"-charge"))
			if err != nil || o.State != semel.Completed {
				t.Errorf("%s: the operation is %s, %v; want completed", name, o.State, err)
			}
		}
	})
}

// TestRenewalBesideAnError: a run that the store could not renew takes no other
// one's lease with it.
func TestRenewalBesideAnError(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		var w world
		charge := act("charge", &w, semel.Contract{Protection: semel.Unprotected})
		bill := semel.Workflow[invoice]{Name: "bill", Func: func(ctx semel.Context, _ invoice) error {
			for _, id := range []string{"i-1", "i-2"} {
				if _, err := semel.Do(ctx.Named(id), charge, invoice{ID: id}); err != nil {
					return err
				}
			}
			return nil
		}}
		store := watch(open())
		var renewals atomic.Int32
		enough := make(chan struct{})
		store.renew = func(runs []semel.Run, err error) ([]semel.Run, error) {
			if renewals.Add(1) == 8 { // two leases later
				close(enough)
			}
			return runs, errors.Join(err, semel.ErrUnavailable)
		}
		w.answer = func(n int, _ *semel.Send) (semel.Event, bool) {
			<-enough
			return confirmed(n), true
		}
		e := newEngine(t, store, engine.Options{Lease: time.Second})
		worker, err := engine.NewWorker(t.Context(), e, engine.WorkerOptions{Workflows: []semel.WorkflowDefinition{bill.Definition()}})
		if err != nil {
			t.Fatal(err)
		}
		r := &rig{T: t, store: store, runs: store, e: e, w: worker}
		r.want(r.pass(r.start(bill.New("b-1", invoice{ID: "i-1"})).ID), semel.RunCompleted, "")
		wantEffects(t, &w, 2, 2)
	})
}

// TestStopBeforeSending: a request to stop that the worker hears of after the
// claim is tested immediately before the first byte.
func TestStopBeforeSending(t *testing.T) {
	stops := map[semel.RunVerb]semel.RunState{semel.CancelRun: semel.RunCancelled, semel.PauseRun: semel.RunHeld}
	eachStore(t, func(t *testing.T, open func() shifted) {
		base := open()
		for verb, state := range stops {
			for _, protection := range []semel.Protection{semel.Unprotected, semel.Commutes} {
				var w world
				charge := act("charge", &w, semel.Contract{Protection: protection})
				bill := semel.Workflow[invoice]{Name: "bill", Func: func(ctx semel.Context, i invoice) error {
					_, err := semel.Do(ctx, charge, i)
					return err
				}}
				heard := make(chan struct{})
				store := watch(base)
				store.renew = func(runs []semel.Run, err error) ([]semel.Run, error) {
					for _, r := range runs {
						if r.Cancel || r.Paused {
							time.AfterFunc(50*time.Millisecond, func() { close(heard) })
							store.renew = nil
						}
					}
					return runs, err
				}
				e := newEngine(t, store, engine.Options{Lease: time.Second})
				worker, err := engine.NewWorker(t.Context(), e, engine.WorkerOptions{Workflows: []semel.WorkflowDefinition{bill.Definition()}})
				if err != nil {
					t.Fatal(err)
				}
				r := &rig{T: t, store: store, runs: store, e: e, w: worker}
				key := string(verb) + " " + string(protection)
				run := r.start(bill.New(semel.Key(key), invoice{ID: key}))
				w.before = func(int) {
					if _, err := r.runs.ChangeRun(t.Context(), run.ID, semel.RunCommand{Verb: verb, By: "ann", Reason: "wait"}); err != nil {
						t.Error(err)
					}
					<-heard
				}
				r.want(r.pass(run.ID), state, "")
				wantEffects(t, &w, 0, 1)
			}
		}
	})
}

// TestClaimOfARunThatWasLostSentNothing: the store made the claim, and could say
// so only when another worker had the run. That one goes on.
func TestClaimOfARunThatWasLostSentNothing(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		var w world
		charge := act("charge", &w, semel.Contract{Protection: semel.Unprotected})
		bill := semel.Workflow[invoice]{Name: "bill", Func: func(ctx semel.Context, i invoice) error {
			_, err := semel.Do(ctx, charge, i)
			return err
		}}
		store := watch(open())
		store.commit = func(c semel.RunCommit, commit func() semel.RunCommitted) semel.RunCommitted {
			out := commit()
			if c.Claim != nil {
				store.commit = nil
				out.RunErr = semel.ErrStale
			}
			return out
		}
		r := newRig(t, store, bill.Definition())
		run := r.pass(r.start(bill.New("k", invoice{ID: "i"})).ID)
		wantEffects(t, &w, 0, 0)
		store.Shift(time.Minute)
		r.pass(run.ID)
		store.Shift(time.Minute)
		r.want(r.pass(run.ID), semel.RunCompleted, "")
		wantEffects(t, &w, 1, 1)
	})
}

// stuck is a store that does not answer renewals of runs.
type stuck struct {
	shifted
	semel.Runs
}

func (*stuck) RenewRuns(ctx context.Context, _ []semel.RunFence, _ time.Duration) ([]semel.Run, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestRenewalWithoutAnAnswerIsLogged: a worker loses its runs by it.
func TestRenewalWithoutAnAnswerIsLogged(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		logged := make(chan string, 100)
		inner := open()
		e := newEngine(t, &stuck{shifted: inner, Runs: inner.(semel.Runs)}, engine.Options{Lease: 400 * time.Millisecond, Logger: slog.New(messages(logged))})
		wf := semel.Workflow[invoice]{Name: "bill", Func: func(semel.Context, invoice) error {
			for {
				select {
				case message := <-logged:
					if message == "renew the leases of runs" {
						return nil
					}
				case <-time.After(5 * time.Second):
					t.Error("nothing is logged")
					return nil
				}
			}
		}}
		worker, err := engine.NewWorker(t.Context(), e, engine.WorkerOptions{Workflows: []semel.WorkflowDefinition{wf.Definition()}})
		if err != nil {
			t.Fatal(err)
		}
		r := &rig{T: t, store: inner, runs: inner.(semel.Runs), e: e, w: worker}
		r.pass(r.start(wf.New("k", invoice{ID: "i"})).ID)
	})
}

// messages takes what is logged.
type messages chan<- string

func (messages) Enabled(context.Context, slog.Level) bool { return true }

func (m messages) Handle(_ context.Context, r slog.Record) error {
	select {
	case m <- r.Message:
	default:
	}
	return nil
}

func (m messages) WithAttrs([]slog.Attr) slog.Handler { return m }
func (m messages) WithGroup(string) slog.Handler      { return m }
