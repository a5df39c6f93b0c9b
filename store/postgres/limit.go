package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-dev/semel"
)

// askAgain is how long whoever finds no place waits at most.
const askAgain = 250 * time.Millisecond

// Acquire takes a place under a limit; see semel.Runs. Asking again with the
// same holder renews its place.
func (s *Store) Acquire(ctx context.Context, l semel.Limit, holder semel.ID, lease time.Duration) (place semel.Place, err error) {
	if l.Zero() {
		return semel.Place{Taken: true}, nil
	}
	const renew = `
update semel.place
set until = $3::timestamptz
where name = $1::text
  and holder = $2::uuid
  and until > $4::timestamptz`
	const lapse = `
delete from semel.place
where name = $1::text
  and until <= $2::timestamptz`
	const take = `
insert into semel.place (name, holder, until)
values ($1::text, $2::uuid, $3::timestamptz)`
	const move = `
update semel.rate
set free = greatest(free, $2::timestamptz) + $3::interval
where name = $1::text`
	err = s.transact(ctx, "acquire a place under "+l.Name, func(tx pgx.Tx, _ bool) error {
		free, err := lockRate(ctx, tx, l.Name)
		if err != nil {
			return err
		}
		now, err := s.clockOf(ctx, tx)
		if err != nil {
			return err
		}
		until := now.Add(micros(lease))
		tag, err := tx.Exec(ctx, renew, l.Name, [16]byte(holder), until, now)
		if err != nil {
			return err
		}
		if tag.RowsAffected() > 0 {
			place = semel.Place{Taken: true}
			return nil
		}
		if _, err := tx.Exec(ctx, lapse, l.Name, now); err != nil {
			return err
		}
		at, err := earliest(ctx, tx, l, now, free)
		if err != nil {
			return err
		}
		if at.After(now) {
			place = semel.Place{At: at}
			return nil
		}
		place = semel.Place{Taken: true}
		if _, err := tx.Exec(ctx, take, l.Name, [16]byte(holder), until); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, move, l.Name, now, l.Every)
		return err
	})
	return place, err
}

// lockRate keeps others from the limit, and reads when a place is due if they
// come evenly.
func lockRate(ctx context.Context, tx pgx.Tx, name string) (free time.Time, err error) {
	const create = `
insert into semel.rate (name)
values ($1::text)
on conflict do nothing`
	const lock = `
select free
from semel.rate
where name = $1::text
for no key update`
	var at pgtype.Timestamptz
	err = tx.QueryRow(ctx, lock, name).Scan(&at)
	if errors.Is(err, pgx.ErrNoRows) {
		if _, err := tx.Exec(ctx, create, name); err != nil {
			return time.Time{}, err
		}
		err = tx.QueryRow(ctx, lock, name).Scan(&at)
	}
	if at.InfinityModifier != pgtype.Finite {
		return time.Time{}, err
	}
	return timeOf(at), err
}

// earliest is when the limit has a place.
func earliest(ctx context.Context, tx pgx.Tx, l semel.Limit, now, free time.Time) (at time.Time, err error) {
	const query = `
select count(*), min(until)
from semel.place
where name = $1::text`
	if l.Every > 0 {
		at = free.Add(-time.Duration(max(l.Burst, 1)-1) * l.Every)
	}
	if l.AtOnce == 0 {
		return at, nil
	}
	var places int
	var first pgtype.Timestamptz
	if err := tx.QueryRow(ctx, query, l.Name).Scan(&places, &first); err != nil {
		return at, err
	}
	if places >= l.AtOnce { // one may be given back before its lease ends
		at = later(at, earlier(timeOf(first), now.Add(askAgain)))
	}
	return at, nil
}

// Release gives a place back; see semel.Runs.
func (s *Store) Release(ctx context.Context, l semel.Limit, holder semel.ID) error {
	const remove = `
delete from semel.place
where name = $1::text
  and holder = $2::uuid`
	if l.Zero() {
		return nil
	}
	return s.transact(ctx, "release a place under "+l.Name, func(tx pgx.Tx, _ bool) error {
		_, err := tx.Exec(ctx, remove, l.Name, [16]byte(holder))
		return err
	})
}
