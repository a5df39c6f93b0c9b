package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

// testRunSteps: what steps recorded is read back with their operations, oldest
// first; a record that is replaced keeps its place.
func testRunSteps(t *testing.T, h Harness) {
	s, other := openRuns(t, h), openRuns(t, h)
	r := begin(t, s)
	shared := claim(t, s, contract())
	open := semel.StepRecord{Path: "list", Kind: semel.StepEach, What: "each", Outcome: semel.StepOpen, Result: []byte(`["a","b"]`)}
	value := semel.StepRecord{Path: "now", Kind: semel.StepValue, What: "value", Outcome: semel.StepCompleted, Result: []byte(`"x"`)}
	mustCommit(t, s, semel.RunCommit{RunFence: fence(r), Steps: []semel.StepRecord{open, value}})
	first := stepsOf(t, s, r.ID)
	h.Shift(time.Second)
	out := mustCommit(t, s, semel.RunCommit{RunFence: fence(r), Claim: stepClaim(t, s, r, "list[a]/charge")})
	charge := out.Claim
	h.Shift(time.Second)
	joined := semel.StepRecord{Path: "list[b]/charge", Kind: semel.StepAction, What: "charge", Operation: shared.ID}
	failed := semel.StepRecord{Path: "list[b]", Kind: semel.StepItem, Outcome: semel.StepFailed, Failure: "card declined"}
	mustCommit(t, s, semel.RunCommit{RunFence: fence(r), Steps: []semel.StepRecord{joined, failed}})
	h.Shift(time.Second)
	closed := open
	closed.Outcome = semel.StepCompleted
	mustCommit(t, s, semel.RunCommit{RunFence: fence(r), Steps: []semel.StepRecord{closed}})
	charge = commit(t, s, charge, confirmed(1, "ch_1"))
	shared = commit(t, s, shared, refused(1))

	got := stepsOf(t, other, r.ID)
	if len(got) != 5 {
		t.Fatalf("%d records, want 5: %+v", len(got), got)
	}
	closed.At, value.At, joined.At, failed.At = first[0].At, first[1].At, got[3].At, got[4].At
	joined.Effect, joined.Outcome, joined.Failure = &shared, semel.StepFailed, shared.Reason
	diff(t, "steps", got, []semel.StepRecord{
		closed, value,
		{Path: "list[a]/charge", Kind: semel.StepAction, What: "charge", Operation: charge.ID, Outcome: semel.StepCompleted, At: charge.CreatedAt, Effect: &charge},
		joined, failed,
	})
	if !first[0].At.After(r.CreatedAt.Add(-time.Millisecond)) || !got[3].At.After(got[2].At) {
		t.Fatalf("times of records: %v, then %v and %v", first[0].At, got[2].At, got[3].At)
	}
	if steps := stepsOf(t, s, newToken()); len(steps) != 0 {
		t.Fatalf("steps of no run: %v", steps)
	}
	if o := load(t, other, charge.ID); o.Run != r.ID || o.Step != "list[a]/charge" {
		t.Fatalf("the operation was claimed by run %s, step %q", o.Run, o.Step)
	}
}

