package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

// narrow is a world with a limit. It counts how many requests are under way.
type narrow struct {
	world
	limit semel.Limit
	gate  chan struct{} // nil lets every request pass
	now   atomic.Int32
	most  atomic.Int32
}

func (n *narrow) Limit() semel.Limit { return n.limit }

func (n *narrow) Send(ctx context.Context, s *semel.Send) semel.Event {
	now := n.now.Add(1)
	defer n.now.Add(-1)
	for most := n.most.Load(); now > most && !n.most.CompareAndSwap(most, now); most = n.most.Load() {
	}
	if n.gate != nil {
		select {
		case <-n.gate:
		case <-ctx.Done():
			return semel.Event{Kind: semel.EvRefused, Reason: "the engine was closed"}
		}
	}
	return n.world.Send(ctx, s)
}

// waiting waits until f holds.
func waiting(t *testing.T, what string, f func() bool) {
	t.Helper()
	for until := time.Now().Add(20 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("never: " + what)
		}
	}
}

// Three engines over one database keep to one limit together.
func TestAtOnceHoldsForAllEngines(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := &narrow{limit: semel.Limit{Name: "bank", AtOnce: 2}, gate: make(chan struct{})}
		var engines []*engine.Engine
		for range 3 {
			engines = append(engines, newEngine(t, open(), engine.Options{}))
		}
		const all = 18
		var wg sync.WaitGroup
		for i := range all {
			wg.Go(func() {
				out, err := engines[i%3].Do(t.Context(), call(w, fmt.Sprintf("k-%d", i), `{}`, semel.Contract{}))
				if err != nil || out.Status != semel.StatusCompleted {
					t.Errorf("got %s, %v", out.Status, err)
				}
			})
		}
		waiting(t, "two under way", func() bool { return w.now.Load() == 2 })
		for range all {
			w.gate <- struct{}{}
		}
		wg.Wait()
		if most := w.most.Load(); most != 2 {
			t.Errorf("%d were under way at once, want 2", most)
		}
		wantEffects(t, &w.world, all, all)
	})
}

// The rate is one for all: at a time, no engine gets more than one place.
func TestRateHoldsForAllEngines(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := &narrow{limit: semel.Limit{Name: "bank", Every: time.Hour, Burst: 1}}
		store := open()
		engines := []*engine.Engine{newEngine(t, store, engine.Options{}), newEngine(t, open(), engine.Options{}), newEngine(t, open(), engine.Options{})}
		wantStatus(t, do(t, engines[0], call(w, "k-0", `{}`, semel.Contract{})), semel.StatusCompleted)
		for i, e := range engines {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			_, err := e.Do(ctx, call(w, fmt.Sprintf("k-%d", i+1), `{}`, semel.Contract{}))
			cancel()
			var notAsked *semel.NotAskedError
			if !errors.As(err, &notAsked) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("engine %d: got %v, want that it was not asked", i, err)
			}
			if _, err := store.Load(t.Context(), "test", semel.Key(fmt.Sprintf("k-%d", i+1))); !errors.Is(err, semel.ErrNotFound) {
				t.Errorf("engine %d claimed before it had a place: %v", i, err)
			}
		}
		// What is on record needs no place.
		wantStatus(t, do(t, engines[1], call(w, "k-0", `{}`, semel.Contract{})), semel.StatusCompleted)
		wantEffects(t, &w.world, 1, 1)
		store.Shift(time.Hour)
		wantStatus(t, do(t, engines[0], call(w, "k-9", `{}`, semel.Contract{})), semel.StatusCompleted)
	})
}

// A killed process gives nothing back: its place is free when the lease is
// over, while one whose attempt takes long is renewed.
func TestPlaceOfTheKilledComesBack(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		store, limit := open(), semel.Limit{Name: "bank", AtOnce: 1}
		killed := semel.NewID(time.Now(), [10]byte{1})
		if got, err := store.(semel.Runs).Acquire(t.Context(), limit, killed, time.Minute); err != nil || !got.Taken {
			t.Fatalf("got %+v, %v", got, err)
		}
		w, answer := &narrow{limit: limit}, make(chan struct{})
		w.answer = func(n int, _ *semel.Send) (semel.Event, bool) {
			<-answer
			return confirmed(n), true
		}
		e := newEngine(t, store, engine.Options{Lease: 300 * time.Millisecond})
		short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := e.Do(short, call(w, "k", `{}`, semel.Contract{})); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want no place", err)
		}
		store.Shift(time.Minute)
		done := make(chan semel.Outcome)
		go func() {
			out, _ := e.Do(t.Context(), call(w, "k", `{}`, semel.Contract{}))
			done <- out
		}()
		waiting(t, "one under way", func() bool { return w.now.Load() == 1 })
		for range 4 { // longer than its lease of 600 ms
			time.Sleep(250 * time.Millisecond)
			got, err := store.(semel.Runs).Acquire(t.Context(), limit, killed, time.Minute)
			if err != nil || got.Taken {
				t.Errorf("got %+v, %v while the place was held", got, err)
			}
		}
		close(answer)
		wantStatus(t, <-done, semel.StatusCompleted)
		if got, err := store.(semel.Runs).Acquire(t.Context(), limit, killed, time.Minute); err != nil || !got.Taken {
			t.Errorf("got %+v, %v: the place was not given back", got, err)
		}
	})
}

