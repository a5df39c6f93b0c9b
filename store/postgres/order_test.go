package postgres_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/store/postgres"
)

// Section 6: transactions of several processes lock in one order. Two that wait
// for each other stand still until the server ends one, for a second at least.
func TestBatchesDoNotDeadlock(t *testing.T) {
	t.Parallel()
	const many = 64
	for name, provoke := range map[string]func(t *testing.T, s, other *postgres.Store){
		"suspensions and outcomes": func(t *testing.T, s, other *postgres.Store) {
			for range 20 {
				var ready, both sync.WaitGroup
				runs, waits := make([]semel.Run, many), make([]semel.Operation, many)
				for i := range many {
					ready.Go(func() {
						runs[i], waits[i] = begun(t, s, "billing"), commit(t, s, claimOf(t, time.Now()))
					})
				}
				ready.Wait()
				for i := range many {
					two := []semel.RunWait{waitFor(waits[i]), waitFor(waits[many-1-i])}
					both.Go(func() {
						commitRun(t, s, semel.RunCommit{RunFence: fenceOf(runs[i]), Next: ends(semel.RunWaiting, two[:1+i%2]...)})
					})
					both.Go(func() { commit(t, other, confirmationOf(t, waits[i])) })
				}
				both.Wait()
			}
		},
		"renewals and steps": func(t *testing.T, s, other *postgres.Store) {
			var ready, steps sync.WaitGroup
			fences := make([]semel.RunFence, many)
			for i := range many {
				ready.Go(func() { fences[i] = fenceOf(begun(t, s, "billing")) })
			}
			ready.Wait()
			done := make(chan struct{})
			for _, f := range fences {
				steps.Go(func() {
					for {
						commitRun(t, s, semel.RunCommit{RunFence: f, Steps: []semel.StepRecord{{Path: "now", Kind: semel.StepValue, What: "now"}}})
						select {
						case <-done:
							return
						default:
						}
					}
				})
			}
			for range 20 {
				renewed, err := other.RenewRuns(t.Context(), fences, time.Minute)
				if err != nil || len(renewed) != many {
					t.Errorf("%d of %d leases renewed, error %v", len(renewed), many, err)
				}
			}
			close(done)
			steps.Wait()
		},
		"outcomes before claims, and suspensions": func(t *testing.T, s, other *postgres.Store) {
			for range 20 {
				var ready, both sync.WaitGroup
				goOn, wait, effects := make([]semel.Run, many), make([]semel.Run, many), make([]semel.Operation, many)
				for i := range many {
					ready.Go(func() {
						goOn[i], wait[i], effects[i] = begun(t, s, "billing"), begun(t, s, "billing"), commit(t, s, claimOf(t, time.Now()))
					})
				}
				ready.Wait()
				for i := range many {
					outcome := confirmationOf(t, effects[i])
					both.Go(func() {
						commitRun(t, s, semel.RunCommit{RunFence: fenceOf(goOn[i]), Outcome: &outcome, Claim: stepClaimOf(t, goOn[i], "next")})
					})
					both.Go(func() {
						commitRun(t, other, semel.RunCommit{RunFence: fenceOf(wait[i]), Next: ends(semel.RunWaiting, waitFor(effects[i]))})
					})
				}
				both.Wait()
			}
		},
		"children at work, and parents that suspend": func(t *testing.T, s, other *postgres.Store) {
			for range 10 {
				var ready, all sync.WaitGroup
				children := make([]semel.Run, many)
				for i := range many {
					ready.Go(func() { children[i] = begun(t, s, "child") })
				}
				ready.Wait()
				waits := make([]semel.RunWait, many)
				for i, c := range children {
					waits[i] = semel.RunWait{Path: "child", Kind: semel.WaitRun, Target: c.ID}
				}
				suspendParent := func() {
					commitRun(t, other, semel.RunCommit{RunFence: fenceOf(begun(t, other, "parent")), Next: ends(semel.RunWaiting, waits...)})
				}
				suspendParent() // the first one that waits for a child writes that down
				for _, c := range children {
					all.Go(func() {
						for range 5 {
							commitRun(t, s, semel.RunCommit{RunFence: fenceOf(c), Steps: []semel.StepRecord{{Path: "now", Kind: semel.StepValue, What: "now"}}})
						}
						commitRun(t, s, semel.RunCommit{RunFence: fenceOf(c), Next: &semel.RunNext{State: semel.RunWaiting, DueAt: time.Now().Add(time.Hour)}})
					})
				}
				for range 8 {
					all.Go(suspendParent)
				}
				all.Wait()
			}
		},
		"two parents that start the same children": func(t *testing.T, s, other *postgres.Store) {
			for range 5 {
				var all sync.WaitGroup
				for range many {
					one, two := newRun("child"), newRun("child")
					a := semel.RunWait{Path: "a", Kind: semel.WaitRun, Child: &one}
					b := semel.RunWait{Path: "b", Kind: semel.WaitRun, Child: &two}
					suspendParent := func(s *postgres.Store, waits ...semel.RunWait) {
						commitRun(t, s, semel.RunCommit{RunFence: fenceOf(begun(t, s, "parent")), Next: ends(semel.RunWaiting, waits...)})
					}
					all.Go(func() { suspendParent(s, a, b) })
					all.Go(func() { suspendParent(other, b, a) })
				}
				all.Wait()
			}
		},
		"an event for parents and children, and children that are cancelled": func(t *testing.T, s, other *postgres.Store) {
			for range 10 {
				var ready, all sync.WaitGroup
				children := make([]semel.Run, many)
				events := make([]semel.InboxEvent, many)
				for i := range many {
					ready.Go(func() {
						parent, n := begun(t, s, "parent"), newRun("child")
						n.ID = newID(parent.ID.Time().Add(time.Millisecond)) // within one, IDs are in no order
						child, _, err := s.Start(t.Context(), n, &worker)
						if err != nil {
							t.Error(err)
							return
						}
						e := semel.InboxEvent{ID: child.ID.String(), Name: "paid", Match: child.ID.String()}
						paid := semel.RunWait{Path: "paid", Kind: semel.WaitEvent, Event: e.Name, Match: e.Match}
						commitRun(t, s, semel.RunCommit{RunFence: fenceOf(child), Next: ends(semel.RunWaiting, paid)})
						of := semel.RunWait{Path: "child", Kind: semel.WaitRun, Target: child.ID}
						commitRun(t, s, semel.RunCommit{RunFence: fenceOf(parent), Next: ends(semel.RunWaiting, of, paid)})
						children[i], events[i] = child, e
					})
				}
				ready.Wait()
				for i := range many {
					all.Go(func() {
						if _, err := s.Send(t.Context(), events[i]); err != nil {
							t.Error(err)
						}
					})
					all.Go(func() {
						if _, err := other.ChangeRun(t.Context(), children[i].ID, semel.RunCommand{Verb: semel.CancelRun, By: "anna"}); err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
			}
		},
		"workers that register": func(t *testing.T, s, other *postgres.Store) {
			var forth, back []semel.WorkflowDefinition
			for i := range many {
				d := semel.WorkflowDefinition{Name: fmt.Sprintf("billing_%02d", i), Version: 1}
				forth, back = append(forth, d), append([]semel.WorkflowDefinition{d}, back...)
			}
			var both sync.WaitGroup
			for s, definitions := range map[*postgres.Store][]semel.WorkflowDefinition{s: forth, other: back} {
				both.Go(func() {
					for range 20 {
						if err := s.Register(t.Context(), definitions); err != nil {
							t.Error(err)
						}
					}
				})
			}
			both.Wait()
		},
		"the sweep and outcomes": func(t *testing.T, s, other *postgres.Store) {
			other.Shift(2 * time.Minute)
			for range 5 {
				var ready, all sync.WaitGroup
				effects := make([]semel.Operation, 10*many)
				for i := range effects {
					ready.Go(func() { effects[i] = commit(t, s, claimOf(t, time.Now().Add(-time.Duration(i%800)*time.Millisecond))) })
				}
				ready.Wait()
				for _, o := range effects {
					all.Go(func() { commit(t, s, confirmationOf(t, o)) })
				}
				all.Go(func() {
					if _, err := other.Due(t.Context(), 1); err != nil {
						t.Error(err)
					}
				})
				all.Wait()
				other.Shift(2 * time.Second) // it sweeps again
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := migrated(t)
			provoke(t, open(t, url, postgres.Options{}), open(t, url, postgres.Options{}))
			if n := deadlocks(t, session(t, url)); n != 0 {
				t.Errorf("%d deadlocks", n)
			}
		})
	}
}

func waitFor(o semel.Operation) semel.RunWait {
	return semel.RunWait{Path: "charge", Kind: semel.WaitOperation, Target: o.ID, Version: o.Version}
}

// deadlocks is how many the server met in this database. Sessions report what
// they counted when they end, so it ends all others first.
func deadlocks(t *testing.T, conn *pgx.Conn) int {
	const end = `
select count(pg_terminate_backend(pid, 5000))::int
from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid()`
	query[int](t, conn, end)
	return query[int](t, conn, `select deadlocks::int from pg_stat_database where datname = current_database()`)
}
