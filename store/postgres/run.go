package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-dev/semel"
)

const runColumns = `r.id, r.workflow, r.version, r.definition, r.key, r.input, r.fingerprint, r.trigger, r.priority, r.parent, r.parent_step,
  r.state, r.reason, r.attempt, r.crashes, r.claimed_by, r.lease_until, r.due_at, r.cancel_asked is not null, r.paused_by is not null, r.retried_at,
  r.done, r.total, r.result, r.created_at, r.updated_at, r.ended_at`

const selectRun = `
select ` + runColumns + `
from semel.run as r`

const selectRunByKey = selectRun + `
where r.workflow = $1::text
  and r.key = $2::text`

// scanner is a row of pgx or of database/sql.
type scanner interface{ Scan(into ...any) error }

// scanRun reads runColumns, and what was selected behind them.
func scanRun(row scanner, more ...any) (semel.Run, error) {
	var r semel.Run
	var id, parent pgtype.UUID
	var lease, due, retried, ended pgtype.Timestamptz
	var workflow, key, state string
	var fingerprint, trigger []byte
	into := []any{
		&id, &workflow, &r.Version, &r.Definition, &key, &r.Input, &fingerprint, &trigger, &r.Priority, &parent, &r.ParentStep,
		&state, &r.Reason, &r.Attempt, &r.Crashes, &r.By, &lease, &due, &r.Cancel, &r.Paused, &retried,
		&r.Done, &r.Total, &r.Result, &r.CreatedAt, &r.UpdatedAt, &ended,
	}
	if err := row.Scan(append(into, more...)...); err != nil {
		return semel.Run{}, err
	}
	if len(fingerprint) != len(r.Fingerprint) {
		return semel.Run{}, fmt.Errorf("run %s: fingerprint of %d bytes", semel.ID(id.Bytes), len(fingerprint))
	}
	if err := json.Unmarshal(trigger, &r.Trigger); err != nil {
		return semel.Run{}, fmt.Errorf("run %s: read trigger: %w", semel.ID(id.Bytes), err)
	}
	copy(r.Fingerprint[:], fingerprint)
	r.ID, r.Parent, r.Workflow, r.Key, r.State = id.Bytes, parent.Bytes, workflow, semel.Key(key), semel.RunState(state)
	r.LeaseUntil, r.DueAt, r.RetriedAt, r.EndedAt = timeOf(lease), timeOf(due), timeOf(retried), timeOf(ended)
	r.CreatedAt, r.UpdatedAt = r.CreatedAt.UTC(), r.UpdatedAt.UTC()
	return r, nil
}

// LoadRun reads one run; see semel.Runs.
func (s *Store) LoadRun(ctx context.Context, id semel.ID) (semel.Run, error) {
	const query = selectRun + `
where r.id = $1::uuid`
	r, err := s.oneRun(ctx, query, [16]byte(id))
	if err != nil {
		return semel.Run{}, fmt.Errorf("run %s: %w", id, err)
	}
	return r, nil
}

// FindRun finds a run by its key; see semel.Runs.
func (s *Store) FindRun(ctx context.Context, workflow string, key semel.Key) (semel.Run, error) {
	r, err := s.oneRun(ctx, selectRunByKey, workflow, string(key))
	if err != nil {
		return semel.Run{}, fmt.Errorf("run key %q of %s: %w", key, workflow, err)
	}
	return r, nil
}

func (s *Store) oneRun(ctx context.Context, query string, args ...any) (r semel.Run, err error) {
	err = s.read(ctx, func(ctx context.Context) error {
		r, err = scanRun(s.pool.QueryRow(ctx, query, args...))
		return err
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return semel.Run{}, semel.ErrNotFound
	case err != nil:
		return semel.Run{}, unavailable("read a run", err)
	}
	return r, nil
}

// lockRun reads a run and keeps others from changing it.
func lockRun(ctx context.Context, tx pgx.Tx, id semel.ID) (semel.Run, error) {
	const query = selectRun + `
where r.id = $1::uuid
for no key update`
	r, err := scanRun(tx.QueryRow(ctx, query, [16]byte(id)))
	if errors.Is(err, pgx.ErrNoRows) {
		return r, &verdict{fmt.Errorf("run %s: %w", id, semel.ErrNotFound)}
	}
	return r, err
}

// runAt is the time of a change of a run: the database's, and never before the
// last.
const runAt = `greatest(clock.now, r.updated_at)`

// note writes down what was done to a run.
func note(ctx context.Context, tx pgx.Tx, run semel.ID, at time.Time, kind, by, words string) error {
	const insert = `
insert into semel.run_note (run_id, at, kind, by, text)
values ($1::uuid, $2::timestamptz, $3::text, $4::text, $5::text)`
	_, err := tx.Exec(ctx, insert, [16]byte(run), at, kind, by, words)
	return err
}

// Notes reads what people and workers did to a run; see semel.Runs.
func (s *Store) Notes(ctx context.Context, run semel.ID) ([]semel.RunNote, error) {
	const query = `
select at, kind, by, text
from semel.run_note
where run_id = $1::uuid
order by seq`
	return collect(ctx, s, "read the notes", func(row pgx.CollectableRow) (semel.RunNote, error) {
		var n semel.RunNote
		err := row.Scan(&n.At, &n.Kind, &n.By, &n.Text)
		n.At = n.At.UTC()
		return n, err
	}, query, [16]byte(run))
}

// collect reads all rows of a query.
func collect[T any](ctx context.Context, s *Store, doing string, scan func(pgx.CollectableRow) (T, error), query string, args ...any) (all []T, err error) {
	err = s.read(ctx, func(ctx context.Context) error {
		rows, err := s.query(ctx, query, args...)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, scan)
		return err
	})
	if err != nil {
		return nil, unavailable(doing, err)
	}
	return all, nil
}
