package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

// testWaitOperation: a run that waits for an operation is due as soon as the
// operation changes, also where it changed before the wait was durable; a run
// that is being executed is not made due.
func testWaitOperation(t *testing.T, h Harness) {
	s, other := openRuns(t, h), openRuns(t, h)
	r := begin(t, s)
	o := mustCommit(t, s, semel.RunCommit{RunFence: fence(r), Claim: stepClaim(t, s, r, "charge")}).Claim
	wait := semel.RunWait{
		Path: "charge", Kind: semel.WaitOperation, Target: o.ID, Version: o.Version, Person: true, Reason: "outcome unknown",
		Since: now(t, s).Add(-time.Minute), Until: now(t, s).Add(time.Hour),
	}
	r = suspend(t, s, r, wait)
	diff(t, "waits", waitsOf(t, other, r.ID), []semel.RunWait{wait})
	if !r.DueAt.IsZero() || len(claimRuns(t, s)) != 0 {
		t.Fatalf("a waiting run is due at %v", r.DueAt)
	}
	h.Shift(time.Second)
	o = commit(t, other, o, lost(1))
	wantDue(t, s, "the operation changed", r.ID, true)
	r = claimRun(t, s, r.ID)
	diff(t, "waits of a claimed run", waitsOf(t, s, r.ID), []semel.RunWait{wait})
	lease := r.LeaseUntil
	o = commit(t, other, o, semel.Event{Kind: semel.EvNoAnswer, By: "recovery", AskedAt: now(t, s)})
	if r = loadRun(t, s, r.ID); !r.DueAt.Equal(lease) || len(claimRuns(t, other)) != 0 {
		t.Fatalf("a run that is being executed is due at %v, its lease ends at %v", r.DueAt, lease)
	}
	suspend(t, s, r, wait) // o has changed since
	wantDue(t, s, "the operation had changed", r.ID, true)
	r = claimRun(t, s, r.ID)
	wait.Version = o.Version
	r = end(t, s, r, semel.RunNext{State: semel.RunHeld, Reason: "ask anna", Waits: []semel.RunWait{wait}, DueAt: now(t, s).Add(time.Hour)})
	wantDue(t, s, "it waits again, held", r.ID, false)

	second := begin(t, s)
	suspend(t, s, second, wait)
	c := change(t, s, o, confirmed(1, "ch_1"))
	third := begin(t, s)
	out := mustCommit(t, other, semel.RunCommit{RunFence: fence(third), Outcome: &c})
	for _, id := range []semel.ID{r.ID, second.ID} {
		wantDue(t, s, "the outcome came in another run's commit", id, true)
	}
	if _, err := s.Commit(t.Context(), c); err != nil || out.Outcome.State != semel.Completed {
		t.Fatalf("outcome %s, repeated: %v", out.Outcome.State, err)
	}
}

// testWaitTime: a wait whose time has come before it is durable makes the run
// due at once; another one leaves it to DueAt.
func testWaitTime(t *testing.T, h Harness) {
	s := openRuns(t, h)
	at := now(t, s)
	for _, c := range []struct {
		until time.Time
		due   bool
	}{{at, true}, {at.Add(-time.Hour), true}, {at.Add(time.Hour), false}, {time.Time{}, false}} {
		r := suspend(t, s, begin(t, s), semel.RunWait{Path: "sleep", Kind: semel.WaitTime, Until: c.until})
		wantDue(t, s, fmt.Sprintf("until %v", c.until), r.ID, c.due)
	}
	r := begin(t, s)
	r = end(t, s, r, semel.RunNext{State: semel.RunWaiting, DueAt: at.Add(time.Hour), Waits: []semel.RunWait{
		{Path: "a", Kind: semel.WaitTime, Until: at.Add(time.Hour)},
		{Path: "b", Kind: semel.WaitPerson, Person: true, Reason: "somebody must look"},
	}})
	waits := waitsOf(t, s, r.ID)
	if len(waits) != 2 || waits[0].Path != "a" || waits[1].Kind != semel.WaitPerson || !waits[1].Person || waits[1].Since.Before(at) {
		t.Fatalf("waits: %+v", waits)
	}
	for len(claimRuns(t, s)) > 0 { // the ones above
	}
	h.Shift(time.Hour + time.Second)
	for _, due := range claimRuns(t, s) {
		if due.ID == r.ID {
			return
		}
	}
	t.Fatal("the run is not claimed when its time has come")
}

