package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// The table and the statements are those of the set "key" of the first
// measurements: one index, on a time-ordered key.
const (
	createTable = `
create table ops (
  key         uuid primary key,
  fingerprint bytea not null,
  state       smallint not null,
  attempt     int not null default 1,
  lease_until timestamptz,
  result      jsonb,
  created_at  timestamptz not null default now()
) with (fillfactor=70)`
	claim = `
insert into ops (key, fingerprint, state)
values ($1, $2, 1)
on conflict do nothing`
	outcome = `
update ops
set state = 2, result = $2
where key = $1 and attempt = 1`
)

func connectPostgres(ctx context.Context, url string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.RuntimeParams["enable_seqscan"] = "off" // no plan made on the empty table may scan it
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	var commit string
	if err := c.QueryRow(ctx, "show synchronous_commit").Scan(&commit); err != nil {
		return nil, err
	}
	if commit == "off" {
		return nil, errors.New("synchronous_commit is off: commits would not be durable")
	}
	return c, nil
}

func createPostgres(ctx context.Context, url string) error {
	c, err := connectPostgres(ctx, url)
	if err != nil {
		return err
	}
	_, err = c.Exec(ctx, createTable)
	return errors.Join(err, c.Close(ctx))
}

func changedOne(tag pgconn.CommandTag, err error) error {
	if err == nil && tag.RowsAffected() != 1 {
		return fmt.Errorf("%s changed %d rows, want 1", tag, tag.RowsAffected())
	}
	return err
}

type rawPostgresLoop struct {
	conns []*pgx.Conn
	key   func() [16]byte
}

// rawPostgres gives every caller a connection: insert, commit, update, commit.
func rawPostgres(ctx context.Context, url string, callers int, key func() [16]byte) (workload, error) {
	if err := createPostgres(ctx, url); err != nil {
		return nil, err
	}
	w := &rawPostgresLoop{key: key}
	for range callers {
		c, err := connectPostgres(ctx, url)
		if err != nil {
			return nil, err
		}
		w.conns = append(w.conns, c)
	}
	return w, nil
}

func (w *rawPostgresLoop) effect(caller int) error {
	ctx, c, key := context.Background(), w.conns[caller], w.key()
	if err := changedOne(c.Exec(ctx, claim, key, []byte(fingerprint))); err != nil {
		return err
	}
	return changedOne(c.Exec(ctx, outcome, key, answer))
}

func (w *rawPostgresLoop) close() error {
	var errs []error
	for _, c := range w.conns {
		errs = append(errs, c.Close(context.Background()))
	}
	return errors.Join(errs...)
}

// Two committers fill a fast disk, and 50 writes fill a commit.
const (
	committers = 2
	mostWrites = 50
)

// write is a claim or an outcome that waits for its commit.
type write struct {
	sql  string
	args []any
	done chan error
}

type barePostgresLoop struct {
	key   func() [16]byte
	queue chan *write
	ended sync.WaitGroup
}

// barePostgres commits for all callers on two connections: one round trip and
// one commit for whatever is queued.
func barePostgres(ctx context.Context, url string, _ int, key func() [16]byte) (workload, error) {
	if err := createPostgres(ctx, url); err != nil {
		return nil, err
	}
	w := &barePostgresLoop{key: key, queue: make(chan *write, 4096)}
	for range committers {
		c, err := connectPostgres(ctx, url)
		if err != nil {
			return nil, err
		}
		w.ended.Go(func() { w.commit(c) })
	}
	return w, nil
}

func (w *barePostgresLoop) effect(int) error {
	key := w.key()
	done := make(chan error, 1)
	w.queue <- &write{claim, []any{key, []byte(fingerprint)}, done}
	if err := <-done; err != nil {
		return err
	}
	w.queue <- &write{outcome, []any{key, answer}, done}
	return <-done
}

func (w *barePostgresLoop) close() error {
	close(w.queue)
	w.ended.Wait()
	return nil
}

func (w *barePostgresLoop) commit(c *pgx.Conn) {
	defer func() { _ = c.Close(context.Background()) }()
	for first := range w.queue {
		batch := fill(first, w.queue)
		err := send(c, batch)
		for _, write := range batch {
			write.done <- err
		}
	}
}

// fill takes what is queued behind first.
func fill(first *write, queue <-chan *write) []*write {
	batch := []*write{first}
	for len(batch) < mostWrites {
		select {
		case next, ok := <-queue:
			if !ok {
				return batch
			}
			batch = append(batch, next)
		default:
			return batch
		}
	}
	return batch
}

func send(c *pgx.Conn, writes []*write) error {
	batch := &pgx.Batch{}
	for _, w := range writes {
		batch.Queue(w.sql, w.args...)
	}
	results := c.SendBatch(context.Background(), batch)
	var errs []error
	for range writes {
		errs = append(errs, changedOne(results.Exec()))
	}
	return errors.Join(append(errs, results.Close())...) // durable from here on
}
