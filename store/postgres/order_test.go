package postgres_test

import (
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
