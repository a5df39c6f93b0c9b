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

// A lease that lapses before the sweep comes to its claim is found when it
// lapses, and an operation that has ended meanwhile is not.
func TestLapseBeforeTheSweep(t *testing.T) {
	t.Parallel()
	url := migrated(t)
	s := open(t, url, postgres.Options{})
	due := func() int {
		t.Helper()
		found, err := s.Due(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	for range 3 {
		commit(t, s, claimOf(t, time.Now())) // for 30 s
	}
	ended := commit(t, s, claimOf(t, time.Now()))
	if n := due(); n != 0 {
		t.Fatalf("%d are due at once", n)
	}
	s.Shift(20 * time.Second)
	if n := due(); n != 0 {
		t.Fatalf("%d are due after 20 s", n)
	}
	if n := query[int](t, session(t, url), `select count(*) from semel.operation where due_at is not null`); n != 0 {
		t.Errorf("%d have a due_at, so that their outcome is not written in place", n)
	}
	commit(t, s, confirmationOf(t, ended))
	s.Shift(11 * time.Second)
	for range 2 {
		if n := due(); n != 3 {
			t.Errorf("%d are due after their lease, want 3", n)
		}
	}
	s.Shift(time.Minute)
	if n := due(); n != 3 {
		t.Errorf("%d are due after the sweep, want 3", n)
	}
}
