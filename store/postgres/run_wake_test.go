package postgres_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/store/postgres"
)

const rounds = 1000

// A suspension and what it waits for happen at once: whichever is first, the
// run is due afterwards.
func TestNoLostWakeUp(t *testing.T) {
	t.Parallel()
	url := migrated(t)
	s, other := open(t, url, postgres.Options{}), open(t, url, postgres.Options{})
	for name, race := range map[string]func(t *testing.T, s *postgres.Store, i int) (w semel.RunWait, happen func() error){
		"event": func(t *testing.T, s *postgres.Store, i int) (semel.RunWait, func() error) {
			e := semel.InboxEvent{ID: fmt.Sprint(i), Name: "paid", Match: fmt.Sprint("order ", i%7)}
			return semel.RunWait{Path: "paid", Kind: semel.WaitEvent, Event: e.Name, Match: e.Match}, func() error {
				_, err := other.Send(t.Context(), e)
				return err
			}
		},
		"approval": func(t *testing.T, s *postgres.Store, _ int) (semel.RunWait, func() error) {
			asked := approvalOf(t)
			asker := begun(t, s, "asking")
			commitRun(t, s, semel.RunCommit{RunFence: fenceOf(asker), Next: ends(semel.RunWaiting, semel.RunWait{Path: "ask", Kind: semel.WaitApproval, Approval: &asked})})
			return semel.RunWait{Path: "ask", Kind: semel.WaitApproval, Target: asked.ID}, func() error {
				_, err := other.Decide(t.Context(), asked.ID, semel.Decision{State: semel.ApprovalGiven, By: "anna", Digest: asked.Digest})
				return err
			}
		},
		"run": func(t *testing.T, s *postgres.Store, _ int) (semel.RunWait, func() error) {
			child := begun(t, s, "child")
			return semel.RunWait{Path: "child", Kind: semel.WaitRun, Target: child.ID}, func() error {
				return other.CommitRun(t.Context(), semel.RunCommit{RunFence: fenceOf(child), Next: ends(semel.RunCompleted)}).RunErr
			}
		},
		"operation": func(t *testing.T, s *postgres.Store, _ int) (semel.RunWait, func() error) {
			o := commit(t, s, claimOf(t, time.Now()))
			return semel.RunWait{Path: "charge", Kind: semel.WaitOperation, Target: o.ID, Version: 1}, func() error {
				_, err := other.Commit(t.Context(), confirmationOf(t, o))
				return err
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var wg sync.WaitGroup
			for worker := range 8 {
				wg.Go(func() {
					for i := worker; i < rounds && !t.Failed(); i += 8 {
						w, happen := race(t, s, i)
						r := begun(t, s, "racing-"+name)
						var both sync.WaitGroup
						both.Go(func() {
							if err := happen(); err != nil {
								t.Errorf("round %d: %v", i, err)
							}
						})
						both.Go(func() {
							out := s.CommitRun(t.Context(), semel.RunCommit{RunFence: fenceOf(r), Next: ends(semel.RunWaiting, w)})
							if out.RunErr != nil {
								t.Errorf("round %d: %v", i, out.RunErr)
							}
						})
						both.Wait()
						if !isDue(t, s, r.ID) {
							t.Errorf("round %d: the wake-up was lost", i)
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

func approvalOf(t testing.TB) semel.Approval {
	t.Helper()
	c := claimOf(t, time.Now())
	return semel.Approval{
		ID: newID(time.Now()), Path: "ask", Scope: c.After.Scope, Key: c.After.Key, Request: c.After.Request,
		Digest: semel.ApprovalDigest(c.After.Scope, c.After.Key, c.After.Fingerprint), Ask: semel.Ask{Of: "finance"},
	}
}

// Many workers claim at once: each run goes to one of them, once, and none is
// left, although the candidates that they see are the same.
func TestManyClaimers(t *testing.T) {
	t.Parallel()
	url := migrated(t)
	const runs, workers = 600, 12
	s := open(t, url, postgres.Options{})
	var wg sync.WaitGroup
	for i := range runs {
		wg.Go(func() {
			n := newRun(fmt.Sprint("billing-", i%3))
			n.Priority = semel.Priority(i%3 - 1)
			if _, _, err := s.Start(t.Context(), n, nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	refs := []semel.WorkflowRef{{Name: "billing-0", Version: 1}, {Name: "billing-1", Version: 1}, {Name: "billing-2", Version: 1}}
	var mu sync.Mutex
	claimed := map[semel.ID]int{}
	deadline := time.Now().Add(20 * time.Second)
	for i := range workers {
		wg.Go(func() {
			for time.Now().Before(deadline) {
				got, err := s.Claim(t.Context(), semel.RunClaim{By: fmt.Sprint("worker-", i), Lease: time.Minute}, refs, 7)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for _, r := range got {
					claimed[r.ID]++
				}
				done := len(claimed) == runs
				mu.Unlock()
				if done {
					return
				}
			}
		})
	}
	wg.Wait()
	if len(claimed) != runs {
		t.Errorf("%d of %d runs were claimed", len(claimed), runs)
	}
	for id, n := range claimed {
		if n != 1 {
			t.Errorf("run %s was claimed %d times", id, n)
		}
	}
}

// A run that is due is found without reading the hundred thousand that sleep,
// are left alone or have ended, without statistics about the table, and with plans
// that were made while it was empty.
func TestClaimAmongSleepers(t *testing.T) {
	t.Parallel()
	url := migrated(t)
	s := open(t, url, postgres.Options{})
	conn := session(t, url)
	refs := []semel.WorkflowRef{{Name: "billing", Version: 1}}
	for range 3 { // on every connection
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				_, claimErr := s.Claim(t.Context(), worker, refs, 10)
				_, dueErr := s.NextDue(t.Context(), refs)
				if err := errors.Join(claimErr, dueErr); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	const fill = `
insert into semel.run
  (id, created_at, updated_at, workflow, version, definition, key, input, fingerprint, trigger, priority, parent_step, state, due_at, paused_by)
select gen_random_uuid(), now(), now(), 'billing', 1, '', 'sleeper-' || i, '{}', decode(repeat('00', 33), 'hex'), '{"kind":"person"}', 0, '',
  case when i % 3 = 0 then 'waiting' when i % 3 = 1 then 'held' else 'completed' end,
  case when i % 3 = 0 then now() + interval '1 day' when i % 3 = 1 then now() - interval '1 day' end,
  case when i % 3 = 1 then 'anna' end
from generate_series(1, 100000) as i`
	for _, sql := range []string{`alter table semel.run set (autovacuum_enabled = off)`, fill} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	n := newRun("billing")
	r, _, err := s.Start(t.Context(), n, nil)
	if err != nil {
		t.Fatal(err)
	}
	if at, err := s.NextDue(t.Context(), refs); err != nil || !at.Equal(r.DueAt) {
		t.Errorf("next due at %v, error %v, want %v", at, err, r.DueAt)
	}
	got, err := s.Claim(t.Context(), worker, refs, 10)
	if err != nil || len(got) != 1 || got[0].ID != r.ID {
		t.Fatalf("claimed %d runs, error %v, want the one that is due", len(got), err)
	}
	for range 5 {
		if got, err := s.Claim(t.Context(), worker, refs, 10); err != nil || len(got) != 0 {
			t.Fatalf("claimed %d runs, error %v, want none", len(got), err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n := rowsRead(t, conn, "semel.run"); n > 100 {
		t.Errorf("all of this read %d rows, want no more than it found", n)
	}
}

// rowsRead is how many rows of a table the server has read, and how many entries
// of its indexes. Sessions report what they counted when they end, so it waits
// for the end of all others.
func rowsRead(t *testing.T, conn *pgx.Conn, table string) int64 {
	t.Helper()
	const others = `
select count(*)::int
from pg_stat_activity
where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()`
	for until := time.Now().Add(time.Minute); query[int](t, conn, others) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the other sessions do not end")
		}
	}
	const scans = `select coalesce(seq_scan + idx_scan, 0) from pg_stat_user_tables where relid = $1::text::regclass`
	if query[int64](t, conn, scans, table) == 0 {
		t.Fatal("the server counted nothing")
	}
	const read = `
select t.seq_tup_read + coalesce(t.idx_tup_fetch, 0) + (select coalesce(sum(i.idx_tup_read), 0)::bigint from pg_stat_user_indexes as i where i.relid = t.relid)
from pg_stat_user_tables as t
where t.relid = $1::text::regclass`
	return query[int64](t, conn, read, table)
}

// A run that was woken stays due since then, whatever an end that comes late,
// and no longer counts, is about.
func TestALateEndMovesNoWakeUp(t *testing.T) {
	t.Parallel()
	s := open(t, migrated(t), postgres.Options{})
	o, r := commit(t, s, claimOf(t, time.Now())), begun(t, s, "billing")
	commitRun(t, s, semel.RunCommit{RunFence: fenceOf(r), Next: ends(semel.RunHeld, waitFor(o))})
	commit(t, s, confirmationOf(t, o))
	woken := loadRun(t, s, r.ID)
	out := s.CommitRun(t.Context(), semel.RunCommit{RunFence: fenceOf(r), Next: ends(semel.RunWaiting, waitFor(o))})
	if !errors.Is(out.RunErr, semel.ErrStale) {
		t.Errorf("error %v, want ErrStale", out.RunErr)
	}
	if got := loadRun(t, s, r.ID); !got.DueAt.Equal(woken.DueAt) || woken.DueAt.IsZero() {
		t.Errorf("due at %v, and was at %v", got.DueAt, woken.DueAt)
	}
}
