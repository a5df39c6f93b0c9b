package sqlite_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/store/sqlite"
	"github.com/semel-dev/semel/store/storetest"
)

func TestConformance(t *testing.T) { storetest.Test(t, harness) }

func TestConformanceRuns(t *testing.T) { storetest.TestRuns(t, harness) }

func harness(t *testing.T) storetest.Harness {
	path := filepath.Join(t.TempDir(), "semel.db")
	var mu sync.Mutex
	var open []*sqlite.Store
	var offset time.Duration
	return storetest.Harness{
		Open: func(t *testing.T) semel.Store {
			t.Helper()
			s := openStore(t, path, sqlite.Options{Create: true})
			mu.Lock()
			defer mu.Unlock()
			s.Shift(offset)
			open = append(open, s)
			return s
		},
		Shift: func(d time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			offset += d
			for _, s := range open {
				s.Shift(d)
			}
		},
		Transaction: func(t *testing.T, do func(storetest.Outbox) error) error {
			t.Helper()
			tx, err := raw(t, path).BeginTx(t.Context(), nil)
			if err != nil {
				return err
			}
			err = do(storetest.Outbox{
				Start: func(ctx context.Context, n semel.NewRun) (semel.Run, bool, error) { return sqlite.StartTx(ctx, tx, n) },
				Send:  func(ctx context.Context, e semel.InboxEvent) error { return sqlite.SendTx(ctx, tx, e) },
			})
			if err != nil {
				return errors.Join(err, tx.Rollback())
			}
			return tx.Commit()
		},
	}
}

func openStore(t testing.TB, path string, opts sqlite.Options) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, opts)
	if err != nil {
		t.Fatalf("open %s: %v", path, err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}
