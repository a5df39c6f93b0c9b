package storetest

import (
	"sync"
	"testing"

	"github.com/semel-dev/semel"
)

// testFirstClaim: M14. Of many simultaneous first claims of one identity,
// through several handles, exactly one is made; the others learn that they are
// stale, and read the winner.
func testFirstClaim(t *testing.T, h Harness) {
	const handles, each, keys = 3, 8, 5
	stores := make([]semel.Store, handles)
	for i := range stores {
		stores[i] = h.Open(t)
	}
	for range keys {
		key := newKey()
		var mu sync.Mutex
		var won []semel.Operation
		var wg sync.WaitGroup
		start := make(chan struct{})
		for i := range handles * each {
			s := stores[i%handles]
			c := change(t, s, fresh(now(t, s), key, contract()), claimed(1))
			wg.Go(func() {
				<-start
				o, err := s.Commit(t.Context(), c)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					won = append(won, o)
				default:
					wantErrorf(t, "a claim that lost", err, semel.ErrStale)
				}
			})
		}
		close(start)
		wg.Wait()
		if len(won) != 1 {
			t.Fatalf("%d claims were made, want exactly 1", len(won))
		}
		for _, s := range stores {
			got, err := s.Load(t.Context(), scope, key)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "the operation as every handle reads it", got, won[0])
		}
	}
}

// testOutcome: M13, M16. Claim and outcome are read back as they were written,
// by every handle and after a restart.
func testOutcome(t *testing.T, h Harness) {
	s := h.Open(t)
	o := claim(t, s, contract())
	same(t, "claimed", load(t, s, o.ID), o)
	o = commit(t, s, o, confirmed(1, "ch_1"))
	same(t, "completed", load(t, s, o.ID), o)
	same(t, "completed, another handle", load(t, h.Open(t), o.ID), o)
	if err := s.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	same(t, "completed, after a restart", load(t, h.Open(t), o.ID), o)
}
