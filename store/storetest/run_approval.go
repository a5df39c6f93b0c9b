package storetest

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

// approvalOf asks for the request of a claim.
func approvalOf(t tb, s RunStore, c semel.Change) semel.Approval {
	t.Helper()
	o := c.Before
	return semel.Approval{
		Digest: semel.ApprovalDigest(o.Scope, o.Key, o.Fingerprint), Scope: o.Scope, Key: o.Key, Request: o.Request,
		Ask: semel.Ask{Of: "finance", Summary: "pay 42 EUR", Timeout: time.Hour, Valid: 10 * time.Minute},
	}
}

func approvalsOf(t tb, s RunStore, run semel.ID, state semel.ApprovalState) []semel.Approval {
	t.Helper()
	var all []semel.Approval
	for a, err := range s.Approvals(t.Context(), run, state) {
		if err != nil {
			t.Fatalf("approvals: %v", err)
		}
		all = append(all, a)
	}
	return all
}

func loadApproval(t tb, s RunStore, id semel.ID) semel.Approval {
	t.Helper()
	a, err := s.Approval(t.Context(), id)
	if err != nil {
		t.Fatalf("approval: %v", err)
	}
	return a
}

// ask suspends a run that waits for the approval, and returns it.
func ask(t tb, s RunStore, r semel.Run, a semel.Approval) semel.Approval {
	t.Helper()
	suspend(t, s, r, semel.RunWait{Path: "approve", Kind: semel.WaitApproval, Approval: &a})
	return loadApproval(t, s, waitsOf(t, s, r.ID)[0].Target)
}

func decide(t tb, s RunStore, a semel.Approval, state semel.ApprovalState) semel.Approval {
	t.Helper()
	got, err := s.Decide(t.Context(), a.ID, semel.Decision{State: state, By: "anna", Reason: "checked", Digest: a.Digest})
	if err != nil {
		t.Fatalf("decide %s: %v", state, err)
	}
	return got
}

// testWaitApproval: a question is written with the wait, once; a decision makes
// the run due, also where it came before the wait. One that has ended is asked
// again.
func testWaitApproval(t *testing.T, h Harness) {
	s, other := openRuns(t, h), openRuns(t, h)
	r := begin(t, s)
	c := stepClaim(t, s, r, "charge")
	asked := approvalOf(t, s, *c)
	a := ask(t, s, r, asked)
	want := asked
	want.ID, want.Run, want.Path, want.State, want.AskedAt = a.ID, r.ID, "approve", semel.ApprovalPending, loadRun(t, s, r.ID).UpdatedAt
	diff(t, "asked", loadApproval(t, other, a.ID), want)
	wantDue(t, s, "nobody decided", r.ID, false)

	changeRun(t, s, r.ID, semel.PauseRun)
	changeRun(t, s, r.ID, semel.ResumeRun)
	r = claimRun(t, s, r.ID)
	if again := ask(t, s, r, asked); again.ID != a.ID {
		t.Fatalf("asked twice: %s and %s", again.ID, a.ID)
	}
	wantDue(t, s, "still nobody decided", r.ID, false)
	h.Shift(time.Second)
	a = decide(t, other, a, semel.ApprovalGiven)
	want.State, want.By, want.Reason, want.DecidedAt = semel.ApprovalGiven, "anna", "checked", a.DecidedAt
	want.Until = a.DecidedAt.Add(10 * time.Minute)
	diff(t, "given", a, want)
	diff(t, "given, read", loadApproval(t, s, a.ID), want)
	if !a.DecidedAt.After(a.AskedAt) {
		t.Fatalf("asked at %v, decided at %v", a.AskedAt, a.DecidedAt)
	}
	wantDue(t, s, "given", r.ID, true)
	r = claimRun(t, s, r.ID)
	if again := ask(t, s, r, asked); again.ID != a.ID {
		t.Fatalf("asked although it is given: %s and %s", again.ID, a.ID)
	}
	wantDue(t, s, "it had been given", r.ID, true)
	r = claimRun(t, s, r.ID)
	h.Shift(10 * time.Minute)
	r = claimRun(t, s, r.ID) // its lease has lapsed
	if again := ask(t, s, r, asked); again.ID == a.ID || again.State != semel.ApprovalPending {
		t.Fatalf("an approval that has ended stands for a new question: %s, %s", again.ID, again.State)
	}
	_, err := s.Approval(t.Context(), newToken())
	wantErr(t, "no approval", err, semel.ErrNotFound)
}

