package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver named pgx

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/store/postgres"
)

// Case C26, steps 1 and 4: a transaction that commits late, behind one that
// began later, is delivered all the same, and holds nobody back meanwhile.
func TestC26LateCommitIsDelivered(t *testing.T) {
	t.Parallel()
	url := migrated(t)
	s := open(t, url, postgres.Options{})
	subscribe(t, s)
	late, err := session(t, url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := postgres.SendTx(t.Context(), late, outboxEvent(1)); err != nil {
		t.Fatal(err)
	}
	conn := session(t, url)
	for i := 2; i < 50; i++ {
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(postgres.SendTx(t.Context(), tx, outboxEvent(i)), tx.Commit(t.Context())); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Deliver(t.Context(), 10); err != nil || n != 1 {
			t.Fatalf("delivered %d, error %v, want the one that was committed", n, err)
		}
		wantStarted(t, s, i)
	}
	if _, err := s.FindRun(t.Context(), "shipping", "event/1"); !errors.Is(err, semel.ErrNotFound) {
		t.Fatalf("delivered before its commit: error %v", err)
	}
	if err := late.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Deliver(t.Context(), 10); err != nil || n != 1 {
		t.Fatalf("delivered %d after the late commit, error %v, want 1", n, err)
	}
	wantStarted(t, s, 1)
}

// Case C26, step 2: many writers hold their transactions for random times, and
// some roll back. What is delivered is what was committed, through whichever
// of two workers, each once.
func TestC26DeliveredIsCommitted(t *testing.T) {
	t.Parallel()
	url := migrated(t)
	s, other := open(t, url, postgres.Options{}), open(t, url, postgres.Options{})
	subscribe(t, s)
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const writers, messages = 20, 400
	db.SetMaxOpenConns(writers)
	var mu sync.Mutex
	committed := map[semel.Key]bool{}
	ctx, stop := context.WithCancel(t.Context())
	var relays, wg sync.WaitGroup
	delivered := make([]int, 2)
	for i, s := range []*postgres.Store{s, other} {
		relays.Go(func() {
			for ctx.Err() == nil {
				n, err := s.Deliver(ctx, 20)
				if err != nil && ctx.Err() == nil {
					t.Errorf("deliver: %v", err)
				}
				delivered[i] += n
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	for w := range writers {
		wg.Go(func() {
			for i := w; i < messages; i += writers {
				kept, err := write(t, db, i)
				if err != nil {
					t.Errorf("message %d: %v", i, err)
				}
				if kept {
					mu.Lock()
					committed[semel.Key(fmt.Sprintf("event/paid/%d", i))] = true
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	stop()
	relays.Wait()
	n, err := s.Deliver(t.Context(), messages)
	if err != nil {
		t.Fatal(err)
	}
	if total := n + delivered[0] + delivered[1]; total != len(committed) {
		t.Errorf("delivered %d times, want %d", total, len(committed))
	}
	for r, err := range s.ListRuns(t.Context(), semel.RunFilter{Workflow: "shipping"}) {
		if err != nil {
			t.Fatal(err)
		}
		if !committed[r.Key] {
			t.Errorf("%s was started by an event that was rolled back", r.Key)
		}
		delete(committed, r.Key)
	}
	if len(committed) > 0 {
		t.Errorf("%d committed events were not delivered", len(committed))
	}
}

// write sends message i in a transaction of database/sql, and keeps nine of ten.
func write(t *testing.T, db *sql.DB, i int) (kept bool, err error) {
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		return false, err
	}
	defer tx.Rollback()
	if err := postgres.SendSQLTx(t.Context(), tx, outboxEvent(i)); err != nil {
		return false, err
	}
	n := newRun("beside")
	if r, existing, err := postgres.StartSQLTx(t.Context(), tx, n); err != nil || existing || r.Key != n.Key {
		return false, fmt.Errorf("start %s: existing %v, error %w", r.Key, existing, err)
	}
	if r, existing, err := postgres.StartSQLTx(t.Context(), tx, n); err != nil || !existing || r.Key != n.Key {
		return false, fmt.Errorf("start %s again: existing %v, error %w", r.Key, existing, err)
	}
	time.Sleep(rand.N(200 * time.Millisecond)) //nolint:gosec // how long does not matter
	if i%10 == 0 {
		return false, nil
	}
	return true, tx.Commit()
}

func outboxEvent(i int) semel.InboxEvent {
	return semel.InboxEvent{ID: fmt.Sprint(i), Name: "paid", Match: fmt.Sprint("order ", i), Data: []byte(`{"order":4417}`)}
}

func subscribe(t *testing.T, s *postgres.Store) {
	t.Helper()
	if err := s.Register(t.Context(), []semel.WorkflowDefinition{{Name: "shipping", Version: 1, Events: []string{"paid"}}}); err != nil {
		t.Fatal(err)
	}
}

func wantStarted(t *testing.T, s *postgres.Store, i int) {
	t.Helper()
	if _, err := s.FindRun(t.Context(), "shipping", semel.Key(fmt.Sprintf("event/paid/%d", i))); err != nil {
		t.Fatalf("event %d started no run: %v", i, err)
	}
}
