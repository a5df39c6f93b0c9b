package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

// Law 6, C20: a worker that was paused before it sent, and lost its claim,
// sends nothing.
func TestFencedWorkerSendsNothing(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		store, other := open(), open()
		paused, resumed := make(chan struct{}), make(chan struct{})
		w := &world{before: func(int) { close(paused); <-resumed }}
		e := newEngine(t, store, engine.Options{Lease: time.Hour}) // no renewal in this test
		done := make(chan semel.Outcome, 1)
		go func() {
			out, _ := e.Do(t.Context(), call(w, "k", `{}`, semel.Contract{}))
			done <- out
		}()
		<-paused
		other.Shift(2 * time.Hour)
		rescuer := newEngine(t, other, engine.Options{})
		quick := &world{}
		wantStatus(t, do(t, rescuer, call(quick, "k", `{}`, semel.Contract{})), semel.StatusUnknown)
		time.Sleep(1100 * time.Millisecond) // longer than a claim counts as fresh
		close(resumed)
		out := <-done
		wantStatus(t, out, semel.StatusFailed) // the only attempt proved that it sent nothing
		wantEffects(t, w, 0, 1)
		wantEffects(t, quick, 0, 0)
	})
}

// Law 7: after send_by the first byte may not leave, whatever the store says.
func TestTooLateToSend(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := &world{before: func(int) { time.Sleep(400 * time.Millisecond) }}
		e := newEngine(t, open(), engine.Options{Lease: 300 * time.Millisecond})
		out := do(t, e, call(w, "k", `{}`, semel.Contract{}))
		wantStatus(t, out, semel.StatusFailed)
		wantEffects(t, w, 0, 1)
	})
}

// M15, M17, C14: an answer after the timeout settles the unknown.
func TestLateAnswerSettles(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		store := open()
		w := &world{}
		late := make(chan func(semel.Event), 1)
		w.answer = func(_ int, s *semel.Send) (semel.Event, bool) {
			late <- s.Late
			return semel.Event{Kind: semel.EvLost, Reason: "no answer in time"}, true
		}
		e := newEngine(t, store, engine.Options{Late: true})
		out := do(t, e, call(w, "k", `{}`, semel.Contract{}))
		wantStatus(t, out, semel.StatusUnknown)
		(<-late)(confirmed(7))
		again := do(t, e, call(w, "k", `{}`, semel.Contract{}))
		wantStatus(t, again, semel.StatusCompleted)
		if got := again.Operation.Result.Reference; got != "ch_7" {
			t.Errorf("reference %q, want that of the late answer", got)
		}
		wantEffects(t, w, 1, 1)
	})
}

// Law 2: a destination that panics, or says something that is no evidence, has
// lost its attempt.
func TestNonsenseIsLost(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		e := newEngine(t, open(), engine.Options{})
		w := &world{answer: func(int, *semel.Send) (semel.Event, bool) { panic("boom") }}
		out := do(t, e, call(w, "panics", `{}`, semel.Contract{}))
		wantStatus(t, out, semel.StatusUnknown)
		if !strings.Contains(out.Operation.Reason, "boom") {
			t.Errorf("reason %q does not say what happened", out.Operation.Reason)
		}
		for _, kind := range []semel.EventKind{"", "sent", semel.EvHappened, semel.EvDidNotHappen, semel.EvAbsent} {
			w := &world{answer: func(int, *semel.Send) (semel.Event, bool) { return semel.Event{Kind: kind}, true }}
			wantStatus(t, do(t, e, call(w, "answers "+string(kind), `{}`, semel.Contract{})), semel.StatusUnknown)
		}
	})
}

// C29: a destination that does not come back does not hold its caller, and
// what it says in the end is evidence.
func TestDestinationThatDoesNotComeBack(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		ctx, cancel := context.WithCancel(t.Context())
		back := make(chan struct{})
		w := &world{answer: func(int, *semel.Send) (semel.Event, bool) { cancel(); <-back; return confirmed(1), true }}
		e := newEngine(t, open(), engine.Options{})
		c := call(w, "k", `{}`, semel.Contract{})
		out, err := e.Do(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		wantStatus(t, out, semel.StatusInProgress)
		wantStatus(t, do(t, e, c), semel.StatusInProgress)
		close(back)
		c.Wait = 10 * time.Second
		wantStatus(t, do(t, e, c), semel.StatusCompleted)
		wantEffects(t, w, 1, 1)
	})
}

