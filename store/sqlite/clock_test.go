package sqlite_test

import (
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/store/sqlite"
)

// TestSharedClock: law 14. The clock never runs back for an operation, also
// where the process that writes next has a clock that is behind.
func TestSharedClock(t *testing.T) {
	path := newPath(t)
	ahead, behind := create(t, path), create(t, path)
	ahead.Shift(time.Hour)
	o := mustClaim(t, ahead, "k")
	for range 3 {
		after, err := behind.Commit(t.Context(), change(t, o, semel.Event{Kind: semel.EvJoined}))
		if err != nil {
			t.Fatal(err)
		}
		if after.UpdatedAt.Before(o.UpdatedAt) {
			t.Fatalf("stamped %v, after %v", after.UpdatedAt, o.UpdatedAt)
		}
		o = after
	}
	if now, err := behind.Now(t.Context()); err != nil || now.Before(o.UpdatedAt) {
		t.Errorf("now is %v, error %v, after a commit at %v", now, err, o.UpdatedAt)
	}
}

// A drill reads its own clock: time stands still between its calls.
func TestClockOfADrill(t *testing.T) {
	at := time.Date(2040, time.January, 1, 0, 0, 0, 0, time.UTC)
	s, err := sqlite.Open(t.Context(), newPath(t), sqlite.Options{Create: true, Clock: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	s.Shift(time.Hour)
	for range 2 {
		if now, err := s.Now(t.Context()); err != nil || !now.Equal(at.Add(time.Hour)) {
			t.Errorf("now is %v, %v", now, err)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
