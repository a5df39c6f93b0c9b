package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel"
)

// insertEvent makes an event durable, unless one of its name has the ID. Its
// arguments suit every driver.
const insertEvent = `
insert into semel.event (id, name, sent_id, match, data, by, delivered, at)
select $1::uuid, $2::text, $3::text, $4::text, $5::bytea, $6::text, $7::boolean, clock_timestamp() + $8::interval
on conflict do nothing
returning at, false`

func eventArgs(id semel.ID, e *semel.InboxEvent, delivered bool, offset time.Duration) []any {
	return []any{id.String(), e.Name, e.ID, e.Match, []byte(e.Data), e.By, delivered, interval(offset)}
}

const selectEvent = `
select e.id, e.name, e.sent_id, e.match, e.data, e.by, e.at, e.delivered
from semel.event as e`

// sent is an event as it was read.
type sent struct {
	semel.InboxEvent
	id        semel.ID
	delivered bool
}

func scanEvent(row scanner) (sent, error) {
	var e sent
	var id [16]byte
	var data []byte
	err := row.Scan(&id, &e.Name, &e.ID, &e.Match, &data, &e.By, &e.At, &e.delivered)
	e.id, e.At = id, e.At.UTC()
	if len(data) > 0 {
		e.Data = data
	}
	return e, err
}

// Send makes an event durable and delivers it; see semel.Runs.
func (s *Store) Send(ctx context.Context, e semel.InboxEvent) (existing bool, err error) {
	if err := e.Validate(); err != nil {
		return false, err
	}
	id := s.mint()
	err = s.transact(ctx, "send event "+e.Name, func(tx pgx.Tx, doubt bool) error {
		if err := advisory(ctx, tx, eventLock(e.Name, e.Match)); err != nil {
			return err
		}
		var flag bool
		err := tx.QueryRow(ctx, insertEvent, eventArgs(id, &e, true, s.offset())...).Scan(&e.At, &flag)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			existing, err = s.sentBefore(ctx, tx, id, doubt)
			return err
		case err != nil:
			return err
		}
		e.At = e.At.UTC()
		return s.deliver(ctx, tx, sent{InboxEvent: e, id: id})
	})
	return existing, err
}

// sentBefore tells an event of another call from this one's, whose commit was
// not acknowledged.
func (s *Store) sentBefore(ctx context.Context, tx pgx.Tx, id semel.ID, doubt bool) (existing bool, err error) {
	const query = `
select not exists (
  select from semel.event
  where id = $1::uuid)`
	if !doubt {
		return true, nil
	}
	err = tx.QueryRow(ctx, query, [16]byte(id)).Scan(&existing)
	return existing, err
}

// deliver starts the runs that e triggers and wakes those that wait for it. The
// lock of the event is held.
func (s *Store) deliver(ctx context.Context, tx pgx.Tx, e sent) error {
	const started = `
insert into semel.event_started (event_id, run_id)
values ($1::uuid, $2::uuid)
on conflict do nothing`
	news, err := s.triggered(ctx, tx, e.InboxEvent)
	if err != nil {
		return err
	}
	for _, n := range news {
		b, err := s.begin(n, nil)
		if err != nil {
			return &verdict{err}
		}
		r, existing, err := start(ctx, tx, b, s.offset())
		if err != nil {
			return err
		}
		if existing {
			continue
		}
		if _, err := tx.Exec(ctx, started, [16]byte(e.id), [16]byte(r.ID)); err != nil {
			return err
		}
	}
	_, err = tx.Exec(ctx, wakeForEvent, s.offset(), e.Name, e.Match)
	return err
}

// triggered is the runs that e starts.
func (s *Store) triggered(ctx context.Context, tx pgx.Tx, e semel.InboxEvent) ([]semel.NewRun, error) {
	const query = `
select w.name, w.version, w.definition
from semel.subscription as s
join semel.workflow as w on w.name = s.workflow
where s.event = $1::text
order by w.name`
	rows, err := tx.Query(ctx, query, e.Name)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (semel.NewRun, error) {
		n := semel.NewRun{Key: semel.EventKey(&e), Input: e.Data, Trigger: semel.Trigger{Kind: semel.ByEvent, Event: &e}}
		err := row.Scan(&n.Workflow, &n.Version, &n.Definition)
		return n, err
	})
}