// testWaitChild: a child is started with the wait and knows its parent; its
// end, however it ends, makes all parents due. One that has ended does so at
// once.
func testWaitChild(t *testing.T, h Harness) {
	s, other := openRuns(t, h), openRuns(t, h)
	for _, state := range []semel.RunState{semel.RunCompleted, semel.RunFailed, semel.RunCancelled} {
		n := newRun()
		n.Workflow = "child"
		parent := suspend(t, s, begin(t, s), semel.RunWait{Path: "child", Kind: semel.WaitRun, Child: &n})
		child, err := s.FindRun(t.Context(), "child", n.Key)
		if err != nil {
			t.Fatal(err)
		}
		if child.Parent != parent.ID || child.ParentStep != "child" || child.Trigger.Kind != semel.ByRun {
			t.Fatalf("the child is %+v", child)
		}
		if waits := waitsOf(t, s, parent.ID); len(waits) != 1 || waits[0].Target != child.ID {
			t.Fatalf("waits: %+v", waits)
		}
		again := n
		second := suspend(t, s, begin(t, s), semel.RunWait{Path: "child", Kind: semel.WaitRun, Child: &again})
		if waits := waitsOf(t, s, second.ID); waits[0].Target != child.ID {
			t.Fatalf("the second parent waits for %s", waits[0].Target)
		}
		wantDue(t, s, "the child runs", parent.ID, false)
		runs, err := other.Claim(t.Context(), worker, []semel.WorkflowRef{{Name: "child", Version: 1}}, 9)
		if err != nil || len(runs) != 1 {
			t.Fatalf("claimed %v, error %v", runIDs(runs), err)
		}
		suspend(t, other, runs[0], semel.RunWait{Path: "e", Kind: semel.WaitEvent, Event: "never"})
		wantDue(t, s, "the child waits", parent.ID, false)
		if state == semel.RunCancelled {
			changeRun(t, other, child.ID, semel.CancelRun)
		} else {
			changeRun(t, other, child.ID, semel.PauseRun)
			changeRun(t, other, child.ID, semel.ResumeRun)
			runs, err := other.Claim(t.Context(), worker, []semel.WorkflowRef{{Name: "child", Version: 1}}, 9)
			if err != nil || len(runs) != 1 {
				t.Fatalf("claimed %v, error %v", runIDs(runs), err)
			}
			end(t, other, runs[0], semel.RunNext{State: state})
		}
		wantRunState(t, "the child", loadRun(t, s, child.ID), state)
		for _, id := range []semel.ID{parent.ID, second.ID} {
			wantDue(t, s, "the child "+string(state), id, true)
		}
		for _, wait := range []semel.RunWait{{Path: "child", Kind: semel.WaitRun, Child: &n}, {Path: "child", Kind: semel.WaitRun, Target: child.ID}} {
			late := suspend(t, s, begin(t, s), wait)
			wantDue(t, s, "the child had ended", late.ID, true)
		}
	}
}

