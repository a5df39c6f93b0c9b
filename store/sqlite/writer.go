package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// writer is the connection that writes, with its statements.
type writer struct {
	db   *sql.DB
	conn *sql.Conn
	*statements

	begin, commit, rollback *sql.Stmt
	stamped                 *sql.Stmt
	insert, existing        *sql.Stmt
	second, later, append   *sql.Stmt
	toldSecond, toldLater   *sql.Stmt
	renew                   *sql.Stmt
	events, strip, stripLog *sql.Stmt
	accept                  *sql.Stmt

	kept []*sql.Stmt // all of these: a connection with open statements never lets go of the file

	// refusal is why no claim is made in this transaction: a restored backup
	// waits to be accepted.
	refusal error
	// awaited: some run waits for an operation, so changes of operations may
	// wake it.
	awaited bool
}

// stamp is what the row of the store says at the beginning of a transaction.
type stamp struct {
	clock   int64
	suspect int64 // since when a restored backup waits to be accepted, 0 for not
	schema  int
	awaited bool // some run waits for an operation, an approval or a run
}

// stampStore takes the time of a transaction: it never runs back, whichever
// process writes.
const stampStore = `
	update store
	set clock = max(clock, ?)
	returning clock,
		coalesce(suspect_at, 0),
		(select max(version_id) from goose_db_version where is_applied),
		exists (select 1 from wait where target is not null)`

func openWriter(ctx context.Context, path string) (*writer, error) {
	db, err := connect(ctx, path, "&_pragma=busy_timeout(0)&_pragma=synchronous(full)&_pragma=wal_autocheckpoint(4000)&_pragma=cache_size(-16000)&_pragma=journal_size_limit(67108864)", 1)
	if err != nil {
		return nil, err
	}
	w := &writer{db: db}
	err = retryBusy(ctx, func() error { return w.prepare(ctx) })
	if err != nil {
		return nil, errors.Join(unavailable(path, err), w.close())
	}
	return w, nil
}

func (w *writer) prepare(ctx context.Context) error {
	if w.conn == nil {
		conn, err := w.db.Conn(ctx)
		if err != nil {
			return err
		}
		w.conn, w.statements = conn, &statements{conn: conn, prepared: map[string]*sql.Stmt{}}
	}
	for _, p := range []struct {
		stmt **sql.Stmt
		text string
	}{
		{&w.begin, "begin immediate"},
		{&w.commit, "commit"},
		{&w.rollback, "rollback"},
		{&w.stamped, stampStore},
		{&w.insert, insertOperation},
		{&w.existing, existingOperation},
		{&w.second, updateWithSecond},
		{&w.later, updateOperation},
		{&w.append, insertEvidence},
		{&w.toldSecond, tokenOfSecond},
		{&w.toldLater, tokenOfLater},
		{&w.renew, renewLease},
		{&w.events, selectEvents},
		{&w.strip, stripOperation},
		{&w.stripLog, stripEvidence},
		{&w.accept, acceptBackup},
	} {
		if *p.stmt != nil {
			continue
		}
		stmt, err := w.conn.PrepareContext(ctx, p.text) //nolint:sqlclosecheck // close closes all of w.kept
		if err != nil {
			return fmt.Errorf("prepare %s: %w", p.text, err)
		}
		*p.stmt = stmt
		w.kept = append(w.kept, stmt)
	}
	return nil
}

// exec runs a statement without arguments. Like everything in a shared
// transaction it is nobody's to cancel.
func (w *writer) exec(s *sql.Stmt, args ...any) error {
	_, err := s.ExecContext(context.Background(), args...)
	return err
}

// changed runs a statement and reports whether it changed a row.
func (w *writer) changed(s *sql.Stmt, args ...any) (bool, error) {
	res, err := s.ExecContext(context.Background(), args...)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n > 0, err
}

// row runs a statement that answers at most one row.
func (w *writer) row(s *sql.Stmt, args ...any) *sql.Row {
	return s.QueryRowContext(context.Background(), args...)
}

func (w *writer) stamp(now int64) (stamp, error) {
	var st stamp
	err := w.row(w.stamped, now).Scan(&st.clock, &st.suspect, &st.schema, &st.awaited)
	return st, err
}

// apart runs do so that nothing of it stays where it fails, and what the
// transaction did before stays.
func (w *writer) apart(ctx context.Context, do func() error) error {
	if _, err := w.ExecContext(ctx, "savepoint apart"); err != nil {
		return err
	}
	err := do()
	if isStorage(err) || isBusy(err) {
		return err // the whole transaction fails
	}
	if err != nil {
		if _, err := w.ExecContext(ctx, "rollback to apart"); err != nil {
			return err
		}
	}
	if _, err := w.ExecContext(ctx, "release apart"); err != nil {
		return err
	}
	return err
}

func (w *writer) close() error {
	var err error
	for _, stmt := range w.kept {
		err = errors.Join(err, stmt.Close())
	}
	if w.statements != nil {
		err = errors.Join(err, w.statements.close())
	}
	if w.conn != nil {
		err = errors.Join(err, w.conn.Close())
	}
	return errors.Join(err, w.db.Close())
}