// A caller who leaves takes its place along neither before nor during the
// attempt: the attempt keeps it until it is over.
func TestCallerLeavesWithoutItsPlace(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := &narrow{limit: semel.Limit{Name: "bank", AtOnce: 1}, gate: make(chan struct{})}
		e := newEngine(t, open(), engine.Options{})
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan semel.Outcome)
		go func() {
			out, _ := e.Do(ctx, call(w, "k-1", `{}`, semel.Contract{}))
			left <- out
		}()
		waiting(t, "one under way", func() bool { return w.now.Load() == 1 })
		leave()
		wantStatus(t, <-left, semel.StatusInProgress)
		next := make(chan semel.Outcome)
		go func() {
			out, _ := e.Do(t.Context(), call(w, "k-2", `{}`, semel.Contract{}))
			next <- out
		}()
		short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if _, err := e.Do(short, call(w, "k-3", `{}`, semel.Contract{})); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want no place", err)
		}
		w.gate <- struct{}{}
		w.gate <- struct{}{}
		wantStatus(t, <-next, semel.StatusCompleted)
		if most := w.most.Load(); most != 1 {
			t.Errorf("%d were under way at once, want 1", most)
		}
	})
}

// Recovery resends under the limit, and does not wait for a place: what is due
// elsewhere comes first.
func TestRecoveryKeepsToTheLimit(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		limit := semel.Limit{Name: "bank", AtOnce: 1}
		c := semel.Contract{Protection: semel.Keyed, Window: 24 * time.Hour, KeyHeader: "Idempotency-Key", Timeout: time.Second}
		w := &narrow{limit: limit}
		w.answer = func(n int, _ *semel.Send) (semel.Event, bool) {
			if n <= 3 {
				return lost("no answer"), false
			}
			return confirmed(n), true
		}
		store := open()
		e := newEngine(t, store, engine.Options{Resolve: resolve(w, c)})
		for i := range 3 {
			wantStatus(t, do(t, e, call(w, fmt.Sprintf("k-%d", i), `{}`, c)), semel.StatusUnknown)
		}
		other := semel.NewID(time.Now(), [10]byte{1})
		runs := store.(semel.Runs)
		if got, err := runs.Acquire(t.Context(), limit, other, time.Hour); err != nil || !got.Taken {
			t.Fatalf("got %+v, %v", got, err)
		}
		store.Shift(time.Minute)
		if n, err := e.Recover(t.Context()); n != 3 || err != nil {
			t.Fatalf("looked at %d, %v; want 3", n, err)
		}
		wantEffects(t, &w.world, 0, 3)
		o, err := store.Load(t.Context(), "test", "k-0")
		if err != nil || o.State != semel.Unknown || o.Attempt != 1 {
			t.Errorf("got %s, attempt %d, %v; want no claim without a place", o.State, o.Attempt, err)
		}
		if err := runs.Release(t.Context(), limit, other); err != nil {
			t.Fatal(err)
		}
		waiting(t, "all resent", func() bool {
			if _, err := e.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			effects, _, _ := w.total()
			return effects == 3
		})
		if most := w.most.Load(); most != 1 {
			t.Errorf("%d were under way at once, want 1", most)
		}
	})
}

// A step of a run that finds no place frees its worker and comes back; it was
// not claimed meanwhile.
func TestStepWaitsForAPlace(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		store := open()
		for _, protection := range []semel.Protection{semel.Unprotected, semel.Commutes} {
			w := &narrow{limit: semel.Limit{Name: "bank " + string(protection), AtOnce: 1}}
			charge := act("charge", &w.world, semel.Contract{Protection: protection})
			charge.Send.Destination = w
			bill := semel.Workflow[invoice]{
				Name: "bill", Key: func(i invoice) string { return i.ID },
				Func: func(ctx semel.Context, i invoice) error {
					_, err := semel.Do(ctx, charge, i)
					return err
				},
				Actions: []semel.Definition{charge.Definition()},
			}
			r := newRig(t, store, bill.Definition())
			other := semel.NewID(time.Now(), [10]byte{1})
			if got, err := r.runs.Acquire(t.Context(), w.limit, other, time.Hour); err != nil || !got.Taken {
				t.Fatalf("got %+v, %v", got, err)
			}
			run := r.start(bill.New("", invoice{ID: string(protection), Amount: 5}))
			run = r.pass(run.ID)
			r.want(run, semel.RunWaiting, "waits for a place at bank")
			if _, err := store.Load(t.Context(), semel.ActionScope("default", "payments", "charge"), semel.Key(protection+"-charge")); !errors.Is(err, semel.ErrNotFound) {
				t.Errorf("it was claimed without a place: %v", err)
			}
			if err := r.runs.Release(t.Context(), w.limit, other); err != nil {
				t.Fatal(err)
			}
			store.Shift(time.Minute)
			run = r.pass(run.ID)
			r.want(run, semel.RunCompleted, "")
			wantEffects(t, &w.world, 1, 1)
			if got, err := r.runs.Acquire(t.Context(), w.limit, other, time.Hour); err != nil || !got.Taken {
				t.Errorf("got %+v, %v: the place was not given back", got, err)
			}
		}
	})
}

// plainStore keeps operations and no runs.
type plainStore struct{ semel.Store }

func TestStoreWithoutPlacesKeepsNoLimit(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := &narrow{limit: semel.Limit{Name: "bank", Every: time.Hour, Burst: 1}}
		e := newEngine(t, plainStore{open()}, engine.Options{})
		wantStatus(t, do(t, e, call(w, "k-1", `{}`, semel.Contract{})), semel.StatusCompleted)
		wantStatus(t, do(t, e, call(w, "k-2", `{}`, semel.Contract{})), semel.StatusCompleted)
	})
}
