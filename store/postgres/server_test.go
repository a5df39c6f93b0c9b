package postgres_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/store/postgres"
	"github.com/semel-dev/semel/store/postgres/postgrestest"
)

// M1, M14, section 6: the server crashes and restarts under load. What was
// acknowledged is there, what was refused is not, and what was unconfirmed is
// told by repeating it.
func TestRestartUnderLoad(t *testing.T) {
	server := postgrestest.Start(t, postgrestest.Options{Durable: true})
	s := open(t, server.Database(t), postgres.Options{Create: true})
	var mu sync.Mutex
	var acknowledged, refused, unconfirmed []semel.Change
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for !stop.Load() {
				c := claimOf(t, time.Now())
				_, err := s.Commit(t.Context(), c)
				mu.Lock()
				switch {
				case err == nil:
					acknowledged = append(acknowledged, c)
				case errors.Is(err, semel.ErrUnavailable):
					refused = append(refused, c)
				case errors.Is(err, semel.ErrUnconfirmed):
					unconfirmed = append(unconfirmed, c)
				default:
					t.Errorf("commit while the server restarts: %v", err)
				}
				mu.Unlock()
				if err != nil {
					time.Sleep(5 * time.Millisecond)
				}
			}
		})
	}
	for _, interrupt := range []func(context.Context) error{server.Crash, server.Stop, server.Crash} {
		time.Sleep(200 * time.Millisecond)
		if err := interrupt(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
		if err := server.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(300 * time.Millisecond)
	stop.Store(true)
	wg.Wait()
	t.Logf("acknowledged %d, refused %d, unconfirmed %d", len(acknowledged), len(refused), len(unconfirmed))
	if len(acknowledged) == 0 {
		t.Error("the restarts met no load")
	}
	for _, c := range acknowledged {
		if _, err := s.LoadID(t.Context(), c.After.ID); err != nil {
			t.Errorf("an acknowledged claim: %v", err)
		}
	}
	for _, c := range refused {
		if _, err := s.LoadID(t.Context(), c.After.ID); !errors.Is(err, semel.ErrNotFound) {
			t.Errorf("a claim that surely was not written: error %v, want ErrNotFound", err)
		}
	}
	for _, c := range unconfirmed {
		commit(t, s, c)
	}
}

// Law 1: a server that cannot write refuses the claim before anything is sent,
// and says what to do.
func TestReadOnlyServer(t *testing.T) {
	server := postgrestest.Start(t, postgrestest.Options{})
	s := open(t, server.Database(t), postgres.Options{Create: true})
	o := commit(t, s, claimOf(t, time.Now()))
	if err := server.SetReadOnly(t.Context()); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); { // sessions learn of it one by one
		if _, err := s.Commit(t.Context(), claimOf(t, time.Now())); err != nil {
			break
		}
	}
	for _, c := range []semel.Change{claimOf(t, time.Now()), confirmationOf(t, o)} {
		_, err := s.Commit(t.Context(), c)
		if !errors.Is(err, semel.ErrUnavailable) || !strings.Contains(err.Error(), "connect to the primary") {
			t.Errorf("%s on a read-only server: error %v, want ErrUnavailable with the next move", c.Event.Kind, err)
		}
	}
	if _, err := s.LoadID(t.Context(), o.ID); err != nil {
		t.Errorf("reading still works there: %v", err)
	}
	if err := server.SetWritable(t.Context()); err != nil {
		t.Fatal(err)
	}
	commit(t, s, confirmationOf(t, o))
}

// M14: a server with four connections serves two hundred callers.
func TestFewConnectionsManyCallers(t *testing.T) {
	server := postgrestest.Start(t, postgrestest.Options{MaxConnections: 4, Settings: map[string]string{"superuser_reserved_connections": "0", "max_wal_senders": "0"}})
	url, err := server.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, url, postgres.Options{Create: true})
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			o, err := s.Commit(t.Context(), claimOf(t, time.Now()))
			if err != nil {
				t.Errorf("claim: %v", err)
				return
			}
			if o, err = s.LoadID(t.Context(), o.ID); err != nil {
				t.Errorf("load: %v", err)
				return
			}
			if _, err = s.Commit(t.Context(), confirmationOf(t, o)); err != nil {
				t.Errorf("outcome: %v", err)
			}
		})
	}
	wg.Wait()
}

