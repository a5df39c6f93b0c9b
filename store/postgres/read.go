package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-dev/semel"
)

const selectOperation = `
select o.id, o.scope, o.key, o.fingerprint, o.request, o.contract, o.body, o.version, o.lease_until,
  o.created_at, o.first, o.second_at, o.second
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
	return s.load(ctx, query, string(scope), string(key))
}

// LoadID reads the operation with this ID; see semel.Store.
func (s *Store) LoadID(ctx context.Context, id semel.ID) (semel.Operation, error) {
	return s.load(ctx, selectByID, [16]byte(id))
}

const selectByID = selectOperation + `
where o.id = $1::uuid`

func (s *Store) load(ctx context.Context, query string, args ...any) (semel.Operation, error) {
	records, err := s.records(ctx, query, args...)
	if err != nil {
		return semel.Operation{}, unavailable("read an operation", err)
	}
	if len(records) == 0 {
		return semel.Operation{}, semel.ErrNotFound
	}
	return records[0].Operation()
}

// Events reads all evidence of an operation; see semel.Store.
func (s *Store) Events(ctx context.Context, id semel.ID) ([]semel.Event, error) {
	records, err := s.records(ctx, selectByID, [16]byte(id))
	if err != nil {
		return nil, unavailable("read evidence", err)
	}
	if len(records) == 0 {
		return nil, fmt.Errorf("operation %s: %w", id, semel.ErrNotFound)
	}
	return records[0].History()
}

// records runs a query for operations and reads their evidence.
func (s *Store) records(ctx context.Context, query string, args ...any) ([]semel.Record, error) {
	var records []semel.Record
	err := s.read(ctx, func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		versions := make(map[semel.ID]int)
		records, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (semel.Record, error) {
			rec, version, err := scan(row)
			versions[rec.ID] = version
			return rec, err
		})
		if err != nil {
			return err
		}
		return s.evidence(ctx, records, versions)
	})
	return records, err
}

func scan(row pgx.CollectableRow) (rec semel.Record, version int, err error) {
	var id [16]byte
	var scope, key string
	var first, second semel.StoredEvent
	var secondAt pgtype.Timestamptz
	err = row.Scan(&id, &scope, &key, &rec.Fingerprint, &rec.Request, &rec.Contract, &rec.Body, &version, &rec.LeaseUntil,
		&first.At, &first.Data, &secondAt, &second.Data)
	rec.ID, rec.Scope, rec.Key, rec.LeaseUntil = id, semel.Scope(scope), semel.Key(key), rec.LeaseUntil.UTC()
	rec.Events = append(rec.Events, first)
	if secondAt.Valid {
		second.At = secondAt.Time
		rec.Events = append(rec.Events, second)
	}
	return rec, version, err
}

// evidence reads the third and later events of those operations that have
// some. Events beyond the version that was read came later, and are left out.
func (s *Store) evidence(ctx context.Context, records []semel.Record, versions map[semel.ID]int) error {
	const query = `
select operation_id, seq, at, event
from semel.evidence
where operation_id = any($1::uuid[])
order by operation_id, seq`
	var ids [][16]byte
	places := make(map[semel.ID]int)
	for i, rec := range records {
		places[rec.ID] = i
		if versions[rec.ID] > 2 {
			ids = append(ids, rec.ID)
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
		if seq <= versions[id] {
			rec := &records[places[id]]
			rec.Events = append(rec.Events, semel.StoredEvent{At: ev.At, Data: append([]byte(nil), ev.Data...)})
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, rec := range records {
		if len(rec.Events) != versions[rec.ID] {
			return fmt.Errorf("operation %s: has %d events, want %d: the schema was written to by hand", rec.ID, len(rec.Events), versions[rec.ID])
		}
	}
	return nil
}

// page is how many operations List reads at a time.
const page = 200

// List lists operations, newest first; see semel.Store.
func (s *Store) List(ctx context.Context, f semel.Filter) iter.Seq2[semel.Operation, error] {
	return func(yield func(semel.Operation, error) bool) {
		now, swept, err := s.swept(ctx)
		if err != nil {
			yield(semel.Operation{}, unavailable("list operations", err))
			return
		}
		left := f.Limit
		var last *semel.Operation
		for {
			query, args := listQuery(f, now, swept, last)
			records, err := s.records(ctx, query, args...)
			if err != nil {
				yield(semel.Operation{}, unavailable("list operations", err))
				return
			}
			for _, rec := range records {
				o, err := rec.Operation()
				if err != nil {
					yield(semel.Operation{}, err)
					return
				}
				last = &o
				if f.Review && !needsPerson(o, now) {
					continue
				}
				if !yield(o, nil) {
					return
				}
				if left--; left == 0 {
					return
				}
			}
			if len(records) < page {
				return
			}
		}
	}
}

// needsPerson reports whether o waits for a person. One whose lease has lapsed
// is judged as what it is about to become.
func needsPerson(o semel.Operation, now time.Time) bool {
	if o.State == semel.InProgress {
		lapsed, err := o.Apply(semel.Event{Kind: semel.EvLapsed, At: now})
		return err == nil && lapsed.CheckAt.IsZero()
	}
	return o.Incident != "" || o.State == semel.Unknown && o.CheckAt.IsZero()
}

// listQuery is written for each filter, so that the server plans it with the
// values that it has.
func listQuery(f semel.Filter, now, swept time.Time, after *semel.Operation) (string, []any) {
	args := []any{pgx.QueryExecModeDescribeExec}
	arg := func(v any, kind string) string {
		args = append(args, v)
		return fmt.Sprintf("$%d::%s", len(args)-1, kind)
	}
	var where []string
	lapsed := func() string {
		return "o.state = 'in_progress' and o.lease_until <= " + arg(now, "timestamptz")
	}
	switch f.State {
	case "":
	case semel.Unknown:
		where = append(where, "(o.state = 'unknown' or "+lapsed()+")")
	case semel.InProgress:
		where = append(where, "o.state = 'in_progress' and o.lease_until > "+arg(now, "timestamptz"))
	case semel.Completed, semel.Failed:
		where = append(where, "o.state = "+arg(string(f.State), "text"))
	}
	if f.Review {
		where = append(where, "(o.due_at = 'infinity' or "+lapsed()+")")
	}
	if f.Scope != "" {
		where = append(where, "o.scope = "+arg(string(f.Scope), "text"))
	}
	if f.Fingerprint != (semel.Fingerprint{}) {
		where = append(where, "o.fingerprint = "+arg(f.Fingerprint[:], "bytea"))
	}
	if !f.Since.IsZero() {
		where = append(where, "o.created_at >= "+arg(f.Since, "timestamptz"))
	}
	if after != nil {
		where = append(where, "(o.created_at, o.id) < ("+arg(after.CreatedAt, "timestamptz")+", "+arg([16]byte(after.ID), "uuid")+")")
	}
	return selectOperation + "\nwhere " + strings.Join(append(where, "true"), "\n  and ") +
		"\norder by o.created_at desc, o.id desc\nlimit " + fmt.Sprint(page), args
}
