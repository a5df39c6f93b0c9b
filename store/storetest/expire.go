package storetest

import (
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

// testExpire: M25, law 4. Retention makes tombstones of old settled
// operations, and of nothing else: unknown ones, incidents, running and young
// ones stay whole. A tombstone is still known by its key.
func testExpire(t *testing.T, h Harness) {
	s := h.Open(t)
	x, ok := s.(Expirer)
	if !ok {
		t.Fatal("the store has no Expire")
	}
	completed := commit(t, s, claim(t, s, contract()), confirmed(1, "ch"))
	completed = commit(t, s, completed, semel.Event{Kind: semel.EvJoined, By: "source"})
	completed = commit(t, s, completed, confirmed(1, "ch"))
	failed := commit(t, s, claim(t, s, contract()), refused(1))
	kept := []semel.Operation{
		commit(t, s, claim(t, s, contract()), lost(1)),
		commit(t, s, claim(t, s, byHand()), lost(1)),
		incident(t, s, claim(t, s, contract())),
		claim(t, s, contract()),
	}
	h.Shift(24 * time.Hour)
	before := now(t, s)
	h.Shift(time.Second)
	kept = append(kept, commit(t, s, claim(t, s, contract()), confirmed(1, "young")))

	if n, err := x.Expire(t.Context(), completed.CreatedAt, 100); n != 0 || err != nil {
		t.Fatalf("expire before all: %d, %v", n, err)
	}
	if n, err := x.Expire(t.Context(), before, 1); n != 1 || err != nil {
		t.Fatalf("expire one: %d, %v", n, err)
	}
	for _, want := range []int{1, 0, 0} {
		if n, err := x.Expire(t.Context(), before, 100); n != want || err != nil {
			t.Fatalf("expire: %d, %v, want %d", n, err, want)
		}
	}
	for _, o := range kept {
		same(t, "kept", load(t, s, o.ID), o)
	}
	for _, o := range []semel.Operation{completed, failed} {
		got, err := h.Open(t).Load(t.Context(), o.Scope, o.Key)
		if err != nil {
			t.Fatal(err)
		}
		want, err := o.Apply(semel.Event{Kind: semel.EvExpired, At: got.UpdatedAt})
		if err != nil {
			t.Fatal(err)
		}
		same(t, "tombstone", got, want)
		events, err := s.Events(t.Context(), o.ID)
		if err != nil || len(events) != got.Version {
			t.Fatalf("a tombstone has %d events, error %v", len(events), err)
		}
		for _, ev := range events {
			if ev.Result != nil && ev.Result.Body != nil {
				t.Errorf("a tombstone still holds the answer of %s", ev.Kind)
			}
		}
		_, err = s.Commit(t.Context(), change(t, s, fresh(now(t, s), o.Key, contract()), claimed(1)))
		wantErr(t, "a claim of an expired key", err, semel.ErrStale)
	}
}