// Deliver delivers events that were sent inside a caller's transaction; see
// semel.Runs. They are found by a mark of their own, so that one which commits
// late is neither overlooked nor waited for. Each has a transaction: one that
// cannot be delivered does not keep the others.
func (s *Store) Deliver(ctx context.Context, limit int) (int, error) {
	const query = `
select id
from semel.event
where not delivered
order by id
limit $1::integer`
	ids, err := collect(ctx, s, "look for events", pgx.RowTo[[16]byte], query, limit)
	if err != nil {
		return 0, err
	}
	delivered, errs := 0, error(nil)
	for _, id := range ids {
		done, err := s.deliverOne(ctx, id)
		if err != nil {
			errs = errors.Join(errs, err)
		}
		if done {
			delivered++
		}
	}
	return delivered, errs
}

func (s *Store) deliverOne(ctx context.Context, id semel.ID) (done bool, err error) {
	const take = selectEvent + `
where e.id = $1::uuid
  and not e.delivered
for no key update skip locked`
	const mark = `
update semel.event
set delivered = true
where id = $1::uuid`
	err = s.transact(ctx, "deliver event "+id.String(), func(tx pgx.Tx, doubt bool) error {
		e, err := scanEvent(tx.QueryRow(ctx, take, [16]byte(id)))
		if errors.Is(err, pgx.ErrNoRows) {
			done = doubt
			return nil // somebody else has it
		}
		if err != nil {
			return err
		}
		done = true
		if err := advisory(ctx, tx, eventLock(e.Name, e.Match)); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, mark, [16]byte(id)); err != nil {
			return err
		}
		return s.deliver(ctx, tx, e)
	})
	return done && err == nil, err
}

// TakeEvent gives the oldest event to a step; see semel.Runs.
func (s *Store) TakeEvent(ctx context.Context, c semel.EventClaim) (rec semel.StepRecord, err error) {
	err = s.transact(ctx, "take event "+c.Name, func(tx pgx.Tx, _ bool) error {
		// A sender that was first is seen; one that comes later is too late.
		if err := advisory(ctx, tx, eventLock(c.Name, c.Match)); err != nil {
			return err
		}
		r, err := lockRun(ctx, tx, c.Run)
		if lost(&r, c.RunFence, err) {
			return &verdict{&lostError{c.RunFence}}
		}
		if err != nil {
			return err
		}
		const recorded = selectStep + `
where run_id = $1::uuid
  and path = $2::text`
		rows, err := tx.Query(ctx, recorded, [16]byte(c.Run), c.Path)
		if err != nil {
			return err
		}
		if rec, err = pgx.CollectExactlyOneRow(rows, scanStep); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if rec, err = s.takeOldest(ctx, tx, c); err != nil {
			return err
		}
		st := s.recording(c.RunFence, rec)
		var flag bool
		err = tx.QueryRow(ctx, st.sql, st.args...).Scan(&rec.At, &flag)
		rec.At = rec.At.UTC()
		return err
	})
	return rec, err
}

// takeOldest takes an event that no run of the workflow took before. The lock
// of the event is held, so nobody else takes one meanwhile.
func (s *Store) takeOldest(ctx context.Context, tx pgx.Tx, c semel.EventClaim) (semel.StepRecord, error) {
	const oldest = selectEvent + `
where e.name = $1::text
  and e.match = $2::text
  and ($3::timestamptz is null or e.at <= $3::timestamptz)
  and not exists (
    select from semel.event_taken as taken
    where taken.event_id = e.id and taken.workflow = $4::text)
order by e.at, e.id
limit 1`
	const take = `
insert into semel.event_taken (event_id, workflow, run_id, path, at)
values ($1::uuid, $2::text, $3::uuid, $4::text, $5::timestamptz)`
	rec := semel.StepRecord{Path: c.Path, Kind: semel.StepEvent, What: c.Name + " " + c.Match, Outcome: semel.StepCompleted}
	now, err := s.clockOf(ctx, tx)
	if err != nil {
		return rec, err
	}
	e, err := scanEvent(tx.QueryRow(ctx, oldest, c.Name, c.Match, instant(c.Until), c.Workflow))
	switch {
	case errors.Is(err, pgx.ErrNoRows) && (c.Until.IsZero() || now.Before(c.Until)):
		return rec, &verdict{fmt.Errorf("event %s: %w", cmp.Or(c.Match, c.Name), semel.ErrNotFound)}
	case errors.Is(err, pgx.ErrNoRows):
		rec.Outcome = semel.StepTimedOut
		return rec, nil
	case err != nil:
		return rec, err
	}
	if rec.Result, err = json.Marshal(e.InboxEvent); err != nil {
		return rec, &verdict{fmt.Errorf("encode event: %w", err)}
	}
	_, err = tx.Exec(ctx, take, [16]byte(e.id), c.Workflow, [16]byte(c.Run), c.Path, now)
	return rec, err
}
