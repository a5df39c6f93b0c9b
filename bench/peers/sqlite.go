package main

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	_ "modernc.org/sqlite" // the driver
)

const (
	createTableSQLite = `
create table if not exists ops (
  key         text primary key,
  fingerprint blob not null,
  state       integer not null,
  attempt     integer not null default 1,
  lease_until integer,
  result      text,
  created_at  integer not null
) without rowid`
	claimSQLite = `
insert into ops (key, fingerprint, state, created_at)
values (?, ?, 1, 0)
on conflict do nothing`
	outcomeSQLite = `
update ops
set state = 2, result = ?
where key = ? and attempt = 1`
)

// connection is one connection with its statements.
type connection struct {
	db                            *sql.DB
	conn                          *sql.Conn
	begin, commit, claim, outcome *sql.Stmt
}

func connectSQLite(ctx context.Context, path string) (*connection, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(600000)&_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=cache_size(-16000)")
	if err != nil {
		return nil, err
	}
	c := &connection{db: db}
	if c.conn, err = db.Conn(ctx); err != nil {
		return nil, err
	}
	var synchronous int
	if err := c.conn.QueryRowContext(ctx, "pragma synchronous").Scan(&synchronous); err != nil {
		return nil, err
	}
	if synchronous != 2 {
		return nil, fmt.Errorf("pragma synchronous is %d, want 2 (full): commits would not be durable", synchronous)
	}
	if _, err := c.conn.ExecContext(ctx, createTableSQLite); err != nil {
		return nil, err
	}
	for into, text := range map[**sql.Stmt]string{&c.begin: "begin immediate", &c.commit: "commit", &c.claim: claimSQLite, &c.outcome: outcomeSQLite} {
		stmt, err := c.conn.PrepareContext(ctx, text)
		if err != nil {
			return nil, err
		}
		*into = stmt
	}
	return c, nil
}

func (c *connection) close() error { return errors.Join(c.conn.Close(), c.db.Close()) }

func change(s *sql.Stmt, args ...any) error {
	r, err := s.ExecContext(context.Background(), args...)
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n != 1 {
		return fmt.Errorf("%d rows changed, want 1 (%w)", n, err)
	}
	return nil
}

type rawSQLiteLoop struct {
	conns []*connection
	key   func() [16]byte
}

// rawSQLite gives every caller a connection; each statement is a transaction.
func rawSQLite(ctx context.Context, path string, callers int, key func() [16]byte) (workload, error) {
	w := &rawSQLiteLoop{key: key}
	for range callers {
		c, err := connectSQLite(ctx, path)
		if err != nil {
			return nil, err
		}
		w.conns = append(w.conns, c)
	}
	return w, nil
}

func (w *rawSQLiteLoop) effect(caller int) error {
	c, key := w.conns[caller], w.key()
	text := hex.EncodeToString(key[:])
	if err := change(c.claim, text, []byte(fingerprint)); err != nil {
		return err
	}
	return change(c.outcome, answer, text)
}

func (w *rawSQLiteLoop) close() error {
	var errs []error
	for _, c := range w.conns {
		errs = append(errs, c.close())
	}
	return errors.Join(errs...)
}

type bareSQLiteLoop struct {
	key   func() [16]byte
	conn  *connection
	queue chan *write
	ended sync.WaitGroup
}

// bareSQLite has one writer, which commits whatever is queued together.
func bareSQLite(ctx context.Context, path string, _ int, key func() [16]byte) (workload, error) {
	c, err := connectSQLite(ctx, path)
	if err != nil {
		return nil, err
	}
	w := &bareSQLiteLoop{key: key, conn: c, queue: make(chan *write, 4096)}
	w.ended.Go(func() {
		for first := range w.queue {
			batch := fill(first, w.queue)
			err := w.commit(batch)
			for _, write := range batch {
				write.done <- err
			}
		}
	})
	return w, nil
}

func (w *bareSQLiteLoop) effect(int) error {
	key := w.key()
	text := hex.EncodeToString(key[:])
	done := make(chan error, 1)
	w.queue <- &write{claimSQLite, []any{text, []byte(fingerprint)}, done}
	if err := <-done; err != nil {
		return err
	}
	w.queue <- &write{outcomeSQLite, []any{answer, text}, done}
	return <-done
}

func (w *bareSQLiteLoop) commit(batch []*write) error {
	ctx := context.Background()
	if _, err := w.conn.begin.ExecContext(ctx); err != nil {
		return err
	}
	for _, write := range batch {
		stmt := w.conn.claim
		if write.sql == outcomeSQLite {
			stmt = w.conn.outcome
		}
		if err := change(stmt, write.args...); err != nil {
			return err
		}
	}
	_, err := w.conn.commit.ExecContext(ctx)
	return err
}

func (w *bareSQLiteLoop) close() error {
	close(w.queue)
	w.ended.Wait()
	return w.conn.close()
}
