package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/store/postgres"
)

var worker = semel.RunClaim{By: "worker-1", Lease: time.Minute}

func newRun(workflow string) semel.NewRun {
	return semel.NewRun{Workflow: workflow, Version: 1, Key: semel.Key(fmt.Sprintf("invoice-%09d", minted.Add(1))), Input: []byte(`{"invoice":"4417"}`)}
}

// begun is a run that worker holds.
func begun(t testing.TB, s *postgres.Store, workflow string) semel.Run {
	t.Helper()
	r, _, err := s.Start(t.Context(), newRun(workflow), &worker)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func fenceOf(r semel.Run) semel.RunFence { return semel.RunFence{Run: r.ID, Attempt: r.Attempt} }

// stepClaimOf is the first claim of an operation by a step of r.
func stepClaimOf(t testing.TB, r semel.Run, step string) *semel.Change {
	t.Helper()
	c := claimOf(t, time.Now())
	c.Before.Run, c.Before.Step, c.After.Run, c.After.Step = r.ID, step, r.ID, step
	return &c
}

func commitRun(t testing.TB, s *postgres.Store, c semel.RunCommit) semel.RunCommitted {
	t.Helper()
	out := s.CommitRun(t.Context(), c)
	for _, err := range []error{out.OutcomeErr, out.ClaimErr, out.RunErr} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func ends(s semel.RunState, waits ...semel.RunWait) *semel.RunNext {
	return &semel.RunNext{State: s, Waits: waits}
}

func loadRun(t testing.TB, s *postgres.Store, id semel.ID) semel.Run {
	t.Helper()
	r, err := s.LoadRun(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func isDue(t testing.TB, s *postgres.Store, id semel.ID) bool {
	t.Helper()
	r := loadRun(t, s, id)
	now, err := s.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return !r.DueAt.IsZero() && !r.DueAt.After(now)
}
