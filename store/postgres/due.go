package postgres

import (
	"context"
	"encoding/binary"
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
// minting, behind the mark, got its due_at when it was inserted. Claims younger
// than the margin are looked at directly, as often as is cheap.
const (
	margin = time.Minute
	// recheck is how far before the mark a store begins its first sweep, for a
	// claim whose transaction was held open by a worker that stood still.
	recheck = time.Hour
)

// sweep is what a store remembers between two of its sweeps.
type sweep struct {
	mu       sync.Mutex
	mark     time.Time     // everything before is done
	walked   time.Time     // when the young claims were last looked at, by the local clock
	walkTook time.Duration // and how long that took
}

// Due lists operations that recovery should look at now; see semel.Store.
func (s *Store) Due(ctx context.Context, limit int) ([]semel.Operation, error) {
	const query = selectOperation + `
where o.due_at <= $1::timestamptz
order by o.due_at
limit $2::integer`
	now, mark, err := s.swept(ctx)
	if err != nil {
		return nil, unavailable("look for due operations", err)
	}
	if err := s.sweepTo(ctx, mark, now.Add(-margin)); err != nil {
		return nil, unavailable("look for lapsed leases", err)
	}
	records, err := s.records(ctx, query, now, limit)
	if err != nil {
		return nil, unavailable("look for due operations", err)
	}
	if len(records) < limit {
		young, err := s.lapsedYoung(ctx, now, limit-len(records))
		if err != nil {
			return nil, unavailable("look for lapsed leases", err)
		}
		records = append(records, young...)
	}
	due := make([]semel.Operation, 0, len(records))
	for _, rec := range records {
		o, err := rec.Operation()
		if err != nil {
			return nil, err
		}
		// The index may be an instant early.
		if o.State == semel.InProgress && o.StateAt(now) == semel.Unknown || o.State == semel.Unknown && !o.CheckAt.After(now) {
			due = append(due, o)
		}
	}
	return due, nil
}

// swept is the store's clock and the persisted mark of the sweep.
func (s *Store) swept(ctx context.Context) (now, mark time.Time, err error) {
	const query = `
select clock_timestamp() + $1::interval, greatest(swept, 'epoch')
from semel.store`
	err = s.read(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, query, s.offset()).Scan(&now, &mark)
	})
	return now.UTC(), mark.UTC(), err
}

// sweepTo gives first claims minted before to, and still in progress, a due_at.
func (s *Store) sweepTo(ctx context.Context, mark, to time.Time) error {
	const update = `
update semel.operation
set due_at = lease_until
where id >= $1::uuid
  and id < $2::uuid
  and state = 'in_progress'
  and due_at is null`
	const move = `
update semel.store
set swept = greatest(swept, $1::timestamptz)`
	s.sweep.mu.Lock()
	defer s.sweep.mu.Unlock()
	switch {
	case s.sweep.mark.IsZero():
		mark = mark.Add(-recheck)
	case s.sweep.mark.After(mark):
		mark = s.sweep.mark
	}
	if to.Sub(mark) < time.Second && !s.sweep.mark.IsZero() {
		return nil
	}
	var batch pgx.Batch
	batch.Queue(update, firstID(mark), firstID(to))
	if s.offset() == 0 { // what a drill's clock says concerns nobody else
		batch.Queue(move, to)
	}
	err := s.read(ctx, func(ctx context.Context) error { return s.pool.SendBatch(ctx, &batch).Close() })
	if err == nil {
		s.sweep.mark = to
	}
	return err
}

// lapsedYoung finds first claims younger than the margin whose lease has
// lapsed. On a busy database this walk is long, so it takes at most a fiftieth
// of the time; the sweep finds the rest.
func (s *Store) lapsedYoung(ctx context.Context, now time.Time, limit int) ([]semel.Record, error) {
	const query = selectOperation + `
where o.id >= $1::uuid
  and o.id < $2::uuid
  and o.state = 'in_progress'
  and o.due_at is null
  and o.lease_until <= $3::timestamptz
order by o.id
limit $4::integer`
	s.sweep.mu.Lock()
	defer s.sweep.mu.Unlock()
	if s.sweep.walkTook > 5*time.Millisecond && time.Since(s.sweep.walked) < 50*s.sweep.walkTook {
		return nil, nil
	}
	start := time.Now()
	records, err := s.records(ctx, query, firstID(now.Add(-margin)), firstID(now.Add(margin)), now, limit)
	s.sweep.walked, s.sweep.walkTook = start, time.Since(start)
	return records, err
}

// firstID is the least ID that can have been minted at t.
func firstID(t time.Time) [16]byte {
	var id [16]byte
	binary.BigEndian.PutUint64(id[:8], uint64(max(0, t.UnixMilli()))<<16) //nolint:gosec // not negative
	return id
}
