package storetest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

// testCancel: law 16. A run that waits for nothing that may have happened ends
// at once, and its parents wake; another one is due, so that a worker ends it.
// Asking twice is asking once; what has ended is not cancelled.
func testCancel(t *testing.T, h Harness) {
	s := openRuns(t, h)
	sleeper := suspend(t, s, begin(t, s), semel.RunWait{Path: "e", Kind: semel.WaitEvent, Event: "paid"})
	later := newRun()
	later.At = now(t, s).Add(time.Hour)
	notBegun := start(t, s, later)
	held := end(t, s, begin(t, s), semel.RunNext{State: semel.RunHeld, Reason: "ask anna"})
	paused := changeRun(t, s, suspend(t, s, begin(t, s)).ID, semel.PauseRun)
	for what, r := range map[string]semel.Run{"waiting": sleeper, "not begun": notBegun, "held": held, "paused": paused} {
		parent := suspend(t, s, begin(t, s), semel.RunWait{Path: "child", Kind: semel.WaitRun, Target: r.ID})
		got := changeRun(t, s, r.ID, semel.CancelRun)
		if got.State != semel.RunCancelled || !got.Cancel || got.Paused || got.EndedAt.IsZero() || !got.DueAt.IsZero() || got.Reason == "" || len(waitsOf(t, s, r.ID)) != 0 {
			t.Fatalf("%s: cancelled: %+v", what, got)
		}
		diff(t, what+", read", loadRun(t, s, r.ID), got)
		wantDue(t, s, what+": the parent", parent.ID, true)
		kinds := noteKinds(t, s, r.ID)
		_, err := s.ChangeRun(t.Context(), r.ID, semel.RunCommand{Verb: semel.CancelRun, By: "bert"})
		wantRunStateError(t, what+": cancelled twice", err)
		diff(t, what+": notes", noteKinds(t, s, r.ID), kinds)
		claimRun(t, s, parent.ID)
	}
	notes, err := s.Notes(t.Context(), sleeper.ID)
	if err != nil || len(notes) != 1 || notes[0].Kind != "cancel" || notes[0].By != "anna" || notes[0].Text != "because" {
		t.Fatalf("notes %+v, error %v", notes, err)
	}

	due := start(t, s, newRun())
	for range 2 {
		due = changeRun(t, s, due.ID, semel.CancelRun)
		if due.State != semel.RunRunning || !due.Cancel {
			t.Fatalf("a run that is due: %+v", due)
		}
	}
	diff(t, "notes", noteKinds(t, s, due.ID), []string{"cancel"})
	due = claimRun(t, s, due.ID)
	if !due.Cancel {
		t.Fatal("the worker does not see the request")
	}
	due = end(t, s, due, semel.RunNext{State: semel.RunCancelled, Stopped: true, Reason: "cancelled by anna"})
	wantRunState(t, "ended by its worker", due, semel.RunCancelled)

	completed := end(t, s, begin(t, s), semel.RunNext{State: semel.RunCompleted})
	for _, verb := range []semel.RunVerb{semel.CancelRun, semel.PauseRun, semel.ResumeRun, semel.RetryRun} {
		_, err := s.ChangeRun(t.Context(), completed.ID, semel.RunCommand{Verb: verb, By: "anna"})
		wantRunStateError(t, string(verb)+" what has completed", err)
	}
	diff(t, "what has completed", loadRun(t, s, completed.ID), completed)
	_, err = s.ChangeRun(t.Context(), newToken(), semel.RunCommand{Verb: semel.CancelRun, By: "anna"})
	wantErr(t, "cancel no run", err, semel.ErrNotFound)
	_, err = s.ChangeRun(t.Context(), completed.ID, semel.RunCommand{Verb: "kill", By: "anna"})
	if _, ok := errors.AsType[*semel.InputError](err); !ok {
		t.Fatalf("an unknown verb: %v", err)
	}
}

