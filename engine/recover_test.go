package engine_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

// M1, M15, C18: a worker that died after its claim leaves an unknown, which
// every reader sees at once when the lease is over.
func TestDeadWorkerLeavesAnUnknown(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		store := open()
		w := &world{}
		dead := newEngine(t, store, engine.Options{Lease: time.Hour})
		hang := make(chan struct{})
		t.Cleanup(func() { close(hang) })
		sent := make(chan struct{})
		blocked := &world{answer: func(int, *semel.Send) (semel.Event, bool) { close(sent); <-hang; return lost("died"), true }}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = dead.Do(ctx, call(blocked, "k", `{}`, semel.Contract{})) }()
		<-sent
		cancel()
		other := open()
		other.Shift(time.Hour + time.Second)
		e := newEngine(t, other, engine.Options{Resolve: resolve(w, semel.Contract{Protection: semel.Unprotected})})
		n := 0
		for o, err := range other.List(t.Context(), semel.Filter{State: semel.Unknown}) {
			if err != nil || o.Key != "k" {
				t.Fatal(o, err)
			}
			n++
		}
		if n != 1 {
			t.Errorf("%d unknown operations are listed, want 1", n)
		}
		if _, err := e.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		out := do(t, e, call(w, "k", `{}`, semel.Contract{}))
		wantStatus(t, out, semel.StatusUnknown)
		if out.Operation.State != semel.Unknown {
			t.Errorf("recovery left the row %s", out.Operation.State)
		}
		wantEffects(t, w, 0, 0)
	})
}

// M21: recovery sends again inside the window, by itself, when the pause is over.
func TestRecoveryResends(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		store := open()
		w := &world{answer: func(n int, _ *semel.Send) (semel.Event, bool) {
			if n < 3 {
				return lost("timeout"), n == 1
			}
			return confirmed(1), true
		}}
		keyed := semel.Contract{Protection: semel.Keyed, Window: time.Hour, Timeout: time.Second}
		e := newEngine(t, store, engine.Options{Resolve: resolve(w, keyed)})
		wantStatus(t, do(t, e, call(w, "k", `{}`, keyed)), semel.StatusUnknown)
		if n, err := e.Recover(t.Context()); err != nil || n != 0 {
			t.Errorf("recovery took %d operations before the pause was over (%v)", n, err)
		}
		for range 2 {
			store.Shift(10 * time.Second)
			if _, err := e.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		wantStatus(t, do(t, e, call(w, "k", `{}`, keyed)), semel.StatusCompleted)
		if _, logical, requests := w.total(); logical != 1 || requests != 3 {
			t.Errorf("%d logical effects in %d requests, want 1 in 3", logical, requests)
		}
	})
}

// C19: two recoveries at once act on each operation once.
func TestTwoRecoveriesActOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		first, second := open(), open()
		w := &world{answer: func(_ int, s *semel.Send) (semel.Event, bool) {
			if s.Attempt == 1 {
				return lost("timeout"), true
			}
			return confirmed(1), true
		}}
		keyed := semel.Contract{Protection: semel.Keyed, Window: time.Hour, Timeout: time.Second}
		engines := []*engine.Engine{newEngine(t, first, engine.Options{Resolve: resolve(w, keyed)}), newEngine(t, second, engine.Options{Resolve: resolve(w, keyed)})}
		const ops = 30
		for i := range ops {
			do(t, engines[0], call(w, string(rune('A'+i)), `{}`, keyed))
		}
		first.Shift(10 * time.Second)
		second.Shift(10 * time.Second)
		var wg sync.WaitGroup
		for _, e := range engines {
			wg.Go(func() {
				for range 5 {
					if _, err := e.Recover(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if _, logical, requests := w.total(); logical != ops || requests != 2*ops {
			t.Errorf("%d logical effects in %d requests, want %d in %d", logical, requests, ops, 2*ops)
		}
	})
}

// Law 7, M22, C16: "not found" proves nothing until no attempt can still act.
func TestAbsenceNeedsTime(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		store := open()
		w := &world{answer: func(n int, _ *semel.Send) (semel.Event, bool) {
			if n == 1 {
				return lost("reset"), false
			}
			return confirmed(n), true
		}}
		c := call(w, "k", `{}`, semel.Contract{
			Protection: semel.Lookup, CanLookUp: true, AbsenceIsProof: true,
			MaxProcessing: 10 * time.Second, VisibleAfter: 60 * time.Second, Timeout: time.Second,
		})
		e := newEngine(t, store, engine.Options{Resolve: resolve(w, c.Contract)})
		wantStatus(t, do(t, e, c), semel.StatusUnknown)
		wantStatus(t, do(t, e, c), semel.StatusUnknown)
		store.Shift(69 * time.Second)
		wantStatus(t, do(t, e, c), semel.StatusUnknown)
		wantEffects(t, w, 0, 1)
		store.Shift(3 * time.Second)
		out := do(t, e, c) // absence is proven, and the caller asks for it now
		wantStatus(t, out, semel.StatusCompleted)
		wantEffects(t, w, 1, 2)
	})
}

