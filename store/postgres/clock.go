package postgres

import (
	"context"
	"sync"
	"time"
)

// clock is how far the store's clock is ahead of the database's. Where the
// database's clock is behind what was already stamped, because it was set back
// or another server took over, the store's goes on at its own pace.
type clock struct {
	mu     sync.Mutex
	shift  time.Duration // by tests and drills
	ahead  time.Duration
	latest time.Time // the latest time that this store has seen
}

// startClock takes over the latest time that earlier stores stamped, as far as
// it is found cheaply.
func (s *Store) startClock(ctx context.Context) error {
	const query = `
select greatest(
  (select updated_at from semel.operation order by id desc limit 1),
  (select updated_at from semel.run order by id desc limit 1),
  'epoch')`
	var latest time.Time
	if err := s.pool.QueryRow(ctx, query).Scan(&latest); err != nil {
		return err
	}
	s.clock.seen(latest.UTC())
	return nil
}

// Now is the store's clock: the database's, except that it never runs back.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	now, _, err := s.state(ctx)
	if err != nil {
		return time.Time{}, unavailable("read the clock", err)
	}
	return now, nil
}

// Shift moves this handle's clock by d. Only tests and drills may call it.
func (s *Store) Shift(d time.Duration) {
	s.clock.mu.Lock()
	defer s.clock.mu.Unlock()
	s.clock.shift += d
}

// state is the store's clock and the persisted mark of the sweep.
func (s *Store) state(ctx context.Context) (now, swept time.Time, err error) {
	const query = `
select clock_timestamp() + $1::interval, greatest(swept, 'epoch'), ahead
from semel.store`
	var ahead time.Duration
	var latest time.Time
	err = s.read(ctx, func(ctx context.Context) error {
		latest = s.clock.seen(time.Time{})
		return s.pool.QueryRow(ctx, query, s.clock.shifted()).Scan(&now, &swept, &ahead)
	})
	if err != nil {
		return time.Time{}, time.Time{}, err
	}
	now, grown := s.clock.correct(now.UTC(), latest, ahead)
	if grown {
		s.keepAhead(ctx)
	}
	return now, swept.UTC(), nil
}

// keepAhead tells other handles, and those to come. Whoever does not hear of it
// finds out by itself.
func (s *Store) keepAhead(ctx context.Context) {
	const update = `
update semel.store
set ahead = greatest(ahead, $1::interval)`
	s.clock.mu.Lock()
	ahead := s.clock.ahead
	s.clock.mu.Unlock()
	_, _ = s.pool.Exec(ctx, update, ahead)
}

// offset is what a statement adds to the database's clock.
func (s *Store) offset() time.Duration {
	s.clock.mu.Lock()
	defer s.clock.mu.Unlock()
	return s.clock.shift + s.clock.ahead
}

func (c *clock) shifted() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shift
}

// seen takes note of a stamped time and returns the latest.
func (c *clock) seen(at time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at.After(c.latest) {
		c.latest = at
	}
	return c.latest
}

// correct turns a reading of the database's clock into the store's time.
// Latest was stamped before the reading, ahead is what other handles found.
// grown: the clock was set back, and nobody knew.
func (c *clock) correct(reading, latest time.Time, ahead time.Duration) (now time.Time, grown bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead = max(c.ahead, ahead)
	now = reading.Add(c.ahead)
	if behind := latest.Sub(now); !latest.IsZero() && behind > 0 {
		c.ahead += behind
		now, grown = latest, true
	}
	if now.After(c.latest) {
		c.latest = now
	}
	return now, grown
}
