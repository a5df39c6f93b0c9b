package postgres

import (
	"context"
	"time"
)

// Now is the database's clock.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	const query = `select clock_timestamp() + $1::interval`
	var now time.Time
	if err := s.pool.QueryRow(ctx, query, s.offset()).Scan(&now); err != nil {
		return time.Time{}, unavailable("read the clock", err)
	}
	return now.UTC(), nil
}

// Shift moves this store's clock forward by d. It is for tests and drills,
// which cannot wait for leases and windows to end.
func (s *Store) Shift(d time.Duration) { s.shift.Add(int64(d)) }

func (s *Store) offset() time.Duration { return time.Duration(s.shift.Load()) }