// M21: what a lookup finds completes the operation.
func TestLookupFinds(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		store := open()
		w := &world{answer: func(int, *semel.Send) (semel.Event, bool) { return lost("reset"), true }}
		c := call(w, "k", `{}`, semel.Contract{Protection: semel.Lookup, CanLookUp: true})
		e := newEngine(t, store, engine.Options{Resolve: resolve(w, c.Contract)})
		wantStatus(t, do(t, e, c), semel.StatusUnknown)
		w.found = map[string]bool{semel.DestinationKey("test", "k", 0): true}
		store.Shift(time.Minute)
		if _, err := e.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantStatus(t, do(t, e, c), semel.StatusCompleted)
		wantEffects(t, w, 1, 1)
	})
}

// M23, C40: one decision is stored, the other is told so.
func TestSettleOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := &world{answer: func(int, *semel.Send) (semel.Event, bool) { return lost("timeout"), true }}
		e := newEngine(t, open(), engine.Options{})
		id := do(t, e, call(w, "k", `{}`, semel.Contract{})).Operation.ID
		var input *semel.InputError
		if _, err := e.Settle(t.Context(), id, engine.Settlement{By: "a"}); !errors.As(err, &input) {
			t.Errorf("no reason: %v", err)
		}
		if _, err := e.Settle(t.Context(), id, engine.Settlement{By: "a", Reason: "r", IfVersion: 1}); !errors.As(err, &input) {
			t.Errorf("stale page: %v", err)
		}
		var wg sync.WaitGroup
		errs := make([]error, 20)
		for i := range errs {
			wg.Go(func() {
				_, errs[i] = e.Settle(t.Context(), id, engine.Settlement{By: "a", Reason: "r", Happened: i%2 == 0, Reference: "ch_1", Force: true})
			})
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			var before *engine.SettledError
			switch {
			case err == nil:
				won++
			case !errors.As(err, &before) || before.Last.By != "a":
				t.Errorf("the loser is told %v", err)
			}
		}
		if won != 1 {
			t.Errorf("%d decisions were stored, want 1", won)
		}
		wantEffects(t, w, 1, 1)
	})
}

// A person's "it did not happen" waits until nothing can still happen.
func TestDidNotHappenNeedsTime(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		store := open()
		w := &world{answer: func(n int, _ *semel.Send) (semel.Event, bool) {
			if n == 1 {
				return lost("timeout"), false
			}
			return confirmed(n), true
		}}
		c := call(w, "k", `{}`, semel.Contract{MaxProcessing: time.Minute})
		e := newEngine(t, store, engine.Options{})
		id := do(t, e, c).Operation.ID
		no := engine.Settlement{By: "a", Reason: "not on the statement"}
		var early *semel.InputError
		if _, err := e.Settle(t.Context(), id, no); !errors.As(err, &early) {
			t.Errorf("too early: %v", err)
		}
		store.Shift(62 * time.Second)
		if _, err := e.Settle(t.Context(), id, no); err != nil {
			t.Fatal(err)
		}
		wantStatus(t, do(t, e, c), semel.StatusCompleted)
		if w.keys[0] != w.keys[1] {
			t.Errorf("keys %v: \"it did not happen\" keeps the key", w.keys)
		}
	})
}

