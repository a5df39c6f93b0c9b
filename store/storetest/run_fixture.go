package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/semel-dev/semel"
)

const workflow = "billing"

var (
	billing = []semel.WorkflowRef{{Name: workflow, Version: 1}}
	worker  = semel.RunClaim{By: "worker-1", Lease: time.Minute}
)

func openRuns(t *testing.T, h Harness) RunStore {
	t.Helper()
	s, ok := h.Open(t).(RunStore)
	if !ok {
		t.Fatal("the store keeps no runs")
	}
	return s
}

func newRun() semel.NewRun {
	return semel.NewRun{Workflow: workflow, Version: 1, Key: newKey(), Input: []byte(`{"invoice":"4417"}`)}
}

// start makes a run due.
func start(t tb, s RunStore, n semel.NewRun) semel.Run {
	t.Helper()
	r, existing, err := s.Start(t.Context(), n, nil)
	if err != nil || existing {
		t.Fatalf("start: existing %v, error %v", existing, err)
	}
	return r
}

// begin makes a run that worker holds.
func begin(t tb, s RunStore) semel.Run {
	t.Helper()
	r, existing, err := s.Start(t.Context(), newRun(), &worker)
	if err != nil || existing || r.Attempt != 1 {
		t.Fatalf("start: attempt %d, existing %v, error %v", r.Attempt, existing, err)
	}
	return r
}

// claimRuns takes all runs that are due.
func claimRuns(t tb, s RunStore) []semel.Run {
	t.Helper()
	runs, err := s.Claim(t.Context(), worker, billing, 100)
	if err != nil {
		t.Fatalf("claim: %v", err)
	}
	return runs
}

// claimRun takes the one run that is due, which must be id.
func claimRun(t tb, s RunStore, id semel.ID) semel.Run {
	t.Helper()
	runs := claimRuns(t, s)
	if len(runs) != 1 || runs[0].ID != id {
		t.Fatalf("claimed %v, want run %s", runIDs(runs), id)
	}
	return runs[0]
}

func runIDs(runs []semel.Run) []semel.ID {
	ids := []semel.ID{}
	for _, r := range runs {
		ids = append(ids, r.ID)
	}
	return ids
}

func loadRun(t tb, s RunStore, id semel.ID) semel.Run {
	t.Helper()
	r, err := s.LoadRun(t.Context(), id)
	if err != nil {
		t.Fatalf("load run: %v", err)
	}
	return r
}

func fence(r semel.Run) semel.RunFence { return semel.RunFence{Run: r.ID, Attempt: r.Attempt} }

// end ends the execution of r.
func end(t tb, s RunStore, r semel.Run, n semel.RunNext) semel.Run {
	t.Helper()
	mustCommit(t, s, semel.RunCommit{RunFence: fence(r), Next: &n})
	return loadRun(t, s, r.ID)
}

// suspend ends the execution of r, which waits.
func suspend(t tb, s RunStore, r semel.Run, waits ...semel.RunWait) semel.Run {
	t.Helper()
	return end(t, s, r, semel.RunNext{State: semel.RunWaiting, Reason: "it waits", Waits: waits})
}

func mustCommit(t tb, s RunStore, c semel.RunCommit) semel.RunCommitted {
	t.Helper()
	out := s.CommitRun(t.Context(), c)
	if err := errors.Join(out.OutcomeErr, out.ClaimErr, out.RunErr); err != nil {
		t.Fatalf("commit run: %v", err)
	}
	return out
}

func changeRun(t tb, s RunStore, id semel.ID, verb semel.RunVerb) semel.Run {
	t.Helper()
	r, err := s.ChangeRun(t.Context(), id, semel.RunCommand{Verb: verb, By: "anna", Reason: "because"})
	if err != nil {
		t.Fatalf("%s: %v", verb, err)
	}
	return r
}

func wantRunState(t tb, what string, got semel.Run, want semel.RunState) {
	t.Helper()
	if got.State != want {
		t.Fatalf("%s: the run is %s (%s), want %s", what, got.State, got.Reason, want)
	}
}

// wantDue checks whether the run is due now.
func wantDue(t tb, s RunStore, what string, id semel.ID, want bool) {
	t.Helper()
	r := loadRun(t, s, id)
	if got := !r.DueAt.IsZero() && !r.DueAt.After(now(t, s)); got != want {
		t.Fatalf("%s: due %v (at %v), want %v", what, got, r.DueAt, want)
	}
}

// noteKinds are the kinds of the run's notes, in order.
func noteKinds(t tb, s RunStore, id semel.ID) []string {
	t.Helper()
	notes, err := s.Notes(t.Context(), id)
	if err != nil {
		t.Fatalf("notes: %v", err)
	}
	kinds := []string{}
	for _, n := range notes {
		if n.At.IsZero() {
			t.Fatalf("a note has no time: %+v", n)
		}
		kinds = append(kinds, n.Kind)
	}
	return kinds
}

func waitsOf(t tb, s RunStore, id semel.ID) []semel.RunWait {
	t.Helper()
	waits, err := s.Waits(t.Context(), id)
	if err != nil {
		t.Fatalf("waits: %v", err)
	}
	h, err := s.History(t.Context(), id)
	if err != nil {
		t.Fatalf("history: %v", err)
	}
	diff(t, "waits of the history", h.Waits, waits)
	return waits
}

func stepsOf(t tb, s RunStore, id semel.ID) []semel.StepRecord {
	t.Helper()
	steps, err := s.Steps(t.Context(), id)
	if err != nil {
		t.Fatalf("steps: %v", err)
	}
	h, err := s.History(t.Context(), id)
	if err != nil {
		t.Fatalf("history: %v", err)
	}
	diff(t, "steps of the history", h.Steps, steps)
	return steps
}

// stepClaim prepares the first claim of an operation in a step of r.
func stepClaim(t tb, s RunStore, r semel.Run, path string) *semel.Change {
	t.Helper()
	o := fresh(now(t, s), newKey(), contract())
	o.Run, o.Step, o.Request.Action = r.ID, path, "charge"
	c := change(t, s, o, claimed(1))
	return &c
}

// diff compares; nil and empty bytes are one, and times are compared by the
// microsecond.
func diff(t tb, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got, emptyBytes, cmpopts.EquateApproxTime(time.Microsecond), cmpopts.EquateEmpty(), cmp.AllowUnexported(semel.Operation{})); d != "" {
		t.Fatalf("%s (-want +got):\n%s", what, d)
	}
}

func wantRunStateError(t tb, what string, err error) {
	t.Helper()
	if e, ok := errors.AsType[*semel.RunStateError](err); !ok || e.Run.ID == (semel.ID{}) {
		t.Fatalf("%s: got error %v, want a *RunStateError with its run", what, err)
	}
}

func event(id, match string) semel.InboxEvent {
	return semel.InboxEvent{ID: id, Name: "paid", Match: match, Data: fmt.Appendf(nil, `{"id":%q}`, id), By: "bank"}
}

func send(t tb, s RunStore, e semel.InboxEvent) {
	t.Helper()
	if existing, err := s.Send(t.Context(), e); err != nil || existing {
		t.Fatalf("send: existing %v, error %v", existing, err)
	}
}