// testChildConflict: M10 for runs. A child whose key belongs to a run with
// another input is a conflict, and nothing of the end is written.
func testChildConflict(t *testing.T, h Harness) {
	s := openRuns(t, h)
	taken := start(t, s, newRun())
	n := newRun()
	n.Key, n.Input = taken.Key, []byte(`{"invoice":"4418"}`)
	fine := newRun()
	r := begin(t, s)
	for _, second := range []*semel.NewRun{&n, {Workflow: fine.Workflow, Version: 1, Key: fine.Key, Input: []byte(`{"invoice":"5"}`)}} {
		first := fine
		out := s.CommitRun(t.Context(), semel.RunCommit{
			RunFence: fence(r), Steps: []semel.StepRecord{{Path: "v", Kind: semel.StepValue, Outcome: semel.StepCompleted}},
			Next: &semel.RunNext{State: semel.RunWaiting, Waits: []semel.RunWait{
				{Path: "a", Kind: semel.WaitRun, Child: &first}, {Path: "b", Kind: semel.WaitRun, Child: second},
			}},
		})
		conflict, ok := errors.AsType[*semel.RunConflictError](out.RunErr)
		if !ok || conflict.Run.Key != second.Key || len(conflict.Fields) != 1 || conflict.Fields[0] != "input.invoice" {
			t.Fatalf("got error %v, want a *RunConflictError about input.invoice", out.RunErr)
		}
		_, err := s.FindRun(t.Context(), fine.Workflow, fine.Key)
		wantErr(t, "the other child", err, semel.ErrNotFound)
		if got := loadRun(t, s, r.ID); got.State != semel.RunRunning || got.LeaseUntil.IsZero() || len(waitsOf(t, s, r.ID)) != 0 {
			t.Fatalf("the run is %+v", got)
		}
		if len(stepsOf(t, s, r.ID)) != 1 {
			t.Fatal("the record beside the conflict is lost")
		}
	}
	diff(t, "the run that has the key", loadRun(t, s, taken.ID).Input, taken.Input)
}

// testWakeRace: what a run waits for may happen at the moment in which it
// begins to wait: it is due in either case.
func testWakeRace(t *testing.T, h Harness) {
	s, other := openRuns(t, h), openRuns(t, h)
	for i := range 12 {
		o := claim(t, s, contract())
		e := event(fmt.Sprint("race-", i), "m"+fmt.Sprint(i))
		asked := approvalOf(t, s, *stepClaim(t, s, semel.Run{}, "charge"))
		asked.ID = newToken()
		n := newRun()
		n.Workflow = "child"
		child, _, err := s.Start(t.Context(), n, &worker)
		if err != nil {
			t.Fatal(err)
		}
		asker := suspend(t, s, begin(t, s), semel.RunWait{Path: "ask", Kind: semel.WaitApproval, Approval: &asked})
		waits := []semel.RunWait{
			{Path: "w", Kind: semel.WaitOperation, Target: o.ID, Version: o.Version},
			{Path: "w", Kind: semel.WaitEvent, Event: e.Name, Match: e.Match},
			{Path: "w", Kind: semel.WaitApproval, Target: waitsOf(t, s, asker.ID)[0].Target},
			{Path: "w", Kind: semel.WaitRun, Target: child.ID},
		}
		happen := []func() error{
			func() error { _, err := other.Commit(t.Context(), change(t, s, o, confirmed(1, "ch_1"))); return err },
			func() error { _, err := other.Send(t.Context(), e); return err },
			func() error {
				_, err := other.Decide(t.Context(), waits[2].Target, semel.Decision{State: semel.ApprovalGiven, By: "anna", Digest: asked.Digest})
				return err
			},
			func() error {
				return other.CommitRun(t.Context(), semel.RunCommit{RunFence: fence(child), Next: &semel.RunNext{State: semel.RunCompleted}}).RunErr
			},
		}
		var runs []semel.Run
		for range waits {
			runs = append(runs, begin(t, s))
		}
		var wg sync.WaitGroup
		for k, w := range waits {
			wg.Go(func() {
				if err := happen[k](); err != nil {
					t.Errorf("%s: %v", w.Kind, err)
				}
			})
			wg.Go(func() {
				out := s.CommitRun(t.Context(), semel.RunCommit{RunFence: fence(runs[k]), Next: &semel.RunNext{State: semel.RunWaiting, Waits: []semel.RunWait{w}}})
				if out.RunErr != nil {
					t.Errorf("%s: %v", w.Kind, out.RunErr)
				}
			})
		}
		wg.Wait()
		if t.Failed() {
			return
		}
		for k, r := range runs {
			wantDue(t, s, string(waits[k].Kind), r.ID, true)
		}
	}
}
