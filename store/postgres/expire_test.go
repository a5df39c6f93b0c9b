package postgres_test

import (
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/store/postgres"
)

// M25: an operation that took long to settle expires, too, although younger
// ones expired before it.
func TestLateSettlementExpires(t *testing.T) {
	s := open(t, migrated(t), postgres.Options{})
	expire := func() {
		t.Helper()
		for until := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) { // on a busy machine not all are walked each time
			now, err := s.Now(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			n, err := s.Expire(t.Context(), now, 1)
			switch {
			case n == 1 && err == nil:
				return
			case err != nil || time.Now().After(until):
				t.Fatalf("expired %d, error %v, want 1", n, err)
			}
		}
	}
	old := commit(t, s, claimOf(t, time.Now().Add(-time.Hour)))
	old = commit(t, s, changeOf(t, old, semel.Event{Kind: semel.EvLost, At: old.UpdatedAt, Attempt: 1, Reason: "no answer"}))
	for range 2 {
		commit(t, s, confirmationOf(t, commit(t, s, claimOf(t, time.Now()))))
	}
	expire()
	expire()
	commit(t, s, changeOf(t, old, semel.Event{Kind: semel.EvConfirmed, At: old.UpdatedAt, Attempt: 1, By: "worker-1", Result: &semel.Result{Status: 200}}))
	expire()
}
