package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/semel-dev/semel"
)

// Store is a semel.Store in one SQLite file. Make one with Open.
type Store struct {
	path    string
	file    fs.FileInfo // of the file as it was opened
	clock   clock
	readers *sql.DB
	latest  int // the newest schema this binary knows

	mu     sync.Mutex
	queue  []*entry
	done   bool          // Close was called: nothing new is taken
	wake   chan struct{} // the queue is not empty
	closed chan struct{} // the committer has ended

	closing   chan struct{}
	closeOnce sync.Once
	closeErr  error

	// What follows belongs to the committer.
	writer *writer // nil when it must be opened anew
	rested time.Time
	kept   time.Time // when a large log could not be written back
	mark   mark

	reads     turnstile
	retention retention
}

var _ semel.Store = (*Store)(nil)

// begin opens the writer, judges whether the file is what this machine last
// knew, and starts the committer.
func (s *Store) begin(ctx context.Context) error {
	w, err := openWriter(ctx, s.path)
	if err != nil {
		return err
	}
	s.writer = w
	if err := s.judge(ctx, w); err != nil {
		return errors.Join(err, w.close())
	}
	go s.run()
	return nil
}

// Now is the store's clock: it never runs back, also not across a restart.
func (s *Store) Now(context.Context) (time.Time, error) { return fromNano(s.clock.now()), nil }

// Shift moves this handle's clock by d. Only tests and drills may call it.
func (s *Store) Shift(d time.Duration) { s.clock.shift(d) }

// Close waits for commits under way and releases the file.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		s.mu.Lock()
		s.done = true
		s.mu.Unlock()
		close(s.closing)
		<-s.closed
		s.closeErr = s.readers.Close()
		if s.writer != nil {
			s.closeErr = errors.Join(s.closeErr, s.writer.close())
		}
	})
	return s.closeErr
}

// moved reports why the path no longer leads to the file that was opened:
// what is written to a deleted file is lost.
func (s *Store) moved() error {
	info, err := os.Stat(s.path)
	if err != nil {
		return err
	}
	if !os.SameFile(s.file, info) {
		return errors.New("another file was put in its place")
	}
	return nil
}
