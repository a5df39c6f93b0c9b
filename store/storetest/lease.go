package storetest

import (
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

// testRenew: M2. Only the current attempt renews, only while its lease lasts,
// and learns there that somebody asked to stop it (law 16).
func testRenew(t *testing.T, h Harness) {
	s, other := h.Open(t), h.Open(t)
	o := claim(t, s, contract())
	h.Shift(40 * time.Second)
	r, err := s.Renew(t.Context(), o.ID, 1, time.Minute)
	if err != nil || r.Cancel {
		t.Fatalf("renew: %+v, %v", r, err)
	}
	if left := r.Until.Sub(now(t, s)); left < 55*time.Second || left > time.Minute {
		t.Fatalf("renewed for %v, want a minute", left)
	}
	renewed := load(t, other, o.ID)
	if !renewed.LeaseUntil.Equal(r.Until) {
		t.Fatalf("lease until %v, want %v", renewed.LeaseUntil, r.Until)
	}
	for _, attempt := range []int{0, 2} {
		_, err = s.Renew(t.Context(), o.ID, attempt, time.Minute)
		wantErr(t, "renew another attempt", err, semel.ErrStale)
	}
	// The event was decided on the lease of the claim; the renewed one counts.
	joined := commit(t, s, o, semel.Event{Kind: semel.EvCancelAsked, By: "person"})
	if got := load(t, s, o.ID); !got.LeaseUntil.Equal(r.Until) || got.Version != joined.Version {
		t.Fatalf("an event moved a renewed lease: %v, want %v", got.LeaseUntil, r.Until)
	}
	h.Shift(30 * time.Second)
	if due := dueIDs(t, s); due[o.ID] {
		t.Fatal("a renewed operation is due when its first lease ends")
	}
	if r, err = other.Renew(t.Context(), o.ID, 1, time.Minute); err != nil || !r.Cancel {
		t.Fatalf("renew after a cancel request: %+v, %v, want Cancel", r, err)
	}
	shorter, err := s.Renew(t.Context(), o.ID, 1, time.Second)
	if err != nil || shorter.Until.Before(r.Until) {
		t.Fatalf("renewing shortened the lease: %v, want %v, error %v", shorter.Until, r.Until, err)
	}
	h.Shift(time.Minute)
	_, err = s.Renew(t.Context(), o.ID, 1, time.Minute)
	wantErr(t, "renew a lapsed lease", err, semel.ErrStale)
	o = load(t, s, o.ID)
	o = commit(t, s, o, lost(1))
	_, err = s.Renew(t.Context(), o.ID, 1, time.Minute)
	wantErr(t, "renew what is not in progress", err, semel.ErrStale)
}

// testLapsed: M1, M15, law 4. A lapsed lease is listed as unknown and due
// without anybody having written so; writing it is refused while it lasts,
// also where a renewal came between; the outcome still counts.
func testLapsed(t *testing.T, h Harness) {
	s, other := h.Open(t), h.Open(t)
	o := claim(t, s, contract())
	kept := claim(t, s, contract())
	if listIDs(t, other, semel.Filter{State: semel.Unknown})[o.ID] || !listIDs(t, other, semel.Filter{State: semel.InProgress})[o.ID] {
		t.Fatal("a fresh claim is not listed as in progress")
	}
	h.Shift(50 * time.Second)
	lapsed := now(t, s).Add(time.Hour) // what a confused caller estimates
	early, err := o.Change(semel.Event{Kind: semel.EvLapsed, Attempt: 1, At: lapsed}, newToken())
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Commit(t.Context(), early)
	wantErr(t, "lapsed before the lease ended", err, semel.ErrStale)
	if _, err := s.Renew(t.Context(), kept.ID, 1, time.Minute); err != nil {
		t.Fatal(err)
	}
	h.Shift(15 * time.Second)
	_, err = s.Commit(t.Context(), change(t, s, kept, semel.Event{Kind: semel.EvLapsed, Attempt: 1}))
	wantErr(t, "lapsed, but renewed by another", err, semel.ErrStale)
	if got := load(t, s, kept.ID); got.State != semel.InProgress || got.Version != 1 {
		t.Fatalf("a renewed operation: %s, version %d", got.State, got.Version)
	}
	for _, s := range []semel.Store{s, other} {
		if !listIDs(t, s, semel.Filter{State: semel.Unknown})[o.ID] || listIDs(t, s, semel.Filter{State: semel.InProgress})[o.ID] {
			t.Fatal("a lapsed claim is not listed as unknown")
		}
		if due := dueIDs(t, s); !due[o.ID] || due[kept.ID] {
			t.Fatal("what is due is not just the lapsed claim")
		}
	}
	o = commit(t, other, o, semel.Event{Kind: semel.EvLapsed, Attempt: 1, Reason: "its worker is gone"})
	if o.State != semel.Unknown {
		t.Fatalf("lapsed: %s, want unknown", o.State)
	}
	o = commit(t, s, o, confirmed(1, "late"))
	same(t, "settled by its late answer (M17)", load(t, other, o.ID), o)
}
