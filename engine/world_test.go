package engine_test

import (
	"context"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
	"github.com/semel-dev/semel/store/postgres"
	"github.com/semel-dev/semel/store/postgres/postgrestest"
	"github.com/semel-dev/semel/store/sqlite"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

// shifted is a store whose clock a test may move.
type shifted interface {
	semel.Store
	Shift(time.Duration)
}

// eachStore runs a test on SQLite and on PostgreSQL. open gives another handle
// on the same database, as another process has it.
func eachStore(t *testing.T, test func(t *testing.T, open func() shifted)) {
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "semel.db")
		test(t, func() shifted {
			s, err := sqlite.Open(t.Context(), path, sqlite.Options{Create: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			return s
		})
	})
	t.Run("postgres", func(t *testing.T) {
		url := postgrestest.Shared(t).Database(t)
		test(t, func() shifted {
			s, err := postgres.Open(t.Context(), url, postgres.Options{Create: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			return s
		})
	})
}

func newEngine(t *testing.T, store semel.Store, o engine.Options) *engine.Engine {
	t.Helper()
	e, err := engine.New(t.Context(), store, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return e
}

// world is a destination that counts what really happens in it.
type world struct {
	mu      sync.Mutex
	effects map[string]int // per destination key
	keys    []string       // destination keys, in the order of arrival
	bodies  []string
	found   map[string]bool // what a lookup sees
	// answer decides about the nth request, n counting from 1. It returns the
	// evidence, and whether the effect happens.
	answer func(n int, s *semel.Send) (semel.Event, bool)
	// before runs before Begin.
	before func(n int)
}

func (w *world) Send(_ context.Context, s *semel.Send) semel.Event {
	w.mu.Lock()
	w.keys = append(w.keys, s.DestinationKey)
	n := len(w.keys)
	w.mu.Unlock()
	if w.before != nil {
		w.before(n)
	}
	if err := s.Begin(); err != nil {
		return semel.Event{Kind: semel.EvRefused, Reason: err.Error()}
	}
	w.mu.Lock()
	w.bodies = append(w.bodies, string(s.Operation.Request.Body))
	w.mu.Unlock()
	ev, happens := confirmed(n), true
	if w.answer != nil {
		ev, happens = w.answer(n, s)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if happens {
		if w.effects == nil {
			w.effects = map[string]int{}
		}
		w.effects[s.DestinationKey]++
	}
	return ev
}

func (w *world) Look(_ context.Context, s *semel.Send) semel.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.found[s.DestinationKey] {
		return semel.Event{Kind: semel.EvFound, Result: &semel.Result{Reference: "found"}}
	}
	return semel.Event{Kind: semel.EvAbsent, Reason: "not found"}
}

// total is how many effects there are, and logical how many the destination
// counts if it honours keys.
func (w *world) total() (effects, logical, requests int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.effects {
		effects += n
	}
	return effects, len(w.effects), len(w.keys)
}

func confirmed(n int) semel.Event {
	return semel.Event{Kind: semel.EvConfirmed, Result: &semel.Result{Reference: "ch_" + strconv.Itoa(n), Body: []byte(`{"n":` + strconv.Itoa(n) + `}`)}}
}

func lost(reason string) semel.Event {
	return semel.Event{Kind: semel.EvLost, Reason: reason, Closed: true}
}

// call is a request to w under key, with a JSON body.
func call(w semel.Destination, key, body string, c semel.Contract) semel.Call {
	if c.Protection == "" {
		c.Protection = semel.Unprotected
	}
	return semel.Call{
		Scope: "test", Key: semel.Key(key), Contract: c, Destination: w, Source: "tester",
		Request: semel.Request{Kind: "call", MediaType: "application/json", Body: []byte(body)},
	}
}

func do(t *testing.T, e *engine.Engine, c semel.Call) semel.Outcome {
	t.Helper()
	out, err := e.Do(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// wantStatus also checks that the store agrees with what the caller was told.
func wantStatus(t *testing.T, out semel.Outcome, want semel.Status) {
	t.Helper()
	if out.Status != want {
		t.Errorf("status %s, want %s (reason %q, next %s: %s)", out.Status, want, out.Operation.Reason, out.Next.Kind, out.Next.Reason)
	}
}

func wantEffects(t *testing.T, w *world, effects, requests int) {
	t.Helper()
	if e, _, r := w.total(); e != effects || r != requests {
		t.Errorf("the world saw %d effects in %d requests, want %d in %d", e, r, effects, requests)
	}
}

func resolve(d semel.Destination, c semel.Contract) engine.Resolver {
	return func(*semel.Operation) (semel.Destination, semel.Contract, error) { return d, c, nil }
}