// testCancelHeld: a worker that holds the run learns of the request and goes
// on as it must: it may complete, it may end it, and it may still have to wait
// for an operation. A request that it did not know of makes the run due after
// that, one that it knew of does not, or it would be claimed for ever.
func testCancelHeld(t *testing.T, h Harness) {
	s := openRuns(t, h)
	r := begin(t, s)
	out := s.CommitRun(t.Context(), semel.RunCommit{RunFence: fence(r), Next: &semel.RunNext{State: semel.RunCancelled, Stopped: true}})
	wantErr(t, "an end for a request that nobody made", out.RunErr, semel.ErrStale)
	o := mustCommit(t, s, semel.RunCommit{RunFence: fence(r), Claim: stepClaim(t, s, r, "charge")}).Claim
	got := changeRun(t, s, r.ID, semel.CancelRun)
	if got.State != semel.RunRunning || !got.Cancel || !got.LeaseUntil.Equal(r.LeaseUntil) || len(claimRuns(t, s)) != 0 {
		t.Fatalf("cancelled while a worker holds it: %+v", got)
	}
	wait := semel.RunWait{Path: "charge", Kind: semel.WaitOperation, Target: o.ID, Version: o.Version}
	suspend(t, s, r, wait)
	wantDue(t, s, "cancelled meanwhile", r.ID, true)
	r = claimRun(t, s, r.ID)
	r = suspend(t, s, r, wait)
	wantDue(t, s, "the worker knew of it", r.ID, false)
	commit(t, s, o, confirmed(1, "ch_1"))
	r = claimRun(t, s, r.ID)
	wantRunState(t, "completed although cancelled", end(t, s, r, semel.RunNext{State: semel.RunCompleted}), semel.RunCompleted)

	o = claim(t, s, contract())
	wait.Target = o.ID
	for _, state := range []semel.RunState{semel.RunWaiting, semel.RunHeld} {
		r = end(t, s, begin(t, s), semel.RunNext{State: state, Waits: []semel.RunWait{wait}})
		r = changeRun(t, s, r.ID, semel.CancelRun)
		if r.State.Ended() || !r.Cancel {
			t.Fatalf("cancelled while it waits for an operation: %+v", r)
		}
		r = claimRun(t, s, r.ID)
		r = suspend(t, s, r, wait)
		wantDue(t, s, "the worker knew of it", r.ID, false)
	}
	r = changeRun(t, s, suspend(t, s, begin(t, s), wait).ID, semel.PauseRun)
	r = changeRun(t, s, r.ID, semel.CancelRun)
	if r.Paused {
		t.Fatal("a run that must stop is still paused, so nobody stops it")
	}
	claimRun(t, s, r.ID)
	_, err := s.ChangeRun(t.Context(), r.ID, semel.RunCommand{Verb: semel.PauseRun, By: "anna"})
	wantRunStateError(t, "pause what must stop", err)
}

// testCancelRace: cancelling at the moment of claim and completion ends the run
// once, and everybody is told the truth.
func testCancelRace(t *testing.T, h Harness) {
	s, other := openRuns(t, h), openRuns(t, h)
	for range 25 {
		r := suspend(t, s, begin(t, s), semel.RunWait{Path: "t", Kind: semel.WaitTime, Until: now(t, s)})
		var completed bool
		var cancelled semel.Run
		var cancelErr error
		var wg sync.WaitGroup
		wg.Go(func() {
			runs, err := s.Claim(t.Context(), worker, billing, 1)
			if err != nil {
				t.Errorf("claim: %v", err)
			}
			for _, r := range runs {
				out := s.CommitRun(t.Context(), semel.RunCommit{RunFence: fence(r), Next: &semel.RunNext{State: semel.RunCompleted}})
				completed = out.RunErr == nil
				if out.RunErr != nil {
					t.Errorf("a worker that holds the run: %v", out.RunErr)
				}
			}
		})
		wg.Go(func() {
			cancelled, cancelErr = other.ChangeRun(t.Context(), r.ID, semel.RunCommand{Verb: semel.CancelRun, By: "anna"})
		})
		wg.Wait()
		got := loadRun(t, s, r.ID)
		switch {
		case completed && got.State == semel.RunCompleted && cancelled.State != semel.RunCancelled:
		case !completed && got.State == semel.RunCancelled && cancelled.State == semel.RunCancelled && cancelErr == nil:
		default:
			t.Fatalf("completed %v, cancel answered %s and %v, the run is %s", completed, cancelled.State, cancelErr, got.State)
		}
		if cancelErr != nil {
			wantRunStateError(t, "cancel came too late", cancelErr)
		}
	}
}

