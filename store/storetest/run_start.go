package storetest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

// testStart: a run is read back as it was started, by every handle; its key
// finds it, whatever the version and the input of who asks again.
func testStart(t *testing.T, h Harness) {
	s, other := openRuns(t, h), openRuns(t, h)
	n := newRun()
	n.Definition, n.Priority, n.Parent, n.ParentStep = "sha256:1", semel.High, newToken(), "bill"
	n.Trigger = semel.Trigger{Kind: semel.BySchedule, By: "anna", Tick: &semel.Tick{At: now(t, s), Label: "2026-11-29", Date: "2026-11-29"}}
	n.Input = []byte(`{"amount": 9007199254740993, "to": "a"}`)
	r := start(t, s, n)
	fp, err := n.Fingerprint()
	if err != nil {
		t.Fatal(err)
	}
	at := r.CreatedAt
	want := semel.Run{
		ID: r.ID, Workflow: n.Workflow, Version: 1, Definition: n.Definition, Key: n.Key, Input: n.Input, Fingerprint: fp, Trigger: n.Trigger,
		Priority: semel.High, Parent: n.Parent, ParentStep: n.ParentStep, State: semel.RunRunning, DueAt: at, CreatedAt: at, UpdatedAt: at,
	}
	if r.ID == (semel.ID{}) || at.IsZero() {
		t.Fatalf("the run has ID %s and begins at %v", r.ID, at)
	}
	diff(t, "started", r, want)
	diff(t, "loaded", loadRun(t, other, r.ID), want)
	found, err := other.FindRun(t.Context(), n.Workflow, n.Key)
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "found by its key", found, want)
	again := n
	again.Version, again.Input = 2, []byte(`{"amount":1}`)
	for _, claim := range []*semel.RunClaim{nil, &worker} {
		got, existing, err := other.Start(t.Context(), again, claim)
		if err != nil || !existing {
			t.Fatalf("start again: existing %v, error %v", existing, err)
		}
		diff(t, "started again", got, want)
	}
	elsewhere := n
	elsewhere.Workflow = "shipping"
	if r := start(t, s, elsewhere); r.ID == want.ID {
		t.Fatal("two workflows share a run key")
	}
	_, err = s.LoadRun(t.Context(), newToken())
	wantErr(t, "LoadRun", err, semel.ErrNotFound)
	_, err = s.FindRun(t.Context(), n.Workflow, newKey())
	wantErr(t, "FindRun", err, semel.ErrNotFound)
}

// testStartRefused: what cannot be a run is refused with a hint, and is not
// there. A start that is repeated with its ID is the same start, as long as
// nobody did anything to the run.
func testStartRefused(t *testing.T, h Harness) {
	s := openRuns(t, h)
	for what, spoil := range map[string]func(*semel.NewRun){
		"no version":    func(n *semel.NewRun) { n.Version = 0 },
		"no workflow":   func(n *semel.NewRun) { n.Workflow = "" },
		"no JSON":       func(n *semel.NewRun) { n.Input = []byte(`{"a":1,"a":2}`) },
		"odd priority":  func(n *semel.NewRun) { n.Priority = 7 },
		"NUL in key":    func(n *semel.NewRun) { n.Key += "\x00" },
		"taken run ID":  func(n *semel.NewRun) { n.ID = begin(t, s).ID },
		"input too big": func(n *semel.NewRun) { n.Input = make([]byte, semel.MaxInput+1) },
	} {
		n := newRun()
		spoil(&n)
		_, _, err := s.Start(t.Context(), n, nil)
		if _, ok := errors.AsType[*semel.InputError](err); !ok {
			t.Errorf("%s: got error %v, want *InputError", what, err)
		}
		_, err = s.FindRun(t.Context(), n.Workflow, n.Key)
		if n.Key.Validate() == nil {
			wantErr(t, what, err, semel.ErrNotFound)
		}
	}
	n := newRun()
	n.ID = newToken()
	for range 2 {
		r, existing, err := s.Start(t.Context(), n, &worker)
		if err != nil || existing || r.Attempt != 1 || r.By != worker.By {
			t.Fatalf("start: attempt %d by %s, existing %v, error %v", r.Attempt, r.By, existing, err)
		}
	}
	if _, existing, err := s.Start(t.Context(), n, &semel.RunClaim{By: "worker-2", Lease: time.Minute}); err != nil || !existing {
		t.Fatalf("another worker starts the same: existing %v, error %v", existing, err)
	}
	suspend(t, s, loadRun(t, s, n.ID))
	if _, existing, err := s.Start(t.Context(), n, &worker); err != nil || !existing {
		t.Fatalf("start again after the execution: existing %v, error %v", existing, err)
	}
}

// testStartRace: of many starts under one key exactly one makes the run, and
// only it holds the run.
func testStartRace(t *testing.T, h Harness) {
	stores := []RunStore{openRuns(t, h), openRuns(t, h)}
	for range 5 {
		n := newRun()
		var mu sync.Mutex
		var made int
		ids := map[semel.ID]bool{}
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				r, existing, err := stores[i%2].Start(t.Context(), n, &worker)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Errorf("start: %v", err)
				}
				ids[r.ID] = true
				if !existing {
					made++
				}
			})
		}
		wg.Wait()
		if made != 1 || len(ids) != 1 {
			t.Fatalf("%d starts made %d runs, want 1 and 1", made, len(ids))
		}
	}
}

// testStartLater: a run that may begin later is claimed by nobody before.
func testStartLater(t *testing.T, h Harness) {
	s := openRuns(t, h)
	n := newRun()
	n.At = now(t, s).Add(time.Hour)
	r := start(t, s, n)
	wantRunState(t, "started for later", r, semel.RunWaiting)
	n.Key = newKey()
	held, _, err := s.Start(t.Context(), n, &worker)
	if err != nil || held.Attempt != 0 || !held.LeaseUntil.IsZero() {
		t.Fatalf("started for later with a claim: attempt %d, lease until %v, error %v", held.Attempt, held.LeaseUntil, err)
	}
	h.Shift(59 * time.Minute)
	if runs := claimRuns(t, s); len(runs) != 0 {
		t.Fatalf("claimed %v before its time", runIDs(runs))
	}
	h.Shift(2 * time.Minute)
	runs := claimRuns(t, s)
	if len(runs) != 2 {
		t.Fatalf("claimed %v, want both", runIDs(runs))
	}
	for _, r := range runs {
		wantRunState(t, "claimed", r, semel.RunRunning)
	}
	n.Key, n.At = newKey(), now(t, s).Add(-time.Hour)
	wantRunState(t, "started for earlier", start(t, s, n), semel.RunRunning)
}
