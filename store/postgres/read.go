package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-dev/semel"
)

const selectOperation = `
select o.id, o.scope, o.key, o.fingerprint, o.request, o.contract, o.body, o.version, o.lease_until,
  o.created_at, o.first, o.second_at, o.second, o.run_id, o.step
from semel.operation as o`

// read repeats a read that met a dead connection or a server without a free
// one: reading changes nothing.
func (s *Store) read(ctx context.Context, do func(context.Context) error) error {
	for tries, pause := 1, 10*time.Millisecond; ; tries++ {
		err := do(ctx)
		if err == nil || tries == 5 || ctx.Err() != nil || !again(err) {
			return err
		}
		select {
		case <-time.After(pause):
			pause *= 2
		case <-ctx.Done():
		}
	}
}

func again(err error) bool {
	switch stateOf(err) {
	case stateTooMany, stateShutdown, stateCrash, stateStarting, stateStalePlan, stateLostStatement:
		return true
	case "":
		return !errors.Is(err, pgx.ErrNoRows) && (pgconn.SafeToRetry(err) || !pgconn.Timeout(err))
	}
	return false
}

// Load reads the operation with this identity; see semel.Store.
func (s *Store) Load(ctx context.Context, scope semel.Scope, key semel.Key) (semel.Operation, error) {
	const query = selectOperation + `
where o.scope = $1::text
  and o.key = $2::text`
	found, err := s.one(ctx, query, string(scope), string(key))
	if err != nil {
		return semel.Operation{}, fmt.Errorf("key %q: %w", key, err)
	}
	return found.operation()
}

// LoadID reads the operation with this ID; see semel.Store.
func (s *Store) LoadID(ctx context.Context, id semel.ID) (semel.Operation, error) {
	found, err := s.one(ctx, selectByID, [16]byte(id))
	if err != nil {
		return semel.Operation{}, fmt.Errorf("operation %s: %w", id, err)
	}
	return found.operation()
}

// Events reads all evidence of an operation; see semel.Store.
func (s *Store) Events(ctx context.Context, id semel.ID) ([]semel.Event, error) {
	found, err := s.one(ctx, selectByID, [16]byte(id))
	if err != nil {
		return nil, fmt.Errorf("operation %s: %w", id, err)
	}
	if err := found.whole(); err != nil {
		return nil, err
	}
	return found.record.History()
}

const selectByID = selectOperation + `
where o.id = $1::uuid`

// stored is an operation as it was read.
type stored struct {
	record  semel.Record
	version int
}

func (f *stored) operation() (semel.Operation, error) {
	if err := f.whole(); err != nil {
		return semel.Operation{}, err
	}
	o, err := f.record.Operation()
	if err != nil {
		return semel.Operation{}, unavailable("read what is stored", err)
	}
	return o, nil
}

func (f *stored) whole() error {
	if len(f.record.Events) != f.version {
		return fmt.Errorf("%w: operation %s has %d events instead of %d: somebody wrote to schema semel by hand",
			semel.ErrUnavailable, f.record.ID, len(f.record.Events), f.version)
	}
	return nil
}

func (s *Store) one(ctx context.Context, query string, args ...any) (stored, error) {
	found, err := s.stored(ctx, query, args...)
	if err != nil {
		return stored{}, unavailable("read", err)
	}
	if len(found) == 0 {
		return stored{}, semel.ErrNotFound
	}
	return found[0], nil
}

// stored runs a query for operations and reads their evidence.
func (s *Store) stored(ctx context.Context, query string, args ...any) ([]stored, error) {
	var found []stored
	err := s.read(ctx, func(ctx context.Context) error {
		rows, err := s.query(ctx, query, args...)
		if err != nil {
			return err
		}
		if found, err = pgx.CollectRows(rows, scan); err != nil {
			return err
		}
		return s.evidence(ctx, found)
	})
	return found, err
}

// query asks for rows. A list is written for its values, and planned with them.
func (s *Store) query(ctx context.Context, query string, args ...any) (pgx.Rows, error) {
	if len(args) > 0 && args[0] == pgx.QueryExecModeDescribeExec {
		return s.lists.Query(ctx, query, args...)
	}
	return s.pool.Query(ctx, query, args...)
}

func scan(row pgx.CollectableRow) (stored, error) {
	var f stored
	var id [16]byte
	var scope, key string
	var first, second semel.StoredEvent
	var secondAt pgtype.Timestamptz
	var run pgtype.UUID
	var step pgtype.Text
	rec := &f.record
	err := row.Scan(&id, &scope, &key, &rec.Fingerprint, &rec.Request, &rec.Contract, &rec.Body, &f.version, &rec.LeaseUntil,
		&first.At, &first.Data, &secondAt, &second.Data, &run, &step)
	rec.ID, rec.Scope, rec.Key, rec.LeaseUntil = id, semel.Scope(scope), semel.Key(key), rec.LeaseUntil.UTC()
	rec.Run, rec.Step = run.Bytes, step.String
	rec.Events = append(rec.Events, first)
	if secondAt.Valid {
		second.At = secondAt.Time
		rec.Events = append(rec.Events, second)
	}
	return f, err
}

// evidence reads the third and later events of those operations that have
// some. Events beyond the version that was read came later, and are left out.
func (s *Store) evidence(ctx context.Context, found []stored) error {
	const query = `
select operation_id, seq, at, event
from semel.evidence
where operation_id = any($1::uuid[])
order by operation_id, seq`
	var ids [][16]byte
	places := make(map[[16]byte]*stored)
	for i := range found {
		if f := &found[i]; f.version > 2 {
			ids = append(ids, f.record.ID)
			places[f.record.ID] = f
		}
	}
	if len(ids) == 0 {
		return nil
	}
	rows, err := s.pool.Query(ctx, query, ids)
	if err != nil {
		return err
	}
	var id [16]byte
	var seq int
	var ev semel.StoredEvent
	_, err = pgx.ForEachRow(rows, []any{&id, &seq, &ev.At, &ev.Data}, func() error {
		if f := places[id]; seq <= f.version {
			f.record.Events = append(f.record.Events, semel.StoredEvent{At: ev.At, Data: slices.Clone(ev.Data)})
		}
		return nil
	})
	return err
}