// testPause: a paused run is left alone until somebody resumes it, whatever
// happens meanwhile; a worker that holds it ends its execution.
func testPause(t *testing.T, h Harness) {
	s := openRuns(t, h)
	due := changeRun(t, s, start(t, s, newRun()).ID, semel.PauseRun)
	sleeper := suspend(t, s, begin(t, s), semel.RunWait{Path: "e", Kind: semel.WaitEvent, Event: "paid", Match: "a"})
	for range 2 {
		sleeper = changeRun(t, s, sleeper.ID, semel.PauseRun)
	}
	diff(t, "notes", noteKinds(t, s, sleeper.ID), []string{"pause"})
	for _, r := range []semel.Run{due, sleeper} {
		if r.State != semel.RunHeld || !r.Paused || r.Reason != "paused by anna" {
			t.Fatalf("paused: %+v", r)
		}
	}
	send(t, s, event("1", "a"))
	h.Shift(time.Hour)
	if runs := claimRuns(t, s); len(runs) != 0 {
		t.Fatalf("claimed %v, which are paused", runIDs(runs))
	}
	if at, err := s.NextDue(t.Context(), billing); err != nil || !at.IsZero() {
		t.Fatalf("the next is due at %v, error %v", at, err)
	}
	_, err := s.ChangeRun(t.Context(), due.ID, semel.RunCommand{Verb: semel.RetryRun, By: "anna"})
	wantRunStateError(t, "retry what is paused", err)
	for _, r := range []semel.Run{due, sleeper} {
		r = changeRun(t, s, r.ID, semel.ResumeRun)
		if r.State != semel.RunRunning || r.Paused || r.Reason != "" {
			t.Fatalf("resumed: %+v", r)
		}
		_, err := s.ChangeRun(t.Context(), r.ID, semel.RunCommand{Verb: semel.ResumeRun, By: "anna"})
		wantRunStateError(t, "resume what is not paused", err)
		r = claimRun(t, s, r.ID)
		if r.Crashes != 0 {
			t.Fatalf("resumed and claimed: %d crashes", r.Crashes)
		}
	}

	r := begin(t, s)
	stopped := &semel.RunNext{State: semel.RunHeld, Stopped: true, Reason: "paused by anna"}
	out := s.CommitRun(t.Context(), semel.RunCommit{RunFence: fence(r), Next: stopped})
	wantErr(t, "an end for a request that nobody made", out.RunErr, semel.ErrStale)
	got := changeRun(t, s, r.ID, semel.PauseRun)
	if got.State != semel.RunRunning || !got.Paused || !got.LeaseUntil.Equal(r.LeaseUntil) {
		t.Fatalf("paused while a worker holds it: %+v", got)
	}
	got = changeRun(t, s, r.ID, semel.ResumeRun)
	if got.Paused || !got.LeaseUntil.Equal(r.LeaseUntil) || len(claimRuns(t, s)) != 0 {
		t.Fatalf("resumed while a worker holds it: %+v", got)
	}
	changeRun(t, s, r.ID, semel.PauseRun)
	r = end(t, s, r, *stopped)
	wantRunState(t, "ended by its worker", r, semel.RunHeld)
	changeRun(t, s, r.ID, semel.ResumeRun)
	r = claimRun(t, s, r.ID)
	changeRun(t, s, r.ID, semel.PauseRun)
	r = suspend(t, s, r, semel.RunWait{Path: "t", Kind: semel.WaitTime, Until: now(t, s).Add(time.Hour)})
	if r.State != semel.RunHeld || !r.Paused || r.Reason != "paused by anna" || len(claimRuns(t, s)) != 0 {
		t.Fatalf("paused while its worker made it wait: %+v", r)
	}
	changeRun(t, s, r.ID, semel.ResumeRun)
	r = claimRun(t, s, r.ID)
	changeRun(t, s, r.ID, semel.PauseRun)
	r = end(t, s, r, semel.RunNext{State: semel.RunCompleted})
	if r.State != semel.RunCompleted || r.Paused {
		t.Fatalf("completed while paused: %+v", r)
	}

	// The worker of a paused run died: nobody takes it over until it is resumed.
	r = begin(t, s)
	changeRun(t, s, r.ID, semel.PauseRun)
	h.Shift(time.Hour)
	for len(claimRuns(t, s)) > 0 {
		for _, c := range claimRuns(t, s) {
			if c.ID == r.ID {
				t.Fatal("claimed a paused run")
			}
		}
	}
	changeRun(t, s, r.ID, semel.ResumeRun)
	if r = claimRun(t, s, r.ID); r.Attempt != 2 {
		t.Fatalf("claimed after that: attempt %d", r.Attempt)
	}
}

// testRetry: what has failed, or is held, is tried again at a person's request
// and goes on where it was.
func testRetry(t *testing.T, h Harness) {
	s := openRuns(t, h)
	for _, state := range []semel.RunState{semel.RunFailed, semel.RunHeld} {
		r := begin(t, s)
		mustCommit(t, s, semel.RunCommit{RunFence: fence(r), Steps: []semel.StepRecord{{Path: "v", Kind: semel.StepValue, Outcome: semel.StepCompleted}}})
		h.Shift(2 * time.Minute)
		r = claimRun(t, s, r.ID)
		_, err := s.ChangeRun(t.Context(), r.ID, semel.RunCommand{Verb: semel.RetryRun, By: "anna"})
		wantRunStateError(t, "retry what a worker executes", err)
		changeRun(t, s, r.ID, semel.CancelRun) // the worker was faster
		end(t, s, r, semel.RunNext{State: state, Reason: "declined"})
		if state == semel.RunHeld { // it is due, to be cancelled
			r = claimRun(t, s, r.ID)
			end(t, s, r, semel.RunNext{State: state, Reason: "declined"})
		}
		at := now(t, s)
		h.Shift(time.Millisecond)
		got := changeRun(t, s, r.ID, semel.RetryRun)
		if got.State != semel.RunRunning || got.Reason != "" || got.RetriedAt.Before(at) || !got.EndedAt.IsZero() || got.Crashes != 0 || got.Cancel || got.Paused {
			t.Fatalf("retried: %+v", got)
		}
		r = claimRun(t, s, r.ID)
		if !r.RetriedAt.Equal(got.RetriedAt) || len(stepsOf(t, s, r.ID)) != 1 {
			t.Fatalf("claimed after that: %+v", r)
		}
		r = suspend(t, s, r)
		_, err = s.ChangeRun(t.Context(), r.ID, semel.RunCommand{Verb: semel.RetryRun, By: "anna"})
		wantRunStateError(t, "retry what waits", err)
		changeRun(t, s, r.ID, semel.CancelRun)
		_, err = s.ChangeRun(t.Context(), r.ID, semel.RunCommand{Verb: semel.RetryRun, By: "anna"})
		wantRunStateError(t, "retry what was cancelled", err)
	}
}