// Law 16: a cancel that is seen before the first byte is confirmed; only a
// person may start the operation again.
func TestCancelBeforeSending(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		store := open()
		paused, resumed := make(chan struct{}), make(chan struct{})
		w := &world{before: func(int) { close(paused); <-resumed }}
		e := newEngine(t, store, engine.Options{})
		done := make(chan semel.Outcome, 1)
		c := call(w, "k", `{}`, semel.Contract{})
		go func() {
			out, _ := e.Do(t.Context(), c)
			done <- out
		}()
		<-paused
		o, err := store.Load(t.Context(), c.Scope, c.Key)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Cancel(t.Context(), o.ID, "op", "wrong amount"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1100 * time.Millisecond) // the claim is no longer fresh: begin asks the store
		close(resumed)
		out := <-done
		wantStatus(t, out, semel.StatusFailed)
		if !out.Operation.Cancelled {
			t.Errorf("operation %+v is not cancelled", out.Operation)
		}
		w.before = nil
		again := do(t, e, c)
		wantStatus(t, again, semel.StatusFailed)
		if again.Next.Kind != semel.MovePerson {
			t.Errorf("next %+v, want a person", again.Next)
		}
		wantEffects(t, w, 0, 1)
	})
}

// Law 16, C32: a cancel after sending does not turn into "cancelled".
func TestCancelAfterSendingFollowsTheDestination(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		store := open()
		sent, back := make(chan struct{}), make(chan struct{})
		w := &world{answer: func(int, *semel.Send) (semel.Event, bool) { close(sent); <-back; return confirmed(1), true }}
		e := newEngine(t, store, engine.Options{})
		done := make(chan semel.Outcome, 1)
		c := call(w, "k", `{}`, semel.Contract{})
		go func() {
			out, _ := e.Do(t.Context(), c)
			done <- out
		}()
		<-sent
		o, err := store.Load(t.Context(), c.Scope, c.Key)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if o, err = e.Cancel(t.Context(), o.ID, "op", "changed my mind"); err != nil {
				t.Fatal(err)
			}
		}
		if o.State != semel.InProgress || !o.Cancel {
			t.Errorf("after the request: %s, cancel %v; want in progress, requested", o.State, o.Cancel)
		}
		close(back)
		wantStatus(t, <-done, semel.StatusCompleted)
		if _, err := e.Cancel(t.Context(), o.ID, "op", "too late"); err == nil {
			t.Error("a cancel after completion was accepted")
		}
	})
}

// The lease is renewed while the action runs, so a slow action is not unknown.
func TestLeaseIsRenewed(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		sent, back := make(chan struct{}), make(chan struct{})
		w := &world{answer: func(int, *semel.Send) (semel.Event, bool) { close(sent); <-back; return confirmed(1), true }}
		e, other := newEngine(t, open(), engine.Options{Lease: 3 * time.Second}), newEngine(t, open(), engine.Options{})
		done := make(chan semel.Outcome, 1)
		c := call(w, "k", `{}`, semel.Contract{})
		go func() { done <- do(t, e, c) }()
		<-sent
		time.Sleep(3500 * time.Millisecond) // longer than the lease
		wantStatus(t, do(t, other, c), semel.StatusInProgress)
		close(back)
		wantStatus(t, <-done, semel.StatusCompleted)
		wantEffects(t, w, 1, 1)
	})
}

// A request whose credentials are not stored is sent only by a caller who
// brings them.
func TestWithheldHeadersAreNeeded(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		store := open()
		w := &world{answer: func(n int, s *semel.Send) (semel.Event, bool) {
			if s.Withheld["Authorization"] != "Bearer x" {
				return semel.Event{Kind: semel.EvRefused, Reason: "401"}, false
			}
			if n == 1 {
				return lost("timeout"), true
			}
			return confirmed(n), true
		}}
		keyed := semel.Contract{Protection: semel.Keyed, Window: time.Hour, Timeout: time.Second}
		e := newEngine(t, store, engine.Options{Resolve: resolve(w, keyed)})
		c := call(w, "k", `{}`, keyed)
		c.Request.Withheld, c.Withheld = []string{"Authorization"}, map[string]string{"Authorization": "Bearer x"}
		wantStatus(t, do(t, e, c), semel.StatusUnknown)
		store.Shift(time.Minute)
		if _, err := e.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantEffects(t, w, 1, 1)
		without := c
		without.Withheld = nil
		out := do(t, e, without)
		wantStatus(t, out, semel.StatusUnknown)
		wantEffects(t, w, 1, 1)
		if !out.Next.Caller || !strings.Contains(out.Next.Reason, "Authorization") {
			t.Errorf("next %+v does not say what is needed", out.Next)
		}
		wantStatus(t, do(t, e, c), semel.StatusCompleted)
	})
}

// Law 1: one attempt begins once; a destination that asks again may not send.
func TestOneAttemptBeginsOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := &world{answer: func(_ int, s *semel.Send) (semel.Event, bool) {
			if err := s.Begin(); err == nil {
				t.Error("a second send was allowed")
			}
			return confirmed(1), true
		}}
		wantStatus(t, do(t, newEngine(t, open(), engine.Options{}), call(w, "k", `{}`, semel.Contract{})), semel.StatusCompleted)
	})
}
