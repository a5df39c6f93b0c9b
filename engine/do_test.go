package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

// M14: of N simultaneous attempts over several processes exactly one executes.
func TestOneOfManyExecutes(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := &world{before: func(int) { time.Sleep(50 * time.Millisecond) }}
		var wg sync.WaitGroup
		var mu sync.Mutex
		count := map[semel.Status]int{}
		replayed := 0
		for range 3 {
			e := newEngine(t, open(), engine.Options{})
			for i := range 20 {
				wg.Go(func() {
					c := call(w, "c-1", `{"a":1}`, semel.Contract{})
					if i%2 == 0 {
						c.Wait = 20 * time.Second
					}
					out, err := e.Do(t.Context(), c)
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						t.Error(err)
						return
					}
					count[out.Status]++
					if out.Replayed {
						replayed++
					}
				})
			}
		}
		wg.Wait()
		wantEffects(t, w, 1, 1)
		if n := count[semel.StatusCompleted] + count[semel.StatusInProgress]; n != 60 || count[semel.StatusCompleted] < 30 {
			t.Errorf("statuses %v, want completed for the 30 that wait, completed or in progress for the rest", count)
		}
		if replayed != count[semel.StatusCompleted]-1 {
			t.Errorf("%d of %d completed answers were marked as replays, want all but one", replayed, count[semel.StatusCompleted])
		}
	})
}

// M11, C01: a repeat is the same operation, whatever its representation.
func TestRepeatIsReplayed(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := &world{}
		e := newEngine(t, open(), engine.Options{})
		first := do(t, e, call(w, "k", `{"amount":1200,"meta":{"a":1,"b":[1,2]}}`, semel.Contract{}))
		again := do(t, e, call(w, "k", `{ "meta": {"b":[1,2],"a":1.0}, "amount":12e2 }`, semel.Contract{}))
		wantStatus(t, first, semel.StatusCompleted)
		wantStatus(t, again, semel.StatusCompleted)
		if first.Replayed || !again.Replayed || again.Operation.Result.Reference != "ch_1" {
			t.Errorf("first %+v, again %+v", first, again)
		}
		wantEffects(t, w, 1, 1)
	})
}

// M10, C09: another request under a used key names what differs and changes nothing.
func TestConflictNamesTheFields(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := &world{}
		e := newEngine(t, open(), engine.Options{})
		do(t, e, call(w, "k", `{"to":9007199254740993,"amount":100}`, semel.Contract{}))
		out := do(t, e, call(w, "k", `{"to":9007199254740992,"amount":100}`, semel.Contract{}))
		wantStatus(t, out, semel.StatusConflict)
		if len(out.Fields) != 1 || out.Fields[0] != "body.to" {
			t.Errorf("fields %v, want body.to", out.Fields)
		}
		if !strings.Contains(out.Refusal(), "body.to") {
			t.Errorf("refusal %q does not name the field", out.Refusal())
		}
		wantEffects(t, w, 1, 1)
	})
}

// M9: the same key in two scopes is two operations, and two destination keys.
func TestScopesDoNotMeet(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := &world{}
		e := newEngine(t, open(), engine.Options{})
		a, b := call(w, "b", `{}`, semel.Contract{}), call(w, "a|b", `{}`, semel.Contract{})
		a.Scope, b.Scope = "x|a", "x"
		wantStatus(t, do(t, e, a), semel.StatusCompleted)
		wantStatus(t, do(t, e, b), semel.StatusCompleted)
		if _, logical, _ := w.total(); logical != 2 {
			t.Errorf("%d destination keys, want 2", logical)
		}
	})
}

// Law 2, C11: without protection a lost answer is unknown, and no repeat sends.
func TestLostAnswerIsUnknownAndNotSentAgain(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := &world{answer: func(int, *semel.Send) (semel.Event, bool) { return lost("504"), true }}
		store := open()
		e := newEngine(t, store, engine.Options{Resolve: resolve(w, semel.Contract{Protection: semel.Unprotected})})
		for range 4 {
			out := do(t, e, call(w, "k", `{}`, semel.Contract{}))
			wantStatus(t, out, semel.StatusUnknown)
			if out.Next.Kind != semel.MovePerson {
				t.Errorf("next %+v, want a person", out.Next)
			}
		}
		store.Shift(24 * time.Hour)
		if _, err := e.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		out, err := e.Retry(t.Context(), do(t, e, call(w, "k", `{}`, semel.Contract{})).Operation.ID, "operator")
		if err != nil {
			t.Fatal(err)
		}
		wantStatus(t, out, semel.StatusUnsafe)
		wantEffects(t, w, 1, 1)
	})
}

