package main

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/semel-dev/semel/store/postgres/postgrestest"
)

// place is a database, and what can be done to it.
type place interface {
	// url is where the worker of a slot finds it.
	url(slot int) string
	// own is where the soak itself finds it.
	own() string
	// cut takes it away from one worker for so long, or loses so many
	// acknowledgements of commits.
	cut(c *crew, w *worker, long time.Duration)
	lose(c *crew, w *worker, n int)
	// trouble is something that happens to all workers. It returns when it is
	// over.
	trouble(ctx context.Context, c *crew, rng *rand.Rand) error
	// calm ends what was begun, for the quiet phase.
	calm()
	// lost is how many acknowledgements were lost for certain; -1 if all that
	// were asked for.
	lost() int64
	mayLose() bool
}

// file is SQLite. It has no server: what happens between a worker and a server
// happens at the store's port in the worker.
type file struct{ path string }

func newFile(dir string) *file { return &file{filepath.Join(dir, "semel.db")} }

func (f *file) url(int) string { return "sqlite:" + f.path }
func (f *file) own() string    { return "sqlite:" + f.path }
func (f *file) lost() int64    { return -1 }
func (f *file) mayLose() bool  { return true }
func (f *file) calm()          {} // it ends with the workers

func (f *file) cut(c *crew, w *worker, long time.Duration) { c.tell(w, order{Cut: long}) }
func (f *file) lose(c *crew, w *worker, n int)             { c.tell(w, order{Lose: n}) }

// trouble is another program that holds the write lock for longer than a lease
// lasts, so that the database is read-only for everybody.
func (f *file) trouble(ctx context.Context, c *crew, rng *rand.Rand) error {
	db, err := sql.Open("sqlite", "file:"+f.path+"?_pragma=busy_timeout(20000)&_txlock=immediate")
	if err != nil {
		return err
	}
	defer db.Close()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil //nolint:nilerr // a frozen worker holds the lock: that is the trouble
	}
	c.mu.Lock()
	c.n.locks++
	c.mu.Unlock()
	time.Sleep(time.Duration(500+rng.IntN(3500)) * time.Millisecond)
	return tx.Rollback()
}

// server is PostgreSQL, each worker with a wire of its own.
type server struct {
	*postgrestest.Server
	database string
	wires    []*wire
	urls     []string
}

func newServer(t *testing.T) *server {
	s := &server{Server: postgrestest.Start(t, postgrestest.Options{Durable: true, MaxConnections: 200})}
	s.database = s.Database(t)
	for range workers {
		w, url := newWire(t, s.database)
		s.wires, s.urls = append(s.wires, w), append(s.urls, url)
	}
	return s
}

func (s *server) url(slot int) string { return s.urls[slot] }
func (s *server) own() string         { return s.database }
func (s *server) mayLose() bool       { return false }

func (s *server) calm() {
	for _, w := range s.wires {
		w.lose.Store(0)
		w.loseAny.Store(0)
		w.setCut(false)
	}
}

func (s *server) lost() (n int64) {
	for _, w := range s.wires {
		n += w.lost.Load()
	}
	return n
}

func (s *server) cut(c *crew, w *worker, long time.Duration) {
	wire := s.wires[w.slot]
	wire.setCut(true)
	c.wg.Go(func() {
		time.Sleep(long)
		wire.setCut(false)
	})
}

func (s *server) lose(_ *crew, w *worker, n int) {
	s.wires[w.slot].lose.Add(int64(n))
	s.wires[w.slot].loseAny.Add(int64(n) / 2)
}

func (s *server) trouble(ctx context.Context, c *crew, rng *rand.Rand) error {
	count := func(n *int) {
		c.mu.Lock()
		defer c.mu.Unlock()
		*n++
	}
	away := time.Duration(rng.IntN(2500)) * time.Millisecond
	switch rng.IntN(5) {
	case 0, 1:
		count(&c.n.crashes)
		if err := s.Crash(ctx); err != nil {
			return fmt.Errorf("crash: %w", err)
		}
		time.Sleep(away)
		return s.Start(ctx)
	case 2:
		count(&c.n.restarts)
		if err := s.Stop(ctx); err != nil {
			return fmt.Errorf("stop: %w", err)
		}
		time.Sleep(away)
		return s.Start(ctx)
	default:
		count(&c.n.readonly)
		if err := s.SetReadOnly(ctx); err != nil {
			return fmt.Errorf("read only: %w", err)
		}
		time.Sleep(time.Second + away)
		return s.SetWritable(ctx)
	}
}
