package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-dev/semel"
)

// insertClaim is a first claim. One whose ID was not minted just now, or whose
// lease is short, is given a due_at, so that the sweep need not look for it; see
// due.go.
const insertClaim = `
insert into semel.operation
  (id, created_at, updated_at, lease_until, due_at, version, attempt, cancel, incident, expired, state,
   scope, key, fingerprint, request, contract, body, first, run_id, step)
select $1::uuid, clock.now, clock.now, clock.now + $2::interval,
  case when $3::timestamptz between clock.now - interval '1 s' and clock.now + interval '2 s' and $2::interval >= interval '8 s'
    then null else clock.now + $2::interval end,
  1, 1, false, false, false, 'in_progress',
  $4::text, $5::text, $6::bytea, $7::bytea, $8::bytea, $9::bytea, $10::bytea, $12::uuid, $13::text
from (select clock_timestamp() + $11::interval as now) as clock`

const orNothing = `
on conflict do nothing
returning created_at, false`

// at is the time of a change: the database's, and never before the last.
const at = `greatest(clock.now, o.updated_at)`

// changeOperation is the common part of every later change. Its version is the
// fence. $6 is a new lease; $7 and $8 are when to look next, at a time and so
// long from now, whichever comes first; $9 and $10 are conditions that hold
// only after a time, by the database's clock.
const changeOperation = `
update semel.operation as o
set
  state = $3::text,
  version = o.version + 1,
  attempt = $4::integer,
  cancel = $5::boolean,
  incident = $14::boolean,
  lease_until = coalesce(` + at + ` + $6::interval, o.lease_until),
  due_at = case when $3::text = 'in_progress'
    then coalesce(` + at + ` + $6::interval, o.lease_until)
    else least($7::timestamptz, ` + at + ` + $8::interval) end,
  updated_at = ` + at

const whereCurrent = `
from (select clock_timestamp() + $11::interval as now) as clock
where o.id = $1::uuid
  and o.version = $2::integer
  and ($9::timestamptz is null or ` + at + ` >= $9::timestamptz)
  and (not $10::boolean or o.lease_until <= ` + at + `)`

// secondEvent keeps the event that most operations end with in their own row.
const secondEvent = changeOperation + inRow + whereCurrent + returningChange

const inRow = `,
  second = $12::bytea, second_token = $13::uuid, second_at = ` + at

const returningChange = `
returning o.updated_at, o.cancel`

// completion is secondEvent as most operations have it: their only attempt is
// confirmed, nobody asked for a cancel, and no run waits for it. It takes the server a quarter less
// time, so it leaves out whatever such a change does not need.
const completion = `
update semel.operation as o
set
  state = 'completed',
  version = 2,
  due_at = null,
  updated_at = ` + at + `,
  second = $2::bytea, second_token = $3::uuid, second_at = ` + at + `
from (select clock_timestamp() as now) as clock
where o.id = $1::uuid
  and o.version = 1
  and not o.watched
returning o.updated_at, o.cancel`

// laterEvent appends to the evidence.
const laterEvent = withChanged + whereCurrent + recordChanged

const withChanged = `
with changed as (` + changeOperation

const recordChanged = `
  returning o.id, o.version, o.updated_at, o.cancel
), recorded as (
  insert into semel.evidence (operation_id, seq, at, token, event)
  select id, version, updated_at, $13::uuid, $12::bytea
  from changed
)
select updated_at, cancel
from changed`

// expiry is the event that turns an operation into a tombstone. $15 is its
// second event without the answer's body.
const expiry = withChanged + `,
  expired = true, body = null, second = $15::bytea` + whereCurrent + recordChanged

// Commit makes one change durable; see semel.Store.
func (s *Store) Commit(ctx context.Context, c semel.Change) (semel.Operation, error) {
	statements, err := s.changing(ctx, c, guard{})
	if err != nil {
		return semel.Operation{}, err
	}
	return s.commit(ctx, c, statements)
}

func (s *Store) commit(ctx context.Context, c semel.Change, statements []statement) (semel.Operation, error) {
	r := &request{statements: statements}
	r.claims(c, nil)
	if err := s.group.do(ctx, r); err != nil {
		return semel.Operation{}, fmt.Errorf("operation %s: %w", c.After.ID, err)
	}
	return s.answer(ctx, c, guard{}, r.statements[0])
}