// Section 6: a row that somebody else holds fails by itself, not its neighbours.
func TestLockedRowSparesItsNeighbours(t *testing.T) {
	url := migrated(t)
	s := open(t, url, postgres.Options{})
	locked, free := commit(t, s, claimOf(t, time.Now())), commit(t, s, claimOf(t, time.Now()))
	tx, err := session(t, url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from semel.operation where id = $1 for update`, [16]byte(locked.ID)); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := s.Commit(t.Context(), confirmationOf(t, locked))
		if !errors.Is(err, semel.ErrUnavailable) || !strings.Contains(err.Error(), "lock") {
			t.Errorf("a change of a locked row: error %v, want ErrUnavailable that speaks of the lock", err)
		}
	})
	wg.Go(func() {
		if _, err := s.Commit(t.Context(), confirmationOf(t, free)); err != nil {
			t.Errorf("its neighbour: %v", err)
		}
	})
	wg.Wait()
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	commit(t, s, confirmationOf(t, locked))
}

// Section 6: an outcome is written in place, so neither index grows.
func TestOutcomesAreWrittenInPlace(t *testing.T) {
	url := migrated(t)
	s := open(t, url, postgres.Options{})
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for range 20 {
				commit(t, s, confirmationOf(t, commit(t, s, claimOf(t, time.Now()))))
			}
		})
	}
	wg.Wait()
	if err := s.Close(); err != nil { // sessions report their counts when they end
		t.Fatal(err)
	}
	conn := session(t, url)
	const counts = `select n_tup_upd = $1 from pg_stat_user_tables where relid = 'semel.operation'::regclass`
	for until := time.Now().Add(10 * time.Second); !query[bool](t, conn, counts, 64*20); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the server's statistics did not arrive")
		}
	}
	const ratio = `select n_tup_hot_upd::float / n_tup_upd from pg_stat_user_tables where relid = 'semel.operation'::regclass`
	if got := query[float64](t, conn, ratio); got < 0.95 {
		t.Errorf("%.1f%% of the outcomes were written in place (HOT), want 95%%", 100*got)
	}
}

// Section 6, the planner trap: on a table that was never analyzed, every
// statement of the hot path is answered by an index.
func TestHotStatementsUseIndexes(t *testing.T) {
	url := migrated(t)
	s := open(t, url, postgres.Options{})
	conn := session(t, url)
	const scans = `select coalesce(sum(seq_scan), 0)::bigint from pg_stat_user_tables where relname in ('operation', 'evidence')`
	const scanned = `select coalesce(sum(idx_scan), 0)::bigint from pg_stat_user_tables where relname in ('operation', 'evidence')`
	if _, err := conn.Exec(t.Context(), `alter table semel.operation set (autovacuum_enabled = off)`); err != nil {
		t.Fatal(err)
	}
	before := query[int64](t, conn, scans)
	for range 50 {
		c := claimOf(t, time.Now())
		o := commit(t, s, c)
		commit(t, s, c) // recognised
		lost := commit(t, s, claimOf(t, time.Now()))
		commit(t, s, changeOf(t, lost, semel.Event{Kind: semel.EvLost, At: lost.UpdatedAt, Attempt: 1, Reason: "no answer"}))
		if _, err := s.Renew(t.Context(), o.ID, 1, time.Minute); err != nil {
			t.Fatal(err)
		}
		o = commit(t, s, confirmationOf(t, o))
		o = commit(t, s, changeOf(t, o, semel.Event{Kind: semel.EvJoined, At: o.UpdatedAt, By: "source"}))
		if _, err := s.Load(t.Context(), o.Scope, o.Key); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Due(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		for _, err := range s.List(t.Context(), semel.Filter{State: semel.Unknown, Limit: 10}) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(10 * time.Second); query[int64](t, conn, scanned) < 300; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the server's statistics did not arrive")
		}
	}
	if got := query[int64](t, conn, scans) - before; got != 0 {
		t.Errorf("%d sequential scans, want none", got)
	}
}
