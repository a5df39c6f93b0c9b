package postgres

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel"
)

// insertRun starts a run, unless there is one of its workflow and key. $14 is
// when it may begin; with attempt 1, $12, a worker holds it from the beginning,
// unless that is later.
// Its arguments suit every driver.
const insertRun = `
insert into semel.run
  (id, created_at, updated_at, workflow, version, definition, key, input, fingerprint, trigger, priority, parent, parent_step,
   attempt, claimed_by, state, due_at, lease_until)
select $1::uuid, clock.now, clock.now, $2::text, $3::integer, $4::text, $5::text, $6::bytea, $7::bytea, $8::bytea,
  $9::smallint, $10::uuid, $11::text, $12::integer * at_once, case at_once when 1 then $13::text else '' end,
  case at_once when 1 then 'running' else 'waiting' end,
  case $12::integer * at_once when 1 then clock.now + $15::interval else coalesce($14::timestamptz, clock.now) end,
  case $12::integer * at_once when 1 then clock.now + $15::interval end
from (select clock_timestamp() + $16::interval as now) as clock,
  lateral (select case when $14::timestamptz > clock.now then 0 else 1 end as at_once) as begun
on conflict do nothing
returning created_at, false`

// beginning is a run about to be started.
type beginning struct {
	semel.NewRun
	fingerprint semel.Fingerprint
	trigger     []byte
	claim       *semel.RunClaim
}

func (s *Store) begin(n semel.NewRun, claim *semel.RunClaim) (beginning, error) {
	if n.ID == (semel.ID{}) {
		n.ID = s.mint()
	}
	return begin(n, claim)
}

func begin(n semel.NewRun, claim *semel.RunClaim) (beginning, error) {
	if err := n.Validate(); err != nil {
		return beginning{}, err
	}
	if n.Priority < semel.Low || n.Priority > semel.High {
		return beginning{}, &semel.InputError{Field: "priority", Problem: fmt.Sprintf("is %d", n.Priority), Hint: "use -1, 0 or 1"}
	}
	fingerprint, err := n.Fingerprint()
	if err != nil {
		return beginning{}, err
	}
	trigger, err := json.Marshal(n.Trigger)
	if err != nil {
		return beginning{}, fmt.Errorf("encode trigger: %w", err)
	}
	n.At = n.At.UTC().Truncate(time.Microsecond)
	return beginning{NewRun: n, fingerprint: fingerprint, trigger: trigger, claim: claim}, nil
}

func (b *beginning) args(offset time.Duration) []any {
	attempt, by, lease := 0, "", time.Duration(0)
	if b.claim != nil {
		attempt, by, lease = 1, b.claim.By, micros(b.claim.Lease)
	}
	return []any{
		b.ID.String(), b.Workflow, b.Version, b.Definition, string(b.Key), b.Input, b.fingerprint[:], b.trigger,
		int(b.Priority), uuid(b.Parent), b.ParentStep, attempt, by, instant(b.At), interval(lease), interval(offset),
	}
}

// run is what was inserted at a time.
func (b *beginning) run(at time.Time) semel.Run {
	at = at.UTC()
	r := semel.Run{
		ID: b.ID, Workflow: b.Workflow, Version: b.Version, Definition: b.Definition, Key: b.Key, Input: b.Input,
		Fingerprint: b.fingerprint, Trigger: b.Trigger, Priority: b.Priority, Parent: b.Parent, ParentStep: b.ParentStep,
		State: semel.RunRunning, DueAt: at, CreatedAt: at, UpdatedAt: at,
	}
	switch {
	case b.claim != nil && !b.At.After(at):
		r.Attempt, r.By, r.LeaseUntil = 1, b.claim.By, at.Add(micros(b.claim.Lease))
		r.DueAt = r.LeaseUntil
	case !b.At.IsZero():
		r.DueAt = b.At
		if b.At.After(at) {
			r.State = semel.RunWaiting
		}
	}
	return r
}

// Start makes a run durable, or finds the one with its key; see semel.Runs.
func (s *Store) Start(ctx context.Context, n semel.NewRun, claim *semel.RunClaim) (semel.Run, bool, error) {
	b, err := s.begin(n, claim)
	if err != nil {
		return semel.Run{}, false, err
	}
	r := only(statement{sql: insertRun, args: b.args(s.offset()), claim: claim != nil})
	r.scope, r.key = semel.Scope(b.Workflow), b.Key
	if err := s.group.do(ctx, r); err != nil {
		return semel.Run{}, false, fmt.Errorf("start %s %q: %w", b.Workflow, b.Key, err)
	}
	if started := r.statements[0]; started.found {
		s.clock.seen(started.at)
		return b.run(started.at), false, nil
	}
	found, err := s.FindRun(ctx, b.Workflow, b.Key)
	if errors.Is(err, semel.ErrNotFound) {
		return semel.Run{}, false, takenID(b.ID)
	}
	return found, !b.mine(&found), err
}

// mine reports whether r is what an earlier call of the same start made.
func (b *beginning) mine(r *semel.Run) bool {
	return r.ID == b.ID && (b.claim == nil || r.Attempt == 1 && r.By == b.claim.By && r.State == semel.RunRunning && !r.LeaseUntil.IsZero())
}

func takenID(id semel.ID) error {
	return &semel.InputError{Field: "run id", Problem: id.String() + " belongs to another run", Hint: "mint a new one"}
}

// start is Start inside a transaction.
func start(ctx context.Context, tx pgx.Tx, b beginning, offset time.Duration) (r semel.Run, existing bool, err error) {
	return startIn(func(sql string, args ...any) scanner { return tx.QueryRow(ctx, sql, args...) }, b, offset, pgx.ErrNoRows)
}

// startIn starts a run by a driver's way to ask for one row, and its error for
// none.
func startIn(row func(sql string, args ...any) scanner, b beginning, offset time.Duration, none error) (semel.Run, bool, error) {
	var at time.Time
	var flag bool
	err := row(insertRun, b.args(offset)...).Scan(&at, &flag)
	switch {
	case err == nil:
		return b.run(at), false, nil
	case !errors.Is(err, none):
		return semel.Run{}, false, err
	}
	found, err := scanRun(row(selectRunByKey, b.Workflow, string(b.Key)))
	if errors.Is(err, none) {
		err = &verdict{takenID(b.ID)}
	}
	return found, !b.mine(&found), err
}

// mint makes an ID by the store's clock, as far as this process knows it.
func (s *Store) mint() semel.ID { return mint(time.Now().Add(s.offset())) }

func mint(at time.Time) semel.ID {
	var random [10]byte
	_, _ = rand.Read(random[:]) // never fails
	return semel.NewID(at, random)
}