// testApprovedClaim: a claim that names an approval is made only while that
// approval is given, for this exact request, and has not ended; inside a run
// and outside, for a first attempt and a later one.
func testApprovedClaim(t *testing.T, h Harness) {
	s := openRuns(t, h)
	try := func(what string, spoil func(a semel.Approval, c *semel.Change), want error) {
		t.Helper()
		for _, inRun := range []bool{true, false} {
			r := begin(t, s)
			c := stepClaim(t, s, r, "charge")
			a := decide(t, s, ask(t, s, begin(t, s), approvalOf(t, s, *c)), semel.ApprovalGiven)
			c.Event.Approval, c.Event.ApprovedUntil = a.ID, a.Until
			spoil(a, c)
			after, err := c.Before.Apply(c.Event)
			if err != nil {
				t.Fatal(err)
			}
			c.After = after
			if inRun {
				out := s.CommitRun(t.Context(), semel.RunCommit{RunFence: fence(r), Claim: c})
				wantErr(t, what+", in a run", out.ClaimErr, want)
				wantErr(t, what+", the run", out.RunErr, nil)
			} else {
				_, err := s.Commit(t.Context(), *c)
				wantErr(t, what+", outside runs", err, want)
			}
			if want != nil {
				_, err = s.LoadID(t.Context(), c.Before.ID)
				wantErr(t, what+": the operation", err, semel.ErrNotFound)
			}
		}
	}
	try("given", func(semel.Approval, *semel.Change) {}, nil)
	try("revoked", func(a semel.Approval, _ *semel.Change) { decide(t, s, a, semel.ApprovalRevoked) }, semel.ErrNotApproved)
	try("no such approval", func(_ semel.Approval, c *semel.Change) { c.Event.Approval = newToken() }, semel.ErrNotApproved)
	try("another key", func(_ semel.Approval, c *semel.Change) { c.Before.Key = newKey() }, semel.ErrNotApproved)
	try("another request", func(_ semel.Approval, c *semel.Change) { c.Before.Fingerprint[5]++ }, semel.ErrNotApproved)
	try("pending", func(_ semel.Approval, c *semel.Change) {
		c.Event.Approval = ask(t, s, begin(t, s), approvalOf(t, s, *c)).ID
	}, semel.ErrNotApproved)
	try("rejected", func(_ semel.Approval, c *semel.Change) {
		c.Event.Approval = decide(t, s, ask(t, s, begin(t, s), approvalOf(t, s, *c)), semel.ApprovalRejected).ID
	}, semel.ErrNotApproved)

	c := stepClaim(t, s, semel.Run{}, "charge")
	a := decide(t, s, ask(t, s, begin(t, s), approvalOf(t, s, *c)), semel.ApprovalGiven)
	c.Event.Approval, c.Event.ApprovedUntil = a.ID, a.Until
	first := *c
	o, err := s.Commit(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	o = commit(t, s, o, refused(1))
	again := claimed(2)
	again.Approval, again.ApprovedUntil = a.ID, a.Until
	o = commit(t, s, o, again)
	o = commit(t, s, o, refused(2))
	h.Shift(10*time.Minute + time.Second)
	again.Attempt = 3
	_, err = s.Commit(t.Context(), change(t, s, o, again))
	wantErr(t, "a later attempt after the end of the approval", err, semel.ErrNotApproved)
	if _, err := s.Commit(t.Context(), first); err != nil {
		t.Fatalf("the first claim, repeated after the end of the approval: %v", err)
	}
}

// testDecide: an approval is decided once, about the request that the person
// saw; what was given can be revoked. Every refusal says what is the case.
func testDecide(t *testing.T, h Harness) {
	s := openRuns(t, h)
	fresh := func() semel.Approval {
		r := begin(t, s)
		return ask(t, s, r, approvalOf(t, s, *stepClaim(t, s, r, "charge")))
	}
	refuse := func(a semel.Approval, d semel.Decision, says ...string) {
		t.Helper()
		before := loadApproval(t, s, a.ID)
		d.By = "bert"
		_, err := s.Decide(t.Context(), a.ID, d)
		e, ok := errors.AsType[*semel.ApprovalStateError](err)
		if !ok {
			t.Fatalf("decide %s of one that is %s: got error %v, want *ApprovalStateError", d.State, before.State, err)
		}
		for _, part := range says {
			if !strings.Contains(e.Problem, part) {
				t.Errorf("problem %q does not say %q", e.Problem, part)
			}
		}
		diff(t, "in the error", e.Approval, before)
		diff(t, "afterwards", loadApproval(t, s, a.ID), before)
	}
	late := fresh()
	decide(t, s, late, semel.ApprovalGiven)
	suspend(t, s, claimRun(t, s, late.Run), semel.RunWait{Path: "later", Kind: semel.WaitTime, Until: now(t, s).Add(time.Hour)})
	wantDue(t, s, "past its wait", late.Run, false)
	decide(t, s, late, semel.ApprovalRevoked)
	wantDue(t, s, "revoked behind its wait", late.Run, true)

	given, rejected, revoked, pending := fresh(), fresh(), fresh(), fresh()
	refuse(pending, semel.Decision{State: semel.ApprovalGiven, Digest: "another"}, "another request")
	refuse(pending, semel.Decision{State: semel.ApprovalRevoked, Digest: pending.Digest}, "pending")
	refuse(pending, semel.Decision{State: semel.ApprovalPending, Digest: pending.Digest})
	closed := fresh()
	decide(t, s, closed, semel.ApprovalClosed)
	wantDue(t, s, "closed", closed.Run, true)
	refuse(closed, semel.Decision{State: semel.ApprovalGiven, Digest: closed.Digest}, "closed")
	decide(t, s, given, semel.ApprovalGiven)
	got := decide(t, s, rejected, semel.ApprovalRejected)
	if !got.Until.IsZero() || got.State != semel.ApprovalRejected {
		t.Fatalf("rejected: %+v", got)
	}
	wantDue(t, s, "rejected", rejected.Run, true)
	decide(t, s, revoked, semel.ApprovalGiven)
	refuse(revoked, semel.Decision{State: semel.ApprovalRevoked, Digest: "another"}, "another request")
	decide(t, s, revoked, semel.ApprovalRevoked)
	for _, state := range []semel.ApprovalState{semel.ApprovalGiven, semel.ApprovalRejected, semel.ApprovalRevoked} {
		refuse(rejected, semel.Decision{State: state, Digest: rejected.Digest}, "rejected", "anna")
		refuse(revoked, semel.Decision{State: state, Digest: revoked.Digest}, "revoked", "anna")
		if state != semel.ApprovalRevoked {
			refuse(given, semel.Decision{State: state, Digest: given.Digest}, "given", "anna")
		}
	}
	_, err := s.Decide(t.Context(), newToken(), semel.Decision{State: semel.ApprovalGiven, By: "anna"})
	wantErr(t, "no approval", err, semel.ErrNotFound)

	a := fresh()
	var mu sync.Mutex
	won := 0
	var wg sync.WaitGroup
	for i := range 8 {
		d := semel.Decision{State: []semel.ApprovalState{semel.ApprovalGiven, semel.ApprovalRejected}[i%2], By: "anna", Digest: a.Digest}
		wg.Go(func() {
			if _, err := s.Decide(t.Context(), a.ID, d); err == nil {
				mu.Lock()
				defer mu.Unlock()
				won++
			}
		})
	}
	wg.Wait()
	if won != 1 {
		t.Fatalf("%d decisions were made, want 1", won)
	}
}

// testApprovalsClose: what nobody waits for any more is closed with its run,
// and lists show it so.
func testApprovalsClose(t *testing.T, h Harness) {
	s := openRuns(t, h)
	var asked []semel.Approval
	for range 3 {
		r := begin(t, s)
		asked = append(asked, ask(t, s, r, approvalOf(t, s, *stepClaim(t, s, r, "charge"))))
	}
	cancelled, given, open := asked[0], asked[1], asked[2]
	changeRun(t, s, cancelled.Run, semel.CancelRun)
	decide(t, s, given, semel.ApprovalGiven)
	end(t, s, claimRun(t, s, given.Run), semel.RunNext{State: semel.RunCompleted})
	list := func(run semel.ID, state semel.ApprovalState, want ...semel.Approval) {
		t.Helper()
		ids := func(all []semel.Approval) []semel.ID {
			ids := []semel.ID{}
			for _, a := range all {
				ids = append(ids, a.ID)
			}
			return ids
		}
		diff(t, "listed as "+string(state), ids(approvalsOf(t, s, run, state)), ids(want))
	}
	list(semel.ID{}, "", open, given, cancelled)
	list(semel.ID{}, semel.ApprovalPending, open)
	list(semel.ID{}, semel.ApprovalGiven, given)
	list(semel.ID{}, semel.ApprovalClosed, cancelled)
	list(open.Run, "", open)
	list(open.Run, semel.ApprovalGiven)
	_, err := s.Decide(t.Context(), cancelled.ID, semel.Decision{State: semel.ApprovalGiven, By: "bert", Digest: cancelled.Digest})
	if e, ok := errors.AsType[*semel.ApprovalStateError](err); !ok || !strings.Contains(e.Problem, "closed") {
		t.Fatalf("decide a closed one: got error %v", err)
	}
}
