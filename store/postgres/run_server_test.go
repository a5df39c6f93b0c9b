package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/store/postgres"
)

// Section 6: a restored server takes no claims of runs and of operations, and
// all that is known of outcomes.
func TestRestoredServerRefusesRuns(t *testing.T) {
	url := migrated(t)
	before := open(t, url, postgres.Options{})
	r := begun(t, before, "billing")
	if _, _, err := before.Start(t.Context(), newRun("billing"), nil); err != nil {
		t.Fatal(err)
	}
	o := commitRun(t, before, semel.RunCommit{RunFence: fenceOf(r), Claim: stepClaimOf(t, r, "charge")}).Claim
	if _, err := session(t, url).Exec(t.Context(), `update semel.store set timeline = timeline - 1`); err != nil {
		t.Fatal(err)
	}
	s := open(t, url, postgres.Options{})
	refs := []semel.WorkflowRef{{Name: "billing", Version: 1}}
	if got, err := s.Claim(t.Context(), worker, refs, 10); !errors.Is(err, semel.ErrRestored) || !strings.Contains(err.Error(), "semel store accept") {
		t.Errorf("claimed %d runs, error %v, want ErrRestored with the next move", len(got), err)
	}
	if _, _, err := s.Start(t.Context(), newRun("billing"), &worker); !errors.Is(err, semel.ErrRestored) {
		t.Errorf("started with a claim: error %v, want ErrRestored", err)
	}
	outcome := confirmationOf(t, o)
	out := s.CommitRun(t.Context(), semel.RunCommit{
		RunFence: fenceOf(r), Outcome: &outcome, Claim: stepClaimOf(t, r, "mail"),
		Steps: []semel.StepRecord{{Path: "value", Kind: semel.StepValue, Outcome: semel.StepCompleted}},
	})
	if !errors.Is(out.ClaimErr, semel.ErrRestored) || out.OutcomeErr != nil || out.RunErr != nil || out.Outcome.State != semel.Completed {
		t.Errorf("outcome %s, error %v; claim error %v, want ErrRestored; run error %v", out.Outcome.State, out.OutcomeErr, out.ClaimErr, out.RunErr)
	}
	if err := s.Accept(t.Context(), o.CreatedAt); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Claim(t.Context(), worker, refs, 10); err != nil || len(got) != 1 {
		t.Errorf("after accept: claimed %d runs, error %v, want 1", len(got), err)
	}
}

// Section 6, the planner trap: on tables that were never analyzed, every
// statement of a run is answered by an index.
func TestRunStatementsUseIndexes(t *testing.T) {
	url := migrated(t)
	s := open(t, url, postgres.Options{})
	conn := session(t, url)
	const tables = `('operation', 'run', 'step', 'wait', 'event', 'event_taken', 'approval', 'run_note', 'place')`
	const off = `
do $$
declare name text;
begin
  foreach name in array array['operation', 'run', 'step', 'wait', 'event', 'event_taken', 'approval', 'run_note', 'place'] loop
    execute format('alter table semel.%I set (autovacuum_enabled = off)', name);
  end loop;
end $$`
	if _, err := conn.Exec(t.Context(), off); err != nil {
		t.Fatal(err)
	}
	const scans = `select coalesce(sum(seq_scan), 0)::bigint from pg_stat_user_tables where schemaname = 'semel' and relname in ` + tables
	const scanned = `select coalesce(sum(idx_scan), 0)::bigint from pg_stat_user_tables where schemaname = 'semel' and relname in ` + tables
	before := query[int64](t, conn, scans)
	for i := range 10 {
		everything(t, s, i)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(10 * time.Second); query[int64](t, conn, scanned) < 200; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the server's statistics did not arrive")
		}
	}
	if got := query[int64](t, conn, scans) - before; got != 0 {
		const which = `select string_agg(relname || ' ' || seq_scan, ', ') from pg_stat_user_tables where seq_scan > 0 and relname in ` + tables
		t.Errorf("%d sequential scans, want none: %s", got, query[string](t, conn, which))
	}
}