// M6, M21, law 10: inside the window the same bytes go out under the same key.
func TestKeyedIsSentAgainUnderTheSameKey(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := &world{answer: func(n int, _ *semel.Send) (semel.Event, bool) {
			if n == 1 {
				return lost("connection reset"), true
			}
			return confirmed(1), true
		}}
		e := newEngine(t, open(), engine.Options{})
		keyed := semel.Contract{Protection: semel.Keyed, Window: time.Hour, Timeout: time.Second}
		wantStatus(t, do(t, e, call(w, "k", `{"a":1,"b":2}`, keyed)), semel.StatusUnknown)
		out := do(t, e, call(w, "k", `{"b":2,"a":1}`, keyed))
		wantStatus(t, out, semel.StatusCompleted)
		if out.Operation.Attempt != 2 || w.keys[0] != w.keys[1] || w.bodies[0] != w.bodies[1] {
			t.Errorf("attempt %d, keys %v, bodies %v: want the second attempt to send the first one's key and bytes", out.Operation.Attempt, w.keys, w.bodies)
		}
	})
}

// Law 8, C10: past the destination's window nobody sends again.
func TestWindowIsHonoured(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := &world{answer: func(int, *semel.Send) (semel.Event, bool) { return lost("timeout"), true }}
		store := open()
		e := newEngine(t, store, engine.Options{})
		keyed := semel.Contract{Protection: semel.Keyed, Window: time.Hour, Timeout: time.Second}
		wantStatus(t, do(t, e, call(w, "k", `{}`, keyed)), semel.StatusUnknown)
		store.Shift(56 * time.Minute) // the margin is five minutes
		out := do(t, e, call(w, "k", `{}`, keyed))
		wantStatus(t, out, semel.StatusUnknown)
		if out.Next.Kind != semel.MovePerson {
			t.Errorf("next %+v, want a person", out.Next)
		}
		wantEffects(t, w, 1, 1)
	})
}

// Law 3: a refused resend does not speak of the lost first attempt.
func TestRefusedResendStaysUnknown(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := &world{answer: func(n int, _ *semel.Send) (semel.Event, bool) {
			if n == 1 {
				return lost("timeout"), true
			}
			return semel.Event{Kind: semel.EvRefused, Reason: "proxy is dead"}, false
		}}
		e := newEngine(t, open(), engine.Options{})
		keyed := semel.Contract{Protection: semel.Keyed, Window: time.Hour, Timeout: time.Second}
		do(t, e, call(w, "k", `{}`, keyed))
		out := do(t, e, call(w, "k", `{}`, keyed))
		wantStatus(t, out, semel.StatusUnknown)
		wantEffects(t, w, 1, 2)
	})
}

// M20: a known failure permits another attempt, or is handed back, as the contract says.
func TestFailureContract(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := &world{answer: func(n int, _ *semel.Send) (semel.Event, bool) {
			if n == 1 {
				return semel.Event{Kind: semel.EvRefused, Reason: "422"}, false
			}
			return confirmed(n), true
		}}
		e := newEngine(t, open(), engine.Options{})
		c := call(w, "k", `{}`, semel.Contract{OnFailed: semel.ReturnFailed})
		wantStatus(t, do(t, e, c), semel.StatusFailed)
		wantStatus(t, do(t, e, c), semel.StatusFailed)
		wantEffects(t, w, 0, 1)
		c.Contract.OnFailed = semel.Rerun
		out := do(t, e, c)
		wantStatus(t, out, semel.StatusCompleted)
		if out.Operation.Attempt != 2 || w.keys[0] != w.keys[1] {
			t.Errorf("attempt %d under keys %v, want 2 under one key", out.Operation.Attempt, w.keys)
		}
	})
}

// Law 5: after an error that the destination retains under the key, and only
// then, the next attempt has another key.
func TestRetainedErrorStartsANewGeneration(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := &world{answer: func(n int, _ *semel.Send) (semel.Event, bool) {
			if n == 1 {
				return semel.Event{Kind: semel.EvRetained, Reason: "card declined"}, false
			}
			return confirmed(n), true
		}}
		e := newEngine(t, open(), engine.Options{})
		keyed := semel.Contract{Protection: semel.Keyed, Window: time.Hour}
		wantStatus(t, do(t, e, call(w, "k", `{}`, keyed)), semel.StatusFailed)
		wantStatus(t, do(t, e, call(w, "k", `{}`, keyed)), semel.StatusCompleted)
		if w.keys[0] == w.keys[1] || w.keys[1] != semel.DestinationKey("test", "k", 1) {
			t.Errorf("keys %v, want generation 0, then 1", w.keys)
		}
	})
}