// answer is what became of c, whose statement was committed.
func (s *Store) answer(ctx context.Context, c semel.Change, g guard, made statement) (semel.Operation, error) {
	if made.found {
		s.clock.seen(made.at)
		return c.Stamped(made.at.UTC()), nil
	}
	o, err := s.unchanged(ctx, c, g)
	if made.sql != completion || !errors.Is(err, semel.ErrStale) {
		return o, err
	}
	event, encodeErr := c.Event.Encode()
	if encodeErr != nil {
		return o, encodeErr
	}
	return s.commit(ctx, c, []statement{s.later(c, event, s.offset())}) // a run waits for it, if nothing else
}

// changing is the statements that make c durable. The first one answers.
func (s *Store) changing(ctx context.Context, c semel.Change, g guard) ([]statement, error) {
	if c.Event.Kind == semel.EvExpired && c.Before.Incident != "" {
		return nil, &semel.InputError{Field: "operation " + c.Before.ID.String(), Problem: "has an open incident and never expires", Hint: "close the incident first"}
	}
	event, err := c.Event.Encode()
	if err != nil {
		return nil, err
	}
	if c.Before.Version == 0 {
		return s.claiming(c, g, event)
	}
	offset := s.offset()
	if offset == 0 && completes(c) {
		return []statement{{there: c.After.ID, sql: completion, args: []any{[16]byte(c.After.ID), event, [16]byte(c.Token)}}}, nil
	}
	if c.Event.Kind == semel.EvExpired {
		return s.expire(ctx, c, changeArgs(c, event, offset))
	}
	change := s.later(c, event, offset)
	if c.Event.Kind == semel.EvClaimed {
		change.claim = true
		if g.needed(c) {
			change.sql, change.args = guardedOf[change.sql], append(change.args, g.args(c)...)
		}
	}
	return []statement{change}, nil
}

// later is the statement of a change after the first claim.
func (s *Store) later(c semel.Change, event []byte, offset time.Duration) statement {
	change := statement{sql: laterEvent, args: changeArgs(c, event, offset), there: c.After.ID, wakes: true}
	if c.Before.Version == 1 {
		change.sql = secondEvent
	}
	return change
}

// changeArgs are the arguments of changeOperation.
func changeArgs(c semel.Change, event []byte, offset time.Duration) []any {
	args := []any{[16]byte(c.After.ID), c.Before.Version, string(c.After.State), c.After.Attempt, c.After.Cancel, lease(c.Event)}
	args = append(args, due(c)...)
	return append(args, notBefore(c), c.Event.Kind == semel.EvLapsed, offset, event, [16]byte(c.Token), c.After.Incident != "")
}

// claiming is the statement of a first claim.
func (s *Store) claiming(c semel.Change, g guard, event []byte) ([]statement, error) {
	if err := errors.Join(c.After.Scope.Validate(), c.After.Key.Validate()); err != nil {
		return nil, err
	}
	rec, err := c.After.Record()
	if err != nil {
		return nil, err
	}
	claim := statement{claim: true, sql: insertClaim + orNothing, args: []any{
		[16]byte(rec.ID), micros(c.Event.Lease), rec.ID.Time(), string(rec.Scope), string(rec.Key),
		rec.Fingerprint, rec.Request, rec.Contract, rec.Body, event, s.offset(), uuid(rec.Run), text(rec.Step),
	}}
	if g.needed(c) {
		claim.sql, claim.args = guardedClaim, append(claim.args, g.args(c)...)
	}
	return []statement{claim}, nil
}

// completes reports whether completion records all that c changes.
func completes(c semel.Change) bool {
	return c.Before.Version == 1 && c.Event.Kind == semel.EvConfirmed && c.After.State == semel.Completed &&
		c.After.Attempt == 1 && !c.After.Cancel && c.After.Incident == ""
}

// micros rounds up to what the database can keep, so that a lease never ends
// before the time that the operation's own arithmetic gives.
func micros(d time.Duration) time.Duration {
	return (d + time.Microsecond - 1).Truncate(time.Microsecond)
}