// testRunFence: law 6. Who does not hold the run writes nothing but evidence.
func testRunFence(t *testing.T, h Harness) {
	s, other := openRuns(t, h), openRuns(t, h)
	refused := func(what string, f semel.RunFence) {
		t.Helper()
		before, steps, waits := loadRun(t, s, f.Run), stepsOf(t, s, f.Run), waitsOf(t, s, f.Run)
		o := claim(t, s, contract())
		outcome := change(t, s, o, confirmed(1, "ch_1"))
		c := semel.RunCommit{
			RunFence: f, Outcome: &outcome, Steps: []semel.StepRecord{{Path: "stale", Kind: semel.StepValue, Outcome: semel.StepCompleted}},
			Claim: stepClaim(t, s, before, "stale-claim"), Next: &semel.RunNext{State: semel.RunCompleted, Result: []byte(`"stale"`)},
		}
		out := s.CommitRun(t.Context(), c)
		wantErr(t, what+": outcome", out.OutcomeErr, nil)
		wantErr(t, what+": claim", out.ClaimErr, semel.ErrStale)
		wantErr(t, what+": run", out.RunErr, semel.ErrStale)
		same(t, what+": outcome", load(t, s, o.ID), out.Outcome)
		_, err := s.LoadID(t.Context(), c.Claim.Before.ID)
		wantErr(t, what+": the claimed operation", err, semel.ErrNotFound)
		_, err = s.TakeEvent(t.Context(), semel.EventClaim{RunFence: f, Path: "stale", Workflow: workflow, Name: "paid", Until: now(t, s)})
		wantErr(t, what+": take an event", err, semel.ErrStale)
		diff(t, what+": the run", loadRun(t, s, f.Run), before)
		diff(t, what+": its steps", stepsOf(t, s, f.Run), steps)
		diff(t, what+": its waits", waitsOf(t, s, f.Run), waits)
	}
	r := begin(t, s)
	refused("a later attempt", semel.RunFence{Run: r.ID, Attempt: 2})
	refused("no attempt", semel.RunFence{Run: r.ID})
	unclaimed := start(t, s, newRun())
	refused("nobody's run", fence(unclaimed))
	h.Shift(61 * time.Second)
	claimRuns(t, other)
	refused("the attempt before", fence(r))
	r = suspend(t, other, loadRun(t, s, r.ID), semel.RunWait{Path: "e", Kind: semel.WaitEvent, Event: "paid"})
	refused("an execution that has ended", fence(r))
	r = changeRun(t, s, r.ID, semel.PauseRun)
	refused("a paused run", fence(r))
	r = changeRun(t, s, r.ID, semel.ResumeRun)
	refused("a resumed run that nobody claimed", fence(r))
	r = end(t, s, claimRun(t, s, r.ID), semel.RunNext{State: semel.RunFailed, Reason: "declined"})
	refused("a run that has ended", fence(r))
	r = changeRun(t, s, r.ID, semel.RetryRun)
	refused("a run that is tried again and that nobody claimed", fence(r))
	_, err := s.TakeEvent(t.Context(), semel.EventClaim{RunFence: semel.RunFence{Run: newToken(), Attempt: 1}, Path: "p", Workflow: workflow, Name: "paid"})
	wantErr(t, "no run", err, semel.ErrStale)
	out := s.CommitRun(t.Context(), semel.RunCommit{RunFence: semel.RunFence{Run: newToken(), Attempt: 1}, Next: &semel.RunNext{State: semel.RunCompleted}})
	wantErr(t, "no run", out.RunErr, semel.ErrStale)
}

// testRunOutcome: laws 1 and 2. Outcome and next claim share a commit, and a
// claim that is refused takes neither the outcome nor the records with it.
func testRunOutcome(t *testing.T, h Harness) {
	s := openRuns(t, h)
	r := begin(t, s)
	o := mustCommit(t, s, semel.RunCommit{RunFence: fence(r), Claim: stepClaim(t, s, r, "a")}).Claim
	step := func(path string) []semel.StepRecord {
		return []semel.StepRecord{{Path: path, Kind: semel.StepValue, Outcome: semel.StepCompleted, Result: []byte("1")}}
	}
	commitBoth := func(what string, claim *semel.Change, want error) semel.RunCommitted {
		t.Helper()
		outcome := change(t, s, o, semel.Event{Kind: semel.EvJoined, By: "source"})
		out := s.CommitRun(t.Context(), semel.RunCommit{RunFence: fence(r), Outcome: &outcome, Steps: step(what), Claim: claim})
		wantErr(t, what+": outcome", out.OutcomeErr, nil)
		wantErr(t, what+": claim", out.ClaimErr, want)
		wantErr(t, what+": run", out.RunErr, nil)
		same(t, what+": outcome", load(t, s, o.ID), out.Outcome)
		o = out.Outcome
		for _, st := range stepsOf(t, s, r.ID) {
			if st.Path == what {
				return out
			}
		}
		t.Fatalf("%s: the record is not there", what)
		return out
	}
	out := commitBoth("claimed", stepClaim(t, s, r, "b"), nil)
	same(t, "the claim", load(t, s, out.Claim.ID), out.Claim)
	taken := stepClaim(t, s, r, "c")
	taken.Before.Key, taken.After.Key = out.Claim.Key, out.Claim.Key
	commitBoth("taken key", taken, semel.ErrStale)
	outcome := change(t, s, o, confirmed(1, "ch_1"))
	stale := outcome
	stale.Before = out.Claim
	stale.Before.Version, stale.Token = 7, newToken()
	next := stepClaim(t, s, r, "d")
	got := s.CommitRun(t.Context(), semel.RunCommit{RunFence: fence(r), Outcome: &stale, Claim: next})
	wantErr(t, "a stale outcome", got.OutcomeErr, semel.ErrStale)
	wantErr(t, "the claim beside a stale outcome", errors.Join(got.ClaimErr, got.RunErr), nil)

	changeRun(t, s, r.ID, semel.PauseRun)
	commitBoth("paused", stepClaim(t, s, r, "e"), semel.ErrStopped)
	changeRun(t, s, r.ID, semel.ResumeRun)
	commitBoth("resumed", stepClaim(t, s, r, "f"), nil)
	changeRun(t, s, r.ID, semel.CancelRun)
	commitBoth("cancelled", stepClaim(t, s, r, "g"), semel.ErrStopped)
}

