package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/semel-dev/semel"
)

const (
	selectRecord = `
		select id, scope, key, fingerprint, request, body, contract,
			version, lease_until, created_at, first, second_at, second, run_id, coalesce(step, '')
		from operation`
	recordOfKey = selectRecord + `
		where scope = ? and key = ?`
	recordOfID = selectRecord + `
		where id = ?`
	laterEvents = `
		select at, event
		from evidence
		where operation = ?
		order by seq`
)

// Load reads the operation of a key.
func (s *Store) Load(ctx context.Context, scope semel.Scope, key semel.Key) (semel.Operation, error) {
	return s.operation(ctx, recordOfKey, string(scope), string(key))
}

// LoadID reads the operation with this ID.
func (s *Store) LoadID(ctx context.Context, id semel.ID) (semel.Operation, error) {
	return s.operation(ctx, recordOfID, id[:])
}

// Events reads all evidence of an operation, in order.
func (s *Store) Events(ctx context.Context, id semel.ID) ([]semel.Event, error) {
	r, err := s.record(ctx, recordOfID, id[:])
	if err != nil {
		return nil, err
	}
	events, err := r.History()
	if err != nil {
		return nil, unavailable(s.path, err)
	}
	return events, nil
}

func (s *Store) operation(ctx context.Context, query string, args ...any) (semel.Operation, error) {
	r, err := s.record(ctx, query, args...)
	if err != nil {
		return semel.Operation{}, err
	}
	o, err := r.Operation()
	if err != nil {
		return semel.Operation{}, unavailable(s.path, err)
	}
	return o, nil
}

func (s *Store) record(ctx context.Context, query string, args ...any) (semel.Record, error) {
	var r semel.Record
	err := s.read(ctx, func(tx *sql.Tx) (err error) {
		r, err = readRecord(ctx, tx, query, args...)
		return err
	})
	return r, err
}

// read runs do in a transaction that sees one state of the database.
func (s *Store) read(ctx context.Context, do func(tx *sql.Tx) error) error {
	err := retryBusy(ctx, func() error {
		if err := s.reads.enter(ctx); err != nil {
			return err
		}
		defer func() {
			if s.reads.leave() {
				s.nudge()
			}
		}()
		tx, err := s.readers.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		return errors.Join(do(tx), tx.Rollback())
	})
	if err != nil && !errors.Is(err, semel.ErrNotFound) {
		return unavailable(s.path, err)
	}
	return err
}

// readRecord reads one operation with all its events.
func readRecord(ctx context.Context, tx *sql.Tx, query string, args ...any) (semel.Record, error) {
	var r semel.Record
	var id, run []byte
	var scope, key, first string
	var second sql.NullString
	var version int
	var lease, created int64
	var secondAt sql.NullInt64
	err := tx.QueryRowContext(ctx, query, args...).Scan(&id, &scope, &key, &r.Fingerprint, &r.Request, &r.Body, &r.Contract,
		&version, &lease, &created, &first, &secondAt, &second, &run, &r.Step)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return r, semel.ErrNotFound
	case err != nil:
		return r, err
	case len(id) != len(r.ID):
		return r, fmt.Errorf("an operation's id has %d bytes", len(id))
	}
	copy(r.ID[:], id)
	copy(r.Run[:], run)
	r.Scope, r.Key, r.LeaseUntil = semel.Scope(scope), semel.Key(key), fromNano(lease)
	r.Events = append(r.Events, semel.StoredEvent{At: fromNano(created), Data: []byte(first)})
	if second.Valid {
		r.Events = append(r.Events, semel.StoredEvent{At: fromNano(secondAt.Int64), Data: []byte(second.String)})
	}
	if version > 2 {
		if err := readLater(ctx, tx, &r); err != nil {
			return r, err
		}
	}
	if len(r.Events) != version {
		return r, fmt.Errorf("operation %s: %d of %d events are there", r.ID, len(r.Events), version)
	}
	return r, nil
}

func readLater(ctx context.Context, tx *sql.Tx, r *semel.Record) error {
	rows, err := tx.QueryContext(ctx, laterEvents, r.ID[:])
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var at int64
		var event string
		if err := rows.Scan(&at, &event); err != nil {
			return err
		}
		r.Events = append(r.Events, semel.StoredEvent{At: fromNano(at), Data: []byte(event)})
	}
	return rows.Err()
}
