package engine_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

// failing is a store whose commits a test breaks.
type failing struct {
	shifted
	mu   sync.Mutex
	fail func(c semel.Change) (commit bool, err error)
}

func (f *failing) Commit(ctx context.Context, c semel.Change) (semel.Operation, error) {
	f.mu.Lock()
	fail := f.fail
	f.mu.Unlock()
	if fail == nil {
		return f.shifted.Commit(ctx, c)
	}
	commit, err := fail(c)
	if err == nil {
		return f.shifted.Commit(ctx, c)
	}
	if commit {
		if _, err := f.shifted.Commit(ctx, c); err != nil {
			return semel.Operation{}, err
		}
	}
	return semel.Operation{}, err
}

func (f *failing) heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = nil
}

// shelf is a spool in memory.
type shelf struct {
	mu  sync.Mutex
	all []semel.Evidence
}

func (s *shelf) Put(ev semel.Evidence) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, ev)
	return nil
}

func (s *shelf) Each(_ context.Context, use func(semel.Evidence) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.all) > 0 {
		if err := use(s.all[0]); err != nil {
			return err
		}
		s.all = s.all[1:]
	}
	return nil
}

// C21: the store dies after the effect. The caller is told unknown, the
// evidence is kept, and the next process completes the operation.
func TestOutcomeThatCannotBeRecordedIsSpooled(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		store := &failing{shifted: open(), fail: func(c semel.Change) (bool, error) {
			if c.Event.Kind == semel.EvConfirmed {
				return false, semel.ErrUnavailable
			}
			return false, nil
		}}
		w, spool := &world{}, &shelf{}
		e := newEngine(t, store, engine.Options{Spool: spool, Patience: 100 * time.Millisecond})
		out := do(t, e, call(w, "k", `{}`, semel.Contract{}))
		wantStatus(t, out, semel.StatusUnknown)
		if len(spool.all) != 1 {
			t.Fatalf("%d pieces of evidence are spooled, want 1", len(spool.all))
		}
		store.heal()
		next := newEngine(t, open(), engine.Options{Spool: spool})
		again := do(t, next, call(w, "k", `{}`, semel.Contract{}))
		wantStatus(t, again, semel.StatusCompleted)
		wantEffects(t, w, 1, 1)
	})
}

// A short outage is waited for.
func TestOutcomeIsRetried(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		n := 0
		store := &failing{shifted: open(), fail: func(c semel.Change) (bool, error) {
			if c.Event.Kind == semel.EvConfirmed && n < 3 {
				n++
				return n == 2, semel.ErrUnconfirmed // the second try was committed, unknown to us
			}
			return false, nil
		}}
		w := &world{}
		e := newEngine(t, store, engine.Options{})
		out := do(t, e, call(w, "k", `{}`, semel.Contract{}))
		wantStatus(t, out, semel.StatusCompleted)
		wantEffects(t, w, 1, 1)
	})
}

// Design section 6: a claim that cannot be confirmed sends nothing, says so,
// and the attempt is closed when the store is back.
func TestUnconfirmedClaimSendsNothing(t *testing.T) {
	for _, committed := range []bool{true, false} {
		eachStore(t, func(t *testing.T, open func() shifted) {
			store := &failing{shifted: open(), fail: func(semel.Change) (bool, error) { return committed, semel.ErrUnconfirmed }}
			w, spool := &world{}, &shelf{}
			e := newEngine(t, store, engine.Options{Spool: spool})
			var notAsked *semel.NotAskedError
			if _, err := e.Do(t.Context(), call(w, "k", `{}`, semel.Contract{})); !errors.As(err, &notAsked) {
				t.Fatalf("error %v, want *NotAskedError", err)
			}
			wantEffects(t, w, 0, 0)
			store.heal()
			next := newEngine(t, open(), engine.Options{Spool: spool})
			out := do(t, next, call(w, "k", `{}`, semel.Contract{}))
			wantStatus(t, out, semel.StatusCompleted)
			wantEffects(t, w, 1, 1)
		})
	}
}

// M21: a store that is away for a moment while many operations are due puts
// their recovery off by about that moment. Found by the soak: it was a minute,
// and the failures raced with each other.
func TestRecoveryGoesOnAfterAnOutage(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		keyed := semel.Contract{Protection: semel.Keyed, Window: time.Hour, Timeout: time.Second}
		w := &world{answer: func(_ int, s *semel.Send) (semel.Event, bool) {
			if s.Attempt == 1 {
				return lost("timeout"), true
			}
			return confirmed(1), true
		}}
		store := &failing{shifted: open()}
		e := newEngine(t, store, engine.Options{Resolve: resolve(w, keyed)})
		const ops = 40
		for i := range ops {
			do(t, e, call(w, "k"+strconv.Itoa(i), `{}`, keyed))
		}
		refused := make(chan struct{}, 10*ops)
		store.mu.Lock()
		store.fail = func(semel.Change) (bool, error) { refused <- struct{}{}; return false, semel.ErrUnavailable }
		store.mu.Unlock()
		store.Shift(time.Minute)
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = e.Run(ctx) })
		for range ops {
			<-refused
		}
		store.heal()
		until := time.Now().Add(20 * time.Second)
		for _, _, requests := w.total(); requests < 2*ops && time.Now().Before(until); _, _, requests = w.total() {
			time.Sleep(50 * time.Millisecond)
		}
		stop()
		wg.Wait()
		if _, logical, requests := w.total(); logical != ops || requests != 2*ops {
			t.Errorf("%d logical effects in %d requests, want %d in %d", logical, requests, ops, 2*ops)
		}
	})
}