// M17: an effect reported after "it did not happen" is an incident, blocks
// everything, and is closed by a person.
func TestEffectAfterFailureIsAnIncident(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		late := make(chan func(semel.Event), 1)
		w := &world{}
		w.answer = func(_ int, s *semel.Send) (semel.Event, bool) {
			late <- s.Late
			return semel.Event{Kind: semel.EvLost, Reason: "timeout"}, true
		}
		e := newEngine(t, open(), engine.Options{Late: true})
		c := call(w, "k", `{}`, semel.Contract{})
		id := do(t, e, c).Operation.ID
		if _, err := e.Settle(t.Context(), id, engine.Settlement{By: "a", Reason: "guess", Force: true}); err != nil {
			t.Fatal(err)
		}
		(<-late)(confirmed(1))
		out := do(t, e, c)
		wantStatus(t, out, semel.StatusIncident)
		if _, err := e.Settle(t.Context(), id, engine.Settlement{By: "b", Reason: "it is on the statement", Happened: true, Reference: "ch_1"}); err != nil {
			t.Fatal(err)
		}
		wantStatus(t, do(t, e, c), semel.StatusCompleted)
		wantEffects(t, w, 1, 1)
	})
}

// M25, C10: settled records expire and refuse a repeat; an unknown never does.
func TestExpiredIsRefusedAndUnknownStays(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		store := open()
		w := &world{answer: func(n int, _ *semel.Send) (semel.Event, bool) {
			if n == 2 {
				return lost("timeout"), true
			}
			return confirmed(n), true
		}}
		e := newEngine(t, store, engine.Options{Forget: 30 * 24 * time.Hour})
		settled, unknown := call(w, "settled", `{}`, semel.Contract{}), call(w, "unknown", `{}`, semel.Contract{})
		do(t, e, settled)
		do(t, e, unknown)
		store.Shift(31 * 24 * time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = e.Run(ctx)
		wantStatus(t, do(t, e, settled), semel.StatusExpired)
		wantStatus(t, do(t, e, unknown), semel.StatusUnknown)
		wantEffects(t, w, 2, 2)
	})
}

// checkable is a world whose Check tells, as for a program that is gone.
type checkable struct {
	*world
	verdict semel.EventKind
}

func (c *checkable) Look(context.Context, *semel.Send) semel.Event {
	return semel.Event{Kind: c.verdict, Reason: "the check says so"}
}

// A program that ended without telling is checked at once: the check's word is
// proof, since nothing of the program is left. Where nobody saw it end, "it did
// not happen" proves nothing.
func TestCheckSpeaksForAProgramThatIsGone(t *testing.T) {
	for verdict, want := range map[semel.EventKind]semel.Status{
		semel.EvFound: semel.StatusCompleted, semel.EvAbsent: semel.StatusFailed, semel.EvNoAnswer: semel.StatusUnknown,
	} {
		for _, gone := range []bool{true, false} {
			eachStore(t, func(t *testing.T, open func() shifted) {
				w := &checkable{verdict: verdict, world: &world{answer: func(int, *semel.Send) (semel.Event, bool) {
					return semel.Event{Kind: semel.EvLost, Reason: "exit code 5", Closed: gone}, verdict == semel.EvFound
				}}}
				store := open()
				c := call(w, "k", `{}`, semel.Contract{Check: "did-it"})
				out := do(t, newEngine(t, store, engine.Options{}), c)
				if !gone {
					wantStatus(t, out, semel.StatusUnknown)
					if store.Shift(time.Hour); verdict == semel.EvAbsent {
						wantStatus(t, do(t, newEngine(t, open(), engine.Options{}), c), semel.StatusUnknown)
					}
					return
				}
				wantStatus(t, out, want)
				if out.Operation.Attempt != 1 {
					t.Errorf("%d attempts in one call, want 1", out.Operation.Attempt)
				}
			})
		}
	}
}
