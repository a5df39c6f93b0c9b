package postgres_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/store/postgres"
	"github.com/semel-dev/semel/store/postgres/postgrestest"
	"github.com/semel-dev/semel/store/storetest"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

func TestConformance(t *testing.T) { storetest.Test(t, harness) }

func TestConformanceRuns(t *testing.T) { storetest.TestRuns(t, harness) }

// harness is a fresh database on the shared server.
func harness(t *testing.T) storetest.Harness {
	url := migrated(t)
	var mu sync.Mutex
	var handles []*postgres.Store
	var shift time.Duration
	return storetest.Harness{
		Open: func(t *testing.T) semel.Store {
			s := open(t, url, postgres.Options{Readers: 2, Committers: 2})
			mu.Lock()
			defer mu.Unlock()
			s.Shift(shift)
			handles = append(handles, s)
			return s
		},
		Shift: func(d time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			shift += d
			for _, s := range handles {
				s.Shift(d)
			}
		},
		Transaction: func(t *testing.T, do func(storetest.Outbox) error) error { return outbox(t, url, do) },
	}
}

// outbox is a transaction of the caller, who has no store.
func outbox(t *testing.T, url string, do func(storetest.Outbox) error) error {
	t.Helper()
	tx, err := session(t, url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context()) // does nothing after a commit
	err = do(storetest.Outbox{
		Start: func(ctx context.Context, n semel.NewRun) (semel.Run, bool, error) {
			return postgres.StartTx(ctx, tx, n)
		},
		Send: func(ctx context.Context, e semel.InboxEvent) error { return postgres.SendTx(ctx, tx, e) },
	})
	if err != nil {
		return err
	}
	return tx.Commit(t.Context())
}

// migrated is the URL of a fresh database with the schema.
func migrated(t testing.TB) string {
	t.Helper()
	return postgrestest.Shared(t).Clone(t, "semel", func(ctx context.Context, url string) error {
		return postgres.Migrate(ctx, url)
	})
}

func open(t testing.TB, url string, opts postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), url, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
