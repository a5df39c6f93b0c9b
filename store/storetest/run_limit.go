package storetest

import (
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

func acquire(t tb, s RunStore, l semel.Limit, holder semel.ID) semel.Place {
	t.Helper()
	p, err := s.Acquire(t.Context(), l, holder, time.Minute)
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	if now := now(t, s); !p.Taken && (p.At.IsZero() || p.At.After(now.Add(time.Hour))) {
		t.Fatalf("ask again at %v, now it is %v", p.At, now)
	}
	return p
}

func wantPlace(t tb, s RunStore, what string, l semel.Limit, holder semel.ID, want bool) {
	t.Helper()
	if got := acquire(t, s, l, holder); got.Taken != want {
		t.Fatalf("%s: taken %v, want %v", what, got.Taken, want)
	}
}

// testAtOnce: no more places are taken at a time than there are, through all
// handles; a place is free after its release and after its lease; nobody has
// two.
func testAtOnce(t *testing.T, h Harness) {
	stores := []RunStore{openRuns(t, h), openRuns(t, h)}
	s := stores[0]
	l := semel.Limit{Name: "bank", AtOnce: 3}
	holders := make([]semel.ID, 12)
	var mu sync.Mutex
	var taken []semel.ID
	var wg sync.WaitGroup
	for i := range holders {
		holders[i] = newToken()
		wg.Go(func() {
			for range 2 {
				p, err := stores[i%2].Acquire(t.Context(), l, holders[i], time.Minute)
				if err != nil {
					t.Errorf("acquire: %v", err)
				}
				mu.Lock()
				if p.Taken {
					taken = append(taken, holders[i])
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if n := len(idSet(taken...)); n != 3 {
		t.Fatalf("%d places are taken, want 3", n)
	}
	x, y := newToken(), newToken()
	wantPlace(t, s, "none is free", l, x, false)
	wantPlace(t, s, "its own", l, taken[0], true)
	wantPlace(t, s, "another limit", semel.Limit{Name: "mail", AtOnce: 1}, x, true)
	for range 2 {
		if err := stores[1].Release(t.Context(), l, taken[0]); err != nil {
			t.Fatal(err)
		}
	}
	wantPlace(t, s, "one was released", l, x, true)
	wantPlace(t, s, "and taken", l, y, false)
	h.Shift(40 * time.Second)
	wantPlace(t, s, "its own", l, x, true)
	h.Shift(30 * time.Second)
	wantPlace(t, s, "two have lapsed", l, y, true)
	wantPlace(t, s, "two have lapsed", l, newToken(), true)
	wantPlace(t, s, "x asked again, so its place has not", l, newToken(), false)
	wantPlace(t, s, "no limit", semel.Limit{Name: "bank"}, newToken(), true)
}

// testRate: places come at their pace, after a burst; the answer says when.
func testRate(t *testing.T, h Harness) {
	s := openRuns(t, h)
	l := semel.Limit{Name: "bank", Every: 10 * time.Second, Burst: 3}
	take := func(what string, want int) semel.Place {
		t.Helper()
		for range want {
			wantPlace(t, s, what, l, newToken(), true)
		}
		p := acquire(t, s, l, newToken())
		if p.Taken {
			t.Fatalf("%s: more than %d", what, want)
		}
		return p
	}
	p := take("a burst", 3)
	if in := p.At.Sub(now(t, s)); in < 5*time.Second || in > 10*time.Second {
		t.Fatalf("ask again in %v", in)
	}
	h.Shift(11 * time.Second)
	take("after a pause of one", 1)
	h.Shift(21 * time.Second)
	take("after a pause of two", 2)
	h.Shift(time.Hour)
	take("after a rest", 3)
	both := semel.Limit{Name: "both", Every: 10 * time.Second, AtOnce: 1}
	a, b := newToken(), newToken()
	wantPlace(t, s, "first", both, a, true)
	wantPlace(t, s, "again", both, a, true)
	h.Shift(11 * time.Second)
	wantPlace(t, s, "the place is taken", both, b, false)
	wantPlace(t, s, "the place is taken", both, b, false)
	if err := s.Release(t.Context(), both, a); err != nil {
		t.Fatal(err)
	}
	wantPlace(t, s, "who found no place used nothing up", both, b, true)
	if err := s.Release(t.Context(), both, b); err != nil {
		t.Fatal(err)
	}
	wantPlace(t, s, "too soon", both, a, false)
}
