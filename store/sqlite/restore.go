package sqlite

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/semel-dev/semel"
)

// markEvery is how often the mark follows the database while it is in use:
// a backup that is at most so much older than its original goes unnoticed.
const markEvery = 10 * time.Second

const (
	selectStore = `
		select id, clock, coalesce(suspect_at, 0), coalesce(whole_until, 0), coalesce(accepted_at, 0)
		from store`
	suspectStore = `
		update store
		set suspect_at = clock
		where suspect_at is null
			and clock < ?`
	acceptBackup = `
		update store
		set suspect_at = null,
			whole_until = ?1,
			accepted_at = ?2`
)

// mark is a small file beside the database that says how far the database was.
// It is written after the database, so it is never ahead of it, unless
// somebody put an older copy of the database in its place.
type mark struct {
	store   []byte
	written time.Time
}

// Restoration says whether the database was restored from an older copy.
type Restoration struct {
	// Suspect: an older copy was put in the database's place, and no claim is
	// made until Accept. Claims up to WholeUntil are there.
	Suspect bool
	// WholeUntil is the time up to which claims are there, AcceptedAt when a
	// person vouched for it: claims made between the two may be missing. Both
	// are zero for a database that was never restored.
	WholeUntil, AcceptedAt time.Time
}

// Restoration reads whether the database was restored.
func (s *Store) Restoration(ctx context.Context) (Restoration, error) {
	var r Restoration
	err := s.read(ctx, func(tx *sql.Tx) error {
		var id []byte
		var clock, suspect, whole, accepted int64
		if err := tx.QueryRowContext(ctx, selectStore).Scan(&id, &clock, &suspect, &whole, &accepted); err != nil {
			return err
		}
		r = Restoration{Suspect: suspect != 0}
		if suspect != 0 {
			whole = suspect
		}
		if whole != 0 {
			r.WholeUntil = fromNano(whole)
		}
		if accepted != 0 {
			r.AcceptedAt = fromNano(accepted)
		}
		return nil
	})
	return r, err
}

// Accept lets claims be made again in a database that was restored from an
// older copy, which holds all claims up to wholeUntil: a person vouches for it.
func (s *Store) Accept(ctx context.Context, wholeUntil time.Time) error {
	return s.submit(ctx, acceptance{wholeUntil.UnixNano()}, false)
}

type acceptance struct{ wholeUntil int64 }

func (a acceptance) write(w *writer, at int64) error { return w.exec(w.accept, a.wholeUntil, at) }

// judge compares the database with its mark.
func (s *Store) judge(ctx context.Context, w *writer) error {
	store, marked, known := readMark(s.path) // before the database, which may go on
	err := retryBusy(ctx, func() error {
		var clock, suspect, whole, accepted int64
		if err := w.conn.QueryRowContext(ctx, selectStore).Scan(&s.mark.store, &clock, &suspect, &whole, &accepted); err != nil {
			return err
		}
		s.clock.observe(clock)
		if !known || store != hex.EncodeToString(s.mark.store) || marked <= clock {
			return nil
		}
		s.clock.observe(marked)
		_, err := w.conn.ExecContext(ctx, suspectStore, marked)
		return err
	})
	if err != nil {
		return unavailable(s.path, err)
	}
	return nil
}

func (s *Store) suspicion(st stamp) error {
	until := fromNano(st.suspect).Format(time.RFC3339)
	return fmt.Errorf("%w: claims made in %s after %s may be missing, so nothing is sent: "+
		"find out what was sent since, then run semel store accept --whole-until %s", semel.ErrRestored, s.path, until, until)
}

// note moves the mark after a commit.
func (s *Store) note(clock int64) {
	if now := time.Now(); now.Sub(s.mark.written) >= markEvery {
		s.mark.written = now
		_ = writeMark(s.path, s.mark.store, clock) // without a mark a restored backup goes unnoticed, nothing worse
	}
}

// leave moves the mark when the store closes.
func (s *Store) leave() {
	if s.writer == nil || s.mark.written.IsZero() || s.moved() != nil {
		return
	}
	var id []byte
	var clock, suspect, whole, accepted int64
	if s.writer.conn.QueryRowContext(context.Background(), selectStore).Scan(&id, &clock, &suspect, &whole, &accepted) == nil {
		_ = writeMark(s.path, id, clock)
	}
}

const markFormat = "semel mark %32s %020d\n"

// writeMark overwrites the mark in one small write, so that a reader never
// sees half of it. It is not synced: a mark that is behind is harmless.
func writeMark(path string, store []byte, clock int64) error {
	f, err := os.OpenFile(path+"-mark", os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(fmt.Appendf(nil, markFormat, hex.EncodeToString(store), clock), 0)
	return errors.Join(err, f.Close())
}

func readMark(path string) (store string, clock int64, ok bool) {
	b, err := os.ReadFile(path + "-mark")
	if err != nil {
		return "", 0, false
	}
	n, err := fmt.Sscanf(string(b), "semel mark %s %d\n", &store, &clock)
	return store, clock, err == nil && n == 2
}