// testRunRepeat: section 6. A commit that is repeated because its
// acknowledgement was lost gets the answer of the first time and does nothing,
// also where the run was asked to stop, or was claimed by another, meanwhile.
func testRunRepeat(t *testing.T, h Harness) {
	s, other := openRuns(t, h), openRuns(t, h)
	r := begin(t, s)
	o := mustCommit(t, s, semel.RunCommit{RunFence: fence(r), Claim: stepClaim(t, s, r, "a")}).Claim
	outcome := change(t, s, o, confirmed(1, "ch_1"))
	c := semel.RunCommit{
		RunFence: fence(r), Outcome: &outcome, Claim: stepClaim(t, s, r, "b"),
		Steps: []semel.StepRecord{{Path: "v", Kind: semel.StepValue, Outcome: semel.StepCompleted, Result: []byte("1")}},
	}
	want := mustCommit(t, s, c)
	steps := stepsOf(t, s, r.ID)
	repeat := func(what string, runErr error) {
		t.Helper()
		got := other.CommitRun(t.Context(), c)
		wantErr(t, what, got.RunErr, runErr)
		wantErr(t, what, errors.Join(got.OutcomeErr, got.ClaimErr), nil)
		same(t, what+": outcome", got.Outcome, want.Outcome)
		same(t, what+": claim", got.Claim, want.Claim)
		diff(t, what+": steps", stepsOf(t, s, r.ID), steps)
	}
	h.Shift(time.Second)
	repeat("repeated", nil)
	changeRun(t, s, r.ID, semel.CancelRun)
	repeat("repeated after a request to stop", nil)
	h.Shift(2 * time.Minute)
	again := claimRun(t, other, r.ID)
	repeat("repeated after another claim", semel.ErrStale)

	n := semel.RunCommit{RunFence: fence(again), Next: &semel.RunNext{State: semel.RunFailed, Reason: "declined"}}
	mustCommit(t, s, n)
	ended := loadRun(t, s, r.ID)
	h.Shift(time.Second)
	mustCommit(t, other, n)
	diff(t, "the run after a repeated end", loadRun(t, s, r.ID), ended)
	diff(t, "its notes", noteKinds(t, s, r.ID), []string{"cancel", "lapsed", "failed"})
	changeRun(t, s, r.ID, semel.RetryRun)
	wantErr(t, "an end that is repeated after a person tried again", other.CommitRun(t.Context(), n).RunErr, semel.ErrStale)
	wantRunState(t, "after that", loadRun(t, s, r.ID), semel.RunRunning)

	child, asked := newRun(), approvalOf(t, s, *stepClaim(t, s, r, "c"))
	w := begin(t, s)
	n = semel.RunCommit{RunFence: fence(w), Next: &semel.RunNext{State: semel.RunWaiting, Waits: []semel.RunWait{
		{Path: "child", Kind: semel.WaitRun, Child: &child}, {Path: "ask", Kind: semel.WaitApproval, Approval: &asked},
	}}}
	mustCommit(t, s, n)
	waiting, waits := loadRun(t, s, w.ID), waitsOf(t, s, w.ID)
	mustCommit(t, other, n)
	diff(t, "the run after a repeated wait", loadRun(t, s, w.ID), waiting)
	diff(t, "its waits", waitsOf(t, s, w.ID), waits)
	if got := approvalsOf(t, s, w.ID, ""); len(got) != 1 {
		t.Fatalf("%d approvals after a repeated wait, want 1", len(got))
	}
}

