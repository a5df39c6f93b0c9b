package postgres_test

import (
	"testing"
	"time"

	"github.com/semel-dev/semel/store/postgres"
)

// A connection that is lost in the middle of the sweep for lapsed leases costs
// a repeat, not the sweep: recovery must not stop because one answer was lost.
func TestSweepSurvivesALostConnection(t *testing.T) {
	t.Parallel()
	p, dsn := newProxy(t, migrated(t))
	s := open(t, dsn, postgres.Options{Readers: 1})
	for cuts := range 6 {
		if _, err := s.Due(t.Context(), 10); err != nil {
			t.Fatalf("with nothing cut: %v", err)
		}
		time.Sleep(1100 * time.Millisecond) // the next look sweeps again
		p.spare.Store(int64(cuts))
		p.cutAnswers.Store(true)
		if _, err := s.Due(t.Context(), 10); err != nil {
			t.Errorf("after %d answers the connection was cut: %v", cuts, err)
		}
		p.cutAnswers.Store(false)
	}
	if p.cuts.Load() == 0 {
		t.Error("no connection was cut")
	}
}