func lease(ev semel.Event) any {
	if ev.Kind != semel.EvClaimed {
		return nil
	}
	return micros(ev.Lease)
}

// due is when to look next, as a time and as a pause from now. The change was
// computed with an estimate of the clock; the earlier of the two is never later
// than what follows from the stamped time.
func due(c semel.Change) []any {
	switch {
	case c.After.Incident != "" || c.After.State == semel.Unknown && c.After.CheckAt.IsZero():
		return []any{pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}, nil}
	case c.After.State == semel.Unknown:
		return []any{c.After.CheckAt, c.After.CheckAt.Sub(c.Event.At)}
	}
	return []any{nil, nil}
}

// notBefore is the time before which the event may not be recorded, because
// the state it leads to would not follow from it.
func notBefore(c semel.Change) any {
	if c.Event.Kind != semel.EvDidNotHappen || c.Event.Force {
		return nil
	}
	quiet := c.Before.QuietAt()
	if quiet.IsZero() {
		return nil
	}
	return quiet.Add(time.Microsecond - 1).Truncate(time.Microsecond)
}

// recognise tells an own earlier commit of the same change from another's.
// Whoever won has committed: the statement that found no row waited for it.
func (s *Store) recognise(ctx context.Context, c semel.Change) (semel.Operation, error) {
	stale := fmt.Errorf("operation %s: %w", c.After.ID, semel.ErrStale)
	if c.Before.Version == 0 {
		const query = `
select id, created_at
from semel.operation
where scope = $1::text
  and key = $2::text`
		var id [16]byte
		var created time.Time
		err := s.read(ctx, func(ctx context.Context) error {
			return s.pool.QueryRow(ctx, query, string(c.After.Scope), string(c.After.Key)).Scan(&id, &created)
		})
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return semel.Operation{}, &semel.InputError{Field: "operation id", Problem: c.After.ID.String() + " belongs to another key", Hint: "mint a new one"}
		case err != nil:
			return semel.Operation{}, unconfirmed("recognise the claim", err)
		case semel.ID(id) != c.After.ID:
			return semel.Operation{}, stale
		}
		return c.Stamped(created.UTC()), nil
	}
	const query = `
select
  case when $2::integer = 2 then o.second_token else e.token end,
  case when $2::integer = 2 then o.second_at else e.at end
from semel.operation as o
left join semel.evidence as e on e.operation_id = o.id and e.seq = $2::integer
where o.id = $1::uuid`
	var token pgtype.UUID
	var at pgtype.Timestamptz
	err := s.read(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, query, [16]byte(c.After.ID), c.Before.Version+1).Scan(&token, &at)
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return semel.Operation{}, fmt.Errorf("operation %s: %w", c.After.ID, semel.ErrNotFound)
	case err != nil:
		return semel.Operation{}, unconfirmed("recognise the change", err)
	case !token.Valid || semel.ID(token.Bytes) != c.Token:
		return semel.Operation{}, stale
	}
	return c.Stamped(at.Time.UTC()), nil
}

// Renew extends the lease of the current attempt; see semel.Store.
func (s *Store) Renew(ctx context.Context, id semel.ID, attempt int, lease time.Duration) (semel.Renewal, error) {
	const update = `
update semel.operation as o
set
  lease_until = greatest(o.lease_until, ` + at + ` + $3::interval),
  due_at = greatest(o.lease_until, ` + at + ` + $3::interval)
from (select clock_timestamp() + $4::interval as now) as clock
where o.id = $1::uuid
  and o.attempt = $2::integer
  and o.state = 'in_progress'
  and o.lease_until > ` + at + `
returning o.lease_until, o.cancel`
	r := only(statement{there: id, sql: update, args: []any{[16]byte(id), attempt, micros(lease), s.offset()}})
	if err := s.group.do(ctx, r); err != nil {
		return semel.Renewal{}, fmt.Errorf("renew the lease of operation %s: %w", id, err)
	}
	renewed := r.statements[0]
	if !renewed.found {
		return semel.Renewal{}, fmt.Errorf("renew the lease of operation %s: %w", id, semel.ErrStale)
	}
	return semel.Renewal{Until: renewed.at.UTC(), Cancel: renewed.flag}, nil
}
