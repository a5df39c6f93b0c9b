package sqlite

import (
	"context"
	"os"
	"sync"
	"time"
)

// SQLite begins its log anew only at a moment at which nobody reads what is in
// it. Where reads overlap without a pause, that moment never comes by itself,
// and the log fills the disk. So when it has grown large, new reads wait for those
// under way, and the log is written back. Commits go on meanwhile.

const (
	// logLimit is above what SQLite leaves of a log that it begins anew
	// (journal_size_limit).
	logLimit = 128 << 20
	// shrinkAgain is how long reads are left alone where it was of no use, because
	// another process reads, too.
	shrinkAgain = 10 * time.Second
)

// turnstile counts reads and keeps new ones out while it is shut.
type turnstile struct {
	mu     sync.Mutex
	inside int
	shut   chan struct{} // closed when it opens; nil while it is open
}

// enter waits while it is shut.
func (t *turnstile) enter(ctx context.Context) error {
	for {
		t.mu.Lock()
		shut := t.shut
		if shut == nil {
			t.inside++
		}
		t.mu.Unlock()
		if shut == nil {
			return nil
		}
		select {
		case <-shut:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// leave reports whether somebody waits for this having been the last.
func (t *turnstile) leave() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inside--
	return t.inside == 0 && t.shut != nil
}

// close keeps new ones out and reports whether nobody is inside.
func (t *turnstile) close() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shut == nil {
		t.shut = make(chan struct{})
	}
	return t.inside == 0
}

func (t *turnstile) isShut() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.shut != nil
}

func (t *turnstile) open() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shut != nil {
		close(t.shut)
		t.shut = nil
	}
}

// shrink writes a large log back, or has the last read come back for it. No
// transaction is open.
func (s *Store) shrink() {
	if !s.reads.isShut() {
		if time.Since(s.kept) < shrinkAgain {
			return
		}
		if log, err := os.Stat(s.path + "-wal"); err != nil || log.Size() < logLimit {
			return
		}
	}
	if !s.reads.close() {
		return
	}
	defer s.reads.open()
	if s.writer == nil {
		return
	}
	var busy, frames, written int
	err := s.writer.conn.QueryRowContext(context.Background(), "pragma wal_checkpoint(truncate)").Scan(&busy, &frames, &written)
	if err != nil || busy != 0 {
		s.kept = time.Now()
	}
}
