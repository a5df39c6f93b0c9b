package sqlite_test

import (
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/store/sqlite"
)

// TestExpireGoesOn: retention looks every few seconds. Where a walk through all
// records takes long, the next ones begin where it ended.
func TestExpireGoesOn(t *testing.T) {
	path := newPath(t)
	s := create(t, path)
	settled(t, s, "first")
	tombstones(t, path, 100_000)
	walk := func(before time.Duration, want int) time.Duration {
		t.Helper()
		start := time.Now()
		n, err := s.Expire(t.Context(), start.Add(before), 10)
		if err != nil || n != want {
			t.Fatalf("%d expired, want %d, error %v", n, want, err)
		}
		return time.Since(start)
	}
	all, again := walk(time.Minute, 1), walk(time.Minute, 0)
	for range 5 {
		again = min(again, walk(time.Minute, 0))
	}
	if again > all/10 {
		t.Errorf("a later walk takes %v, the first took %v", again, all)
	}
	s.Shift(time.Hour)
	settled(t, s, "next")
	walk(time.Minute, 0)
	walk(2*time.Hour, 1)
}

func settled(t *testing.T, s *sqlite.Store, key string) {
	t.Helper()
	if _, err := s.Commit(t.Context(), change(t, mustClaim(t, s, key), semel.Event{Kind: semel.EvConfirmed, Attempt: 1})); err != nil {
		t.Fatal(err)
	}
}

// tombstones adds expired copies of the one operation in the store.
func tombstones(t *testing.T, path string, n int) {
	t.Helper()
	execRaw(t, raw(t, path), `
		with recursive n (i) as (select 1 union all select i + 1 from n where i < ?)
		insert into operation (id, scope, key, fingerprint, request, contract, state, version, attempt, lease_until, cancel, incident, expired,
			created_at, updated_at, first, second, second_at, second_token)
		select randomblob(16), scope, 'tombstone ' || i, fingerprint, request, contract, state, version, attempt, lease_until, cancel, incident, 1,
			created_at, updated_at, first, second, second_at, second_token
		from operation, n`, n)
}