// testRunEnds: an execution ends as it says; what ends, ends once and for all.
func testRunEnds(t *testing.T, h Harness) {
	s, other := openRuns(t, h), openRuns(t, h)
	for _, c := range []struct {
		next  semel.RunNext
		notes []string
	}{
		{semel.RunNext{State: semel.RunCompleted, Result: []byte(`{"paid":9007199254740993}`), Done: 3, Total: 3}, nil},
		{semel.RunNext{State: semel.RunFailed, Reason: "card declined", Done: 1, Total: 3, Result: []byte(`1`)}, []string{"failed"}},
		{semel.RunNext{State: semel.RunCancelled, Reason: "cancelled by anna", DueAt: time.Now()}, nil},
		{semel.RunNext{State: semel.RunHeld, Reason: "the code has changed", Total: 3}, []string{"held"}},
		{semel.RunNext{State: semel.RunWaiting, Reason: "it sleeps", DueAt: now(t, s).Add(time.Hour)}, nil},
	} {
		r := begin(t, s)
		suspend(t, s, r, semel.RunWait{Path: "t", Kind: semel.WaitTime, Until: now(t, s)})
		r = claimRun(t, s, r.ID)
		h.Shift(time.Second)
		got := end(t, s, r, c.next)
		at := got.UpdatedAt
		if !at.After(r.UpdatedAt) {
			t.Fatalf("%s: updated at %v", c.next.State, at)
		}
		want := r
		want.State, want.Reason, want.Result, want.Done, want.Total = c.next.State, c.next.Reason, c.next.Result, c.next.Done, c.next.Total
		want.LeaseUntil, want.DueAt, want.UpdatedAt = time.Time{}, c.next.DueAt, at
		if want.State.Ended() {
			want.DueAt, want.EndedAt = time.Time{}, at
		}
		diff(t, string(c.next.State), got, want)
		diff(t, string(c.next.State)+", another handle", loadRun(t, other, r.ID), want)
		diff(t, string(c.next.State)+": waits", waitsOf(t, s, r.ID), []semel.RunWait{})
		diff(t, string(c.next.State)+": notes", noteKinds(t, s, r.ID), c.notes)
	}
	if runs := claimRuns(t, s); len(runs) != 0 {
		t.Fatalf("claimed %v, which nobody has to look at", runIDs(runs))
	}
	r := begin(t, s)
	out := s.CommitRun(t.Context(), semel.RunCommit{RunFence: fence(r), Next: &semel.RunNext{State: "parked"}})
	if out.RunErr == nil {
		t.Fatal("a run ended in a state that does not exist")
	}
	r = end(t, s, r, semel.RunNext{State: semel.RunRunning})
	wantRunState(t, "given back", r, semel.RunRunning)
	claimRun(t, s, r.ID)
}

// testRunPoison: a claim or an end that cannot be kept takes nothing with it.
func testRunPoison(t *testing.T, h Harness) {
	s := openRuns(t, h)
	r := begin(t, s)
	o := mustCommit(t, s, semel.RunCommit{RunFence: fence(r), Claim: stepClaim(t, s, r, "a")}).Claim
	outcome := change(t, s, o, confirmed(1, "ch_1"))
	bad := stepClaim(t, s, r, "b")
	bad.Before.Key, bad.After.Key = "nul\x00", "nul\x00"
	child := newRun()
	child.Version = 0
	out := s.CommitRun(t.Context(), semel.RunCommit{
		RunFence: fence(r), Outcome: &outcome, Claim: bad,
		Steps: []semel.StepRecord{{Path: "v", Kind: semel.StepValue, Outcome: semel.StepCompleted}},
		Next:  &semel.RunNext{State: semel.RunWaiting, Waits: []semel.RunWait{{Path: "c", Kind: semel.WaitRun, Child: &child}}},
	})
	wantErr(t, "outcome", out.OutcomeErr, nil)
	if out.ClaimErr == nil || out.RunErr == nil {
		t.Fatalf("claim: %v, run: %v, want errors", out.ClaimErr, out.RunErr)
	}
	if got := load(t, s, o.ID); got.State != semel.Completed {
		t.Fatalf("the outcome beside a bad claim: %s", got.State)
	}
	if got := loadRun(t, s, r.ID); got.LeaseUntil.IsZero() {
		t.Fatal("the run ended although its end could not be kept")
	}
	outcome = change(t, s, load(t, s, o.ID), semel.Event{Kind: semel.EvJoined, By: "source"})
	out = s.CommitRun(t.Context(), semel.RunCommit{
		RunFence: fence(r), Outcome: &outcome,
		Steps: []semel.StepRecord{{Path: "nul\x00", Kind: semel.StepValue, Outcome: semel.StepCompleted}}, // some databases take it
	})
	wantErr(t, "the outcome beside an odd record", out.OutcomeErr, nil)
	if got := load(t, s, o.ID); got.Joined != 1 {
		t.Fatal("the outcome beside an odd record is lost")
	}
}
