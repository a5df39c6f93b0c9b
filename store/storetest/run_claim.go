package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

// testClaimOrder: high priority first, then the longest overdue, and only the
// workflows and versions that were asked for.
func testClaimOrder(t *testing.T, h Harness) {
	s := openRuns(t, h)
	var started []semel.Run
	for _, n := range []semel.NewRun{
		{Priority: semel.Low}, {}, {Priority: semel.High}, {}, {Priority: semel.High}, {Workflow: "shipping"}, {Version: 2}, {Workflow: "shipping", Priority: semel.High},
	} {
		of := newRun()
		of.Priority = n.Priority
		if n.Workflow != "" {
			of.Workflow = n.Workflow
		}
		if n.Version != 0 {
			of.Version = n.Version
		}
		started = append(started, start(t, s, of))
		h.Shift(time.Second)
	}
	take := func(limit int, refs []semel.WorkflowRef, want ...int) {
		t.Helper()
		runs, err := s.Claim(t.Context(), worker, refs, limit)
		if err != nil {
			t.Fatal(err)
		}
		ids := []semel.ID{}
		for _, i := range want {
			ids = append(ids, started[i].ID)
		}
		diff(t, fmt.Sprintf("claimed of %v", refs), runIDs(runs), ids)
		for _, r := range runs {
			if left := r.LeaseUntil.Sub(now(t, s)); r.Attempt != 1 || r.By != worker.By || r.Crashes != 0 || left < 50*time.Second || left > time.Minute || !r.DueAt.Equal(r.LeaseUntil) {
				t.Fatalf("claimed %+v", r)
			}
			diff(t, "a claimed run", loadRun(t, s, r.ID), r)
		}
	}
	take(1, billing, 2)
	take(2, billing, 4, 1)
	take(0, billing)
	take(9, []semel.WorkflowRef{{Name: "nothing", Version: 1}})
	take(9, nil)
	take(9, []semel.WorkflowRef{{Name: workflow, Version: 2}, {Name: "shipping", Version: 1}, {Name: workflow, Version: 1}}, 7, 3, 5, 6, 0)
	take(9, billing)
}

// testClaimRace: M14. No two workers ever hold one run.
func testClaimRace(t *testing.T, h Harness) {
	const runs, workers = 120, 12
	stores := []RunStore{openRuns(t, h), openRuns(t, h), openRuns(t, h)}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range runs / 4 {
				if _, _, err := stores[i%3].Start(t.Context(), newRun(), nil); err != nil {
					t.Errorf("start: %v", err)
				}
			}
		})
	}
	var mu sync.Mutex
	holders := map[semel.ID][]string{}
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(holders)
	}
	began := time.Now()
	for i := range workers {
		by := semel.RunClaim{By: fmt.Sprintf("worker-%d", i), Lease: time.Hour}
		wg.Go(func() {
			for count() < runs && time.Since(began) < 20*time.Second {
				got, err := stores[i%3].Claim(t.Context(), by, billing, 5)
				if err != nil {
					t.Errorf("claim: %v", err)
					return
				}
				mu.Lock()
				for _, r := range got {
					if r.By != by.By || r.Attempt != 1 {
						t.Errorf("%s got a run of %s, attempt %d", by.By, r.By, r.Attempt)
					}
					holders[r.ID] = append(holders[r.ID], by.By)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(holders) != runs {
		t.Fatalf("%d of %d runs were claimed", len(holders), runs)
	}
	for id, by := range holders {
		if len(by) != 1 {
			t.Errorf("run %s was claimed by %v", id, by)
		}
	}
}

// testCrashes: M1. A run whose worker died is claimed when its lease ends, and
// not before; the crash is counted and noted until an execution ends by its
// own word.
func testCrashes(t *testing.T, h Harness) {
	s, other := openRuns(t, h), openRuns(t, h)
	r := begin(t, s)
	for crashes := 1; crashes <= 3; crashes++ {
		h.Shift(50 * time.Second)
		if runs := claimRuns(t, other); len(runs) != 0 {
			t.Fatalf("claimed %v, which another worker holds", runIDs(runs))
		}
		h.Shift(11 * time.Second)
		next := claimRun(t, other, r.ID)
		if next.Attempt != r.Attempt+1 || next.Crashes != crashes {
			t.Fatalf("claimed again: attempt %d, %d crashes, want %d and %d", next.Attempt, next.Crashes, r.Attempt+1, crashes)
		}
		r = next
	}
	diff(t, "notes", noteKinds(t, s, r.ID), []string{"lapsed", "lapsed", "lapsed"})
	notes, err := s.Notes(t.Context(), r.ID)
	if err != nil || notes[0].By != worker.By {
		t.Fatalf("notes %+v, error %v", notes, err)
	}
	r = end(t, s, r, semel.RunNext{State: semel.RunWaiting, DueAt: now(t, s)})
	if r.Crashes != 0 || !r.LeaseUntil.IsZero() {
		t.Fatalf("after an execution: %d crashes, lease until %v", r.Crashes, r.LeaseUntil)
	}
	if r = claimRun(t, s, r.ID); r.Crashes != 0 || r.Attempt != 5 {
		t.Fatalf("claimed after that: %d crashes, attempt %d", r.Crashes, r.Attempt)
	}
}

// testRenewRuns: only the holder renews, only while its lease lasts, and sees
// what was asked of the run.
func testRenewRuns(t *testing.T, h Harness) {
	s, other := openRuns(t, h), openRuns(t, h)
	a, b := begin(t, s), begin(t, s)
	renew := func(what string, lease time.Duration, want ...semel.Run) []semel.Run {
		t.Helper()
		all := []semel.RunFence{fence(a), {Run: a.ID, Attempt: 2}, {Run: a.ID}, fence(b), {Run: newToken(), Attempt: 1}}
		got, err := s.RenewRuns(t.Context(), all, lease)
		if err != nil {
			t.Fatal(err)
		}
		diff(t, what, runIDs(got), runIDs(want))
		return got
	}
	h.Shift(40 * time.Second)
	for _, r := range renew("renewed", time.Minute, a, b) {
		if left := r.LeaseUntil.Sub(now(t, s)); left < 50*time.Second || left > time.Minute || r.Cancel || r.Paused || !r.DueAt.Equal(r.LeaseUntil) {
			t.Fatalf("renewed %+v", r)
		}
	}
	until := renew("renewed for less", time.Second, a, b)[0].LeaseUntil
	if left := until.Sub(now(t, s)); left < 50*time.Second {
		t.Fatalf("renewing shortened the lease to %v", left)
	}
	changeRun(t, other, a.ID, semel.CancelRun)
	changeRun(t, other, b.ID, semel.PauseRun)
	got := renew("renewed after requests", time.Second, a, b)
	if !got[0].Cancel || got[0].Paused || got[1].Cancel || !got[1].Paused {
		t.Fatalf("the holder does not see what was asked: %+v", got)
	}
	h.Shift(30 * time.Second)
	if runs := claimRuns(t, other); len(runs) != 0 {
		t.Fatalf("claimed %v, whose lease was renewed", runIDs(runs))
	}
	suspend(t, s, b)
	renew("renewed after the execution of b", time.Minute, a)
	h.Shift(2 * time.Minute)
	renew("renewed after the lease", time.Minute)
	if got, err := s.RenewRuns(t.Context(), nil, time.Minute); err != nil || len(got) != 0 {
		t.Fatalf("renewed nothing: %v, error %v", got, err)
	}
}
