package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

// testTakenKey: M10, law 9. A claim of a taken key alters nothing.
func testTakenKey(t *testing.T, h Harness) {
	s := h.Open(t)
	o := claim(t, s, contract())
	other := fresh(now(t, s), o.Key, byHand())
	other.Request.Body = []byte("another body")
	_, err := s.Commit(t.Context(), change(t, s, other, claimed(1)))
	wantErr(t, "a second first claim", err, semel.ErrStale)
	same(t, "the first operation", load(t, s, o.ID), o)
	_, err = s.LoadID(t.Context(), other.ID)
	wantErr(t, "the refused claim", err, semel.ErrNotFound)
}

// testNotFound: what was never claimed is not found, by any way.
func testNotFound(t *testing.T, h Harness) {
	s := h.Open(t)
	o := fresh(now(t, s), newKey(), contract())
	_, err := s.Load(t.Context(), o.Scope, o.Key)
	wantErr(t, "Load", err, semel.ErrNotFound)
	_, err = s.LoadID(t.Context(), o.ID)
	wantErr(t, "LoadID", err, semel.ErrNotFound)
	_, err = s.Events(t.Context(), o.ID)
	wantErr(t, "Events", err, semel.ErrNotFound)
	_, err = s.Renew(t.Context(), o.ID, 1, time.Minute)
	wantErr(t, "Renew", err, semel.ErrStale)
}

// testFence: law 6. Of many changes of one version exactly one is made,
// through whichever handle, for every place in which a version is kept.
func testFence(t *testing.T, h Harness) {
	stores := []semel.Store{h.Open(t), h.Open(t)}
	o := claim(t, stores[0], contract())
	for range 4 {
		var mu sync.Mutex
		var won []semel.Operation
		var wg sync.WaitGroup
		for i := range 12 {
			s := stores[i%len(stores)]
			ev := semel.Event{Kind: semel.EvJoined, By: fmt.Sprintf("source-%d", i)}
			c := change(t, s, o, ev)
			wg.Go(func() {
				after, err := s.Commit(t.Context(), c)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won = append(won, after)
					return
				}
				wantErrorf(t, "a change that lost", err, semel.ErrStale)
			})
		}
		wg.Wait()
		if len(won) != 1 {
			t.Fatalf("%d changes of version %d were made, want exactly 1", len(won), o.Version)
		}
		o = won[0]
		same(t, "the operation", load(t, stores[1], o.ID), o)
	}
}

// testLostAcknowledgement: section 6. A change that is repeated with its token
// gets the answer of the first time, at once and after further changes; the
// same change with another token does not.
func testLostAcknowledgement(t *testing.T, h Harness) {
	s, other := h.Open(t), h.Open(t)
	o := fresh(now(t, s), newKey(), contract())
	var changes []semel.Change
	var answers []semel.Operation
	for _, ev := range []semel.Event{claimed(1), lost(1), {Kind: semel.EvJoined, By: "source"}, {Kind: semel.EvNoAnswer, By: "recovery"}, confirmed(1, "ch_1")} {
		c := change(t, s, o, ev)
		after, err := s.Commit(t.Context(), c)
		if err != nil {
			t.Fatalf("%s: %v", ev.Kind, err)
		}
		changes, answers = append(changes, c), append(answers, after)
		h.Shift(time.Second)
		for i := range changes {
			again, err := other.Commit(t.Context(), changes[i])
			if err != nil {
				t.Fatalf("repeat %s after %s: %v", changes[i].Event.Kind, ev.Kind, err)
			}
			same(t, fmt.Sprintf("repeat %s after %s", changes[i].Event.Kind, ev.Kind), again, answers[i])
		}
		if c.Before.Version > 0 {
			c.Token = newToken()
			_, err = s.Commit(t.Context(), c)
			wantErr(t, "the same change with another token", err, semel.ErrStale)
		}
		o = after
	}
	same(t, "in the end", load(t, s, o.ID), o)
	events, err := s.Events(t.Context(), o.ID)
	if err != nil || len(events) != len(changes) {
		t.Fatalf("got %d events, error %v, want %d", len(events), err, len(changes))
	}
}

// testNeighbours: section 6, M5. Commits that share a transaction have their
// own answers: neither a stale nor an impossible one touches its neighbours.
func testNeighbours(t *testing.T, h Harness) {
	s := h.Open(t)
	const n = 64
	type call struct {
		change semel.Change
		bad    error
	}
	var calls []call
	for i := range n {
		o := claim(t, s, contract())
		c := call{change: change(t, s, o, confirmed(1, o.ID.String()))}
		switch i % 4 {
		case 1:
			commit(t, s, o, semel.Event{Kind: semel.EvJoined, By: "source"})
			c.bad = semel.ErrStale
		case 2: // identities that the database may not be able to hold
			o = fresh(now(t, s), semel.Key(strings.Repeat("k", 300)), contract())
			if i%8 == 2 {
				o.Key = "nul\x00" + newKey()
			}
			c = call{change: change(t, s, o, claimed(1)), bad: errAny}
		}
		calls = append(calls, c)
	}
	var wg sync.WaitGroup
	start := make(chan struct{})
	for _, c := range calls {
		wg.Go(func() {
			<-start
			_, err := s.Commit(t.Context(), c.change)
			switch {
			case errors.Is(c.bad, errAny):
				if err == nil {
					t.Errorf("an identity that cannot be kept was claimed: %q", c.change.Before.Key)
				}
			default:
				wantErrorf(t, "commit", err, c.bad)
			}
		})
	}
	close(start)
	wg.Wait()
	for _, c := range calls {
		if c.bad == nil {
			if got := load(t, s, c.change.Before.ID); got.State != semel.Completed {
				t.Errorf("a sound commit beside bad ones: state %s, want completed", got.State)
			}
		}
	}
}

var errAny = errors.New("any error")

// testCancelledCaller: M15, law 2. A caller whose context has ended learns
// that nothing was written, and nothing was.
func testCancelledCaller(t *testing.T, h Harness) {
	s := h.Open(t)
	o := fresh(now(t, s), newKey(), contract())
	c := change(t, s, o, claimed(1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Commit(ctx, c)
	wantErr(t, "a cancelled caller", err, semel.ErrUnavailable)
	_, err = s.LoadID(t.Context(), o.ID)
	wantErr(t, "its claim", err, semel.ErrNotFound)
}

// testClosed: a closed store says that it wrote nothing; closing twice is fine.
func testClosed(t *testing.T, h Harness) {
	s := h.Open(t)
	o := claim(t, s, contract())
	c := change(t, s, o, confirmed(1, "ch_1"))
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
	}
	_, err := s.Commit(t.Context(), c)
	wantErr(t, "commit after close", err, semel.ErrUnavailable)
	_, err = s.LoadID(t.Context(), o.ID)
	wantErr(t, "load after close", err, semel.ErrUnavailable)
}