// Law 12: a Go error says only that this call sent nothing.
func TestOnlyErrorIsNotAsked(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := &world{}
		store := open()
		e := newEngine(t, store, engine.Options{})
		var notAsked *semel.NotAskedError
		for name, c := range map[string]semel.Call{
			"empty key":        call(w, "", `{}`, semel.Contract{}),
			"NUL in key":       call(w, "a\x00b", `{}`, semel.Contract{}),
			"blank key":        call(w, " \t", `{}`, semel.Contract{}),
			"long key":         call(w, strings.Repeat("k", 256), `{}`, semel.Contract{}),
			"twice a member":   call(w, "k", `{"a":1,"a":2}`, semel.Contract{}),
			"keyed, no window": call(w, "k", `{}`, semel.Contract{Protection: semel.Keyed}),
		} {
			if _, err := e.Do(t.Context(), c); !errors.As(err, &notAsked) {
				t.Errorf("%s: error %v, want *NotAskedError", name, err)
			}
		}
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		if out, err := e.Do(cancelled, call(w, "k", `{}`, semel.Contract{})); err != nil && !errors.As(err, &notAsked) {
			t.Errorf("cancelled: %+v, %v", out, err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Do(t.Context(), call(w, "closed", `{}`, semel.Contract{})); !errors.As(err, &notAsked) {
			t.Errorf("closed store: error %v, want *NotAskedError", err)
		}
	})
}

// M7, M8: absorbed work and regenerated keys are visible.
func TestAbsorbedAndRegeneratedAreVisible(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := &world{}
		store := open()
		e := newEngine(t, store, engine.Options{})
		first := do(t, e, call(w, "k", `{"amount":5}`, semel.Contract{}))
		c := call(w, "k", `{"amount":5}`, semel.Contract{})
		c.Source = "another"
		do(t, e, c)
		events, err := store.Events(t.Context(), first.Operation.ID)
		if err != nil {
			t.Fatal(err)
		}
		if last := events[len(events)-1]; last.Kind != semel.EvJoined || last.By != "another" {
			t.Errorf("last evidence %+v, want joined by another", last)
		}
		fresh := do(t, newEngine(t, open(), engine.Options{Regenerated: 10 * time.Minute}), call(w, "k2", `{"amount":5}`, semel.Contract{}))
		if len(fresh.Warnings) != 1 || !strings.Contains(fresh.Warnings[0], first.Operation.ID.String()) || !strings.Contains(fresh.Warnings[0], fresh.Operation.ID.String()) {
			t.Errorf("warnings %q, want one that names both operations", fresh.Warnings)
		}
		wantEffects(t, w, 2, 2)
	})
}

// Law 9, M25: a synthetic key from before the store's memory is refused.
func TestForgottenKeyIsRefused(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := &world{}
		e := newEngine(t, open(), engine.Options{Forget: 24 * time.Hour})
		old := semel.MintKey(time.Now().Add(-25*time.Hour), [10]byte{1})
		out := do(t, e, call(w, string(old), `{}`, semel.Contract{}))
		wantStatus(t, out, semel.StatusExpired)
		fresh := semel.MintKey(time.Now(), [10]byte{1})
		wantStatus(t, do(t, e, call(w, string(fresh), `{}`, semel.Contract{})), semel.StatusCompleted)
		wantEffects(t, w, 1, 1)
	})
}

// Law 8: the window begins with the first claim; later attempts never move it.
func TestWindowIsAnchoredOnTheFirstClaim(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := &world{answer: func(int, *semel.Send) (semel.Event, bool) { return lost("timeout"), true }}
		store := open()
		e := newEngine(t, store, engine.Options{})
		keyed := semel.Contract{Protection: semel.Keyed, Window: time.Hour, Timeout: time.Second}
		for range 3 {
			wantStatus(t, do(t, e, call(w, "k", `{}`, keyed)), semel.StatusUnknown)
			store.Shift(20 * time.Minute)
		}
		wantStatus(t, do(t, e, call(w, "k", `{}`, keyed)), semel.StatusUnknown)
		wantEffects(t, w, 3, 3)
	})
}
