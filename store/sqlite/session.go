package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"time"

	"github.com/semel-dev/semel"
)

// session is a transaction that is open: the committer's, a reader's or a
// caller's.
type session interface {
	ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
}

var (
	_ session = (*statements)(nil)
	_ session = (*sql.Tx)(nil)
)

// statements are those of the writer's connection that are prepared when they
// are first used.
type statements struct {
	conn     *sql.Conn
	prepared map[string]*sql.Stmt
}

func (s *statements) prepare(ctx context.Context, text string) (*sql.Stmt, error) {
	if stmt := s.prepared[text]; stmt != nil {
		return stmt, nil
	}
	stmt, err := s.conn.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	s.prepared[text] = stmt
	return stmt, nil
}

func (s *statements) ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error) {
	stmt, err := s.prepare(ctx, text) //nolint:sqlclosecheck // close closes all of s.prepared
	if err != nil {
		return nil, err
	}
	return stmt.ExecContext(ctx, args...)
}

func (s *statements) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	stmt, err := s.prepare(ctx, text) //nolint:sqlclosecheck // close closes all of s.prepared
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(ctx, args...)
}

func (s *statements) close() error {
	var err error
	for _, stmt := range s.prepared {
		err = errors.Join(err, stmt.Close())
	}
	return err
}

// exec runs a statement and returns how many rows it changed.
func exec(ctx context.Context, s session, text string, args ...any) (int64, error) {
	res, err := s.ExecContext(ctx, text, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// scan reads one row of a table.
type scan func(dest ...any) error

// each reads all rows that text answers.
func each(ctx context.Context, s session, read func(scan) error, text string, args ...any) error {
	rows, err := s.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := read(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// one reads at most one row and reports whether there was one.
func one(ctx context.Context, s session, read func(scan) error, text string, args ...any) (found bool, err error) {
	err = each(ctx, s, func(sc scan) error {
		found = true
		return read(sc)
	}, text, args...)
	return found, err
}

// into is a reader of one row's columns.
func into(dest ...any) func(scan) error {
	return func(sc scan) error { return sc(dest...) }
}

// exists reports whether text answers a row.
func exists(ctx context.Context, s session, text string, args ...any) (bool, error) {
	var n int
	return one(ctx, s, into(&n), text, args...)
}

// answer is an error of the root package in words of its own.
type answer struct {
	text string
	err  error
}

func (a *answer) Error() string { return a.text }
func (a *answer) Unwrap() error { return a.err }

func noRun(id semel.ID) error {
	return &answer{"there is no run " + id.String(), semel.ErrNotFound}
}

// nano is a time as a column holds it: null for zero.
func nano(t time.Time) any {
	switch {
	case t.IsZero():
		return nil
	case t.Year() > 2261:
		return int64(math.MaxInt64)
	case t.Year() < 1678:
		return int64(math.MinInt64)
	}
	return t.UnixNano()
}

func timeOf(ns sql.NullInt64) time.Time {
	if !ns.Valid {
		return time.Time{}
	}
	return fromNano(ns.Int64)
}

// blob is an ID as a column holds it: null for zero.
func blob(id semel.ID) any {
	if id == (semel.ID{}) {
		return nil
	}
	return id[:]
}

// text is JSON as a column holds it: null for none.
func text(b []byte) any {
	if b == nil {
		return nil
	}
	return string(b)
}

func bytesOf(s sql.NullString) []byte {
	if !s.Valid {
		return nil
	}
	return []byte(s.String)
}

// nonEmpty is a string as a column holds it: null for empty.
func nonEmpty(s string) any {
	if s == "" {
		return nil
	}
	return s
}
