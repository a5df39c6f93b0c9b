package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/store/postgres"
	"github.com/semel-dev/semel/store/postgres/postgrestest"
)

// BenchmarkRun measures a run of one step on a durable server, as a worker
// commits it: started and held, the effect claimed, and the outcome with the
// end. The names say the number of callers.
func BenchmarkRun(b *testing.B) {
	server := postgrestest.Start(b, postgrestest.Options{Durable: true, MaxConnections: 300})
	url, err := server.Create(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	s := open(b, url, postgres.Options{Create: true})
	conn := session(b, url)
	for _, callers := range []int{1, 32, 256} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			const position = `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint`
			before := query[int64](b, conn, position)
			share(b, callers, func(int) error { return chain(b, s) })
			b.ReportMetric(float64(query[int64](b, conn, position)-before)/float64(b.N), "WAL-B/effect")
		})
	}
}

func chain(b *testing.B, s *postgres.Store) error {
	r, _, err := s.Start(b.Context(), newRun("charge"), &worker)
	if err != nil {
		return err
	}
	claimed := s.CommitRun(b.Context(), semel.RunCommit{RunFence: fenceOf(r), Claim: stepClaimOf(b, r, "charge")})
	if claimed.ClaimErr != nil {
		return claimed.ClaimErr
	}
	claimed.Claim.UpdatedAt = time.Now()
	outcome := confirmationOf(b, claimed.Claim)
	ended := s.CommitRun(b.Context(), semel.RunCommit{RunFence: fenceOf(r), Outcome: &outcome, Next: ends(semel.RunCompleted)})
	if ended.OutcomeErr != nil {
		return ended.OutcomeErr
	}
	return ended.RunErr
}
