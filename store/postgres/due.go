package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel"
)

// A first claim is in no index but those of its identity, so that its outcome
// can be written in place. If its worker dies, the lease must be found to have
// lapsed all the same. IDs carry the time they were minted, so the primary key
// is walked by time: the sweep gives every first claim that is still in
// progress margin after its minting a due_at, and then moves a persisted mark
// behind it. Each stretch is walked once. A claim that commits long after its
// minting, behind the mark, got its due_at when it was inserted.
//
// A lease may lapse before the margin has passed. So those that are soon old are
// walked once more, and the ones still in progress remembered until the lease
// that they had then lapses. A claim with a lease so short that it could lapse
// unseen got its due_at when it was inserted. What commits too late for the
// walk, the sweep finds.
const (
	margin = time.Minute
	soon   = 5 * time.Second // insertClaim relies on it
	// recheck is how far before the mark a store begins its first sweep, for a
	// claim whose transaction was held open by a worker that stood still.
	recheck = time.Hour
)

// sweep is what a store remembers between two of its sweeps.
type sweep struct {
	mu     sync.Mutex
	mark   time.Time // all claims minted before it were swept
	walked time.Time // and those before this are remembered
	young  []young
}

// young is a claim that was in progress, and until when.
type young struct {
	id    [16]byte
	until time.Time
}

// Due lists operations that recovery should look at now, longest overdue
// first; see semel.Store. One that cannot be read does not keep the others
// from recovery: Due fails only where none can be read.
func (s *Store) Due(ctx context.Context, limit int) ([]semel.Operation, error) {
	const query = selectOperation + `
where o.due_at <= $1::timestamptz
order by o.due_at
limit $2::integer`
	now, swept, err := s.state(ctx)
	if err != nil {
		return nil, unavailable("look for due operations", err)
	}
	lapsed, err := s.lapsed(ctx, now, swept, limit)
	if err != nil {
		return nil, unavailable("look for lapsed leases", err)
	}
	found, err := s.stored(ctx, query, now, limit)
	if err != nil {
		return nil, unavailable("look for due operations", err)
	}
	var due []semel.Operation
	var unreadable error
	for _, f := range append(found, lapsed...) {
		o, err := f.operation()
		switch {
		case err != nil:
			unreadable = errors.Join(unreadable, err)
		case !dueAt(o).IsZero() && !dueAt(o).After(now): // the index may be an instant early
			due = append(due, o)
		}
	}
	if len(due) == 0 && unreadable != nil {
		return nil, unavailable("look for due operations", unreadable)
	}
	slices.SortStableFunc(due, func(a, b semel.Operation) int { return dueAt(a).Compare(dueAt(b)) })
	return due[:min(limit, len(due))], nil
}

func dueAt(o semel.Operation) time.Time {
	switch o.State {
	case semel.InProgress:
		return o.LeaseUntil
	case semel.Unknown:
		return o.CheckAt
	case semel.Completed, semel.Failed:
	}
	return time.Time{}
}

// lapsed finds first claims whose lease has lapsed and that have no due_at:
// those younger than the margin. It gives the older ones their due_at.
func (s *Store) lapsed(ctx context.Context, now, swept time.Time, limit int) ([]stored, error) {
	const query = selectOperation + `
where o.id = any($1::uuid[])
  and o.state = 'in_progress'
  and o.due_at is null`
	s.sweep.mu.Lock()
	defer s.sweep.mu.Unlock()
	if err := s.sweepTo(ctx, swept, now.Add(-margin)); err != nil {
		return nil, err
	}
	if err := s.walkTo(ctx, now.Add(-soon)); err != nil {
		return nil, err
	}
	var ids [][16]byte
	for _, y := range s.sweep.young {
		if !y.until.After(now) && len(ids) < limit {
			ids = append(ids, y.id)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	found, err := s.stored(ctx, query, ids)
	if err == nil {
		s.sweep.forget(ids, found)
	}
	return found, err
}

// forget drops those that were looked at and are in progress no more, or have a
// due_at.
func (s *sweep) forget(looked [][16]byte, found []stored) {
	gone := make(map[[16]byte]bool, len(looked))
	for _, id := range looked {
		gone[id] = true
	}
	for _, f := range found {
		delete(gone, f.record.ID)
	}
	s.young = slices.DeleteFunc(s.young, func(y young) bool { return gone[y.id] })
}

// walkTo remembers first claims minted before to and since the last walk.
func (s *Store) walkTo(ctx context.Context, to time.Time) error {
	const query = `
select id, lease_until
from semel.operation
where id >= $1::uuid
  and id < $2::uuid
  and state = 'in_progress'
  and due_at is null`
	from := later(s.sweep.walked, s.sweep.mark)
	if to.Sub(from) < time.Second {
		return nil
	}
	found, err := collect(ctx, s, "look for claims in progress", func(row pgx.CollectableRow) (y young, err error) {
		err = row.Scan(&y.id, &y.until)
		return y, err
	}, query, firstID(from), firstID(to))
	if err == nil {
		s.sweep.young, s.sweep.walked = append(s.sweep.young, found...), to
	}
	return err
}

// sweepTo gives first claims minted before to, and still in progress, a due_at.
func (s *Store) sweepTo(ctx context.Context, swept, to time.Time) error {
	const update = `
with late as materialized (
  select id
  from semel.operation
  where id >= $1::uuid
    and id < $2::uuid
    and state = 'in_progress'
    and due_at is null
  order by id
  for no key update
)
update semel.operation as o
set due_at = o.lease_until
from late
where o.id = late.id`
	const move = `
update semel.store
set swept = greatest(swept, $1::timestamptz)`
	first := s.sweep.mark.IsZero()
	switch {
	case first:
		s.sweep.mark = swept.Add(-recheck)
	case swept.After(s.sweep.mark):
		s.sweep.mark = swept
	}
	if !first && to.Sub(s.sweep.mark) < time.Second {
		return nil
	}
	err := s.read(ctx, func(ctx context.Context) error {
		var batch pgx.Batch // a batch remembers statements of the connection that it was sent on
		batch.Queue(update, firstID(s.sweep.mark), firstID(to))
		if s.clock.shifted() == 0 { // what a drill's clock says concerns nobody else
			batch.Queue(move, to)
		}
		return s.pool.SendBatch(ctx, &batch).Close()
	})
	if err == nil && to.After(s.sweep.mark) {
		s.sweep.mark = to
	}
	return err
}

// firstID is the least ID that can have been minted at t.
func firstID(t time.Time) [16]byte {
	var id [16]byte
	binary.BigEndian.PutUint64(id[:8], uint64(max(0, t.UnixMilli()))<<16) //nolint:gosec // not negative
	return id
}
