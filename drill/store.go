package drill

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/store/sqlite"
)

// Store is what a drill works with: a store that keeps runs, and whose clock
// it may move.
type Store interface {
	semel.Store
	semel.Runs
	// Shift moves the store's clock.
	Shift(d time.Duration)
}

// embedded opens SQLite files in a directory of their own, which goes with the
// drill.
func embedded() (open func(context.Context, func() time.Time) (Store, error), remove func(), err error) {
	dir, err := os.MkdirTemp("", "semel-drill-")
	if err != nil {
		return nil, nil, err
	}
	open = func(ctx context.Context, clock func() time.Time) (Store, error) {
		own, err := os.MkdirTemp(dir, "")
		if err != nil {
			return nil, err
		}
		s, err := sqlite.Open(ctx, filepath.Join(own, "semel.db"), sqlite.Options{Create: true, Clock: clock})
		if err != nil {
			return nil, err
		}
		return fileStore{s, own}, nil
	}
	return open, func() { _ = os.RemoveAll(dir) }, nil
}

// fileStore removes its file when it is closed.
type fileStore struct {
	*sqlite.Store
	dir string
}

func (s fileStore) Close() error {
	err := s.Store.Close()
	_ = os.RemoveAll(s.dir)
	return err
}