// everything asks for all that a worker asks for.
func everything(t *testing.T, s *postgres.Store, i int) {
	t.Helper()
	life(t, s, func() {})
	asked := approvalOf(t)
	r := begun(t, s, "billing")
	e := semel.InboxEvent{ID: fmt.Sprint(i), Name: "paid", Match: fmt.Sprint(i)}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.RenewRuns(t.Context(), []semel.RunFence{fenceOf(r)}, time.Minute)
	must(err)
	commitRun(t, s, semel.RunCommit{RunFence: fenceOf(r), Next: ends(semel.RunWaiting,
		semel.RunWait{Path: "ask", Kind: semel.WaitApproval, Approval: &asked},
		semel.RunWait{Path: "paid", Kind: semel.WaitEvent, Event: e.Name, Match: e.Match},
		semel.RunWait{Path: "child", Kind: semel.WaitRun, Child: new(newRun("child"))})})
	_, err = s.Send(t.Context(), e)
	must(err)
	_, err = s.Decide(t.Context(), asked.ID, semel.Decision{State: semel.ApprovalGiven, By: "anna", Digest: asked.Digest})
	must(err)
	refs := []semel.WorkflowRef{{Name: "billing", Version: 1}}
	_, err = s.NextDue(t.Context(), refs)
	must(err)
	got, err := s.Claim(t.Context(), worker, refs, 1)
	must(err)
	r = got[0]
	_, err = s.TakeEvent(t.Context(), semel.EventClaim{RunFence: fenceOf(r), Path: "paid", Workflow: "billing", Name: e.Name, Match: e.Match})
	must(err)
	_, err = s.Steps(t.Context(), r.ID)
	must(err)
	_, err = s.Waits(t.Context(), r.ID)
	must(err)
	commitRun(t, s, semel.RunCommit{RunFence: fenceOf(r), Next: ends(semel.RunCompleted)})
	l := semel.Limit{Name: "stripe", AtOnce: 100, Every: time.Microsecond, Burst: 10}
	_, err = s.Acquire(t.Context(), l, r.ID, time.Minute)
	must(err)
	must(s.Release(t.Context(), l, r.ID))
	_, err = s.Deliver(t.Context(), 10)
	must(err)
	parked, _, err := s.Start(t.Context(), newRun("parked"), nil)
	must(err)
	for _, verb := range []semel.RunVerb{semel.PauseRun, semel.ResumeRun, semel.CancelRun} {
		_, err = s.ChangeRun(t.Context(), parked.ID, semel.RunCommand{Verb: verb, By: "anna"})
		must(err)
	}
	for _, err := range s.ListRuns(t.Context(), semel.RunFilter{State: semel.RunHeld, Limit: 10}) {
		must(err)
	}
	for _, err := range s.Approvals(t.Context(), semel.ID{}, semel.ApprovalPending) {
		must(err)
	}
}

// A pooler that passes no prepared statements on takes the same statements.
func TestWithoutPreparedStatements(t *testing.T) {
	s := open(t, migrated(t)+"&default_query_exec_mode=exec", postgres.Options{})
	o := commit(t, s, confirmationOf(t, commit(t, s, claimOf(t, time.Now()))))
	commit(t, s, changeOf(t, o, semel.Event{Kind: semel.EvJoined, At: o.UpdatedAt, By: "source"}))
	everything(t, s, 0)
}

// Insert-only clients need neither a store nor its settings: a transaction that
// is rolled back leaves nothing, and an input that differs is told.
func TestStartTxNeedsNoStore(t *testing.T) {
	url := migrated(t)
	conn := session(t, url)
	n := newRun("billing")
	err := pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
		if _, _, err := postgres.StartTx(t.Context(), tx, n); err != nil {
			return err
		}
		return errors.New("changed its mind")
	})
	if err == nil || query[int](t, conn, `select count(*) from semel.run`) != 0 {
		t.Fatalf("a rollback left a run, error %v", err)
	}
	for range 2 {
		if err := pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
			r, _, err := postgres.StartTx(t.Context(), tx, n)
			if err == nil && (r.Trigger.Kind != semel.ByTransaction || r.DiffInput(n.Input) != nil) {
				t.Errorf("started %+v", r)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if got := query[int](t, conn, `select count(*) from semel.run`); got != 1 {
		t.Errorf("%d runs, want 1", got)
	}
}

// A run that an outsider has locked takes no other one's renewal with it.
func TestALockedRunIsRenewedAlone(t *testing.T) {
	t.Parallel()
	url := migrated(t)
	s := open(t, url, postgres.Options{})
	var held []semel.RunFence
	for range 3 {
		held = append(held, fenceOf(begun(t, s, "billing")))
	}
	tx, err := session(t, url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context()) // nothing was changed
	if _, err := tx.Exec(t.Context(), `select from semel.run where id = $1 for update`, [16]byte(held[1].Run)); err != nil {
		t.Fatal(err)
	}
	runs, err := s.RenewRuns(t.Context(), held, time.Hour)
	if !errors.Is(err, semel.ErrUnavailable) {
		t.Errorf("error %v, want ErrUnavailable", err)
	}
	if len(runs) != 2 || runs[0].ID == held[1].Run || runs[1].ID == held[1].Run {
		t.Errorf("%d runs were renewed, want the other two", len(runs))
	}
}
