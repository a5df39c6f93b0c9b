package sqlite

import (
	"context"
	"time"

	"github.com/semel-dev/semel"
)

// askAgain is the longest time until somebody who found no place asks again:
// places are given back before their lease ends.
const askAgain = 250 * time.Millisecond

const (
	deletePlaces = `
		delete from place
		where name = ?
			and until <= ?`
	keepPlace = `
		update place
		set until = ?3
		where name = ?1
			and holder = ?2`
	countPlaces = `
		select count(*), coalesce(min(until), 0)
		from place
		where name = ?`
	selectRate = `
		select next
		from rate
		where name = ?`
	upsertRate = `
		insert into rate (name, next)
		values (?1, ?2)
		on conflict (name) do update
		set next = ?2`
	insertPlace = `
		insert into place (name, holder, until)
		values (?, ?, ?)`
	deletePlace = `
		delete from place
		where name = ?
			and holder = ?`
)

// Acquire takes a place under a limit; see semel.Runs. Who has a place and
// asks again keeps it, and takes no second one.
func (s *Store) Acquire(ctx context.Context, l semel.Limit, holder semel.ID, lease time.Duration) (semel.Place, error) {
	if l.Zero() {
		return semel.Place{Taken: true}, nil
	}
	w := &acquisition{Limit: l, holder: holder, lease: lease}
	err := s.submit(ctx, w, false)
	return w.place, err
}

// acquisition is the work of Acquire.
type acquisition struct {
	semel.Limit
	holder semel.ID
	lease  time.Duration
	place  semel.Place
}

func (a *acquisition) write(w *writer, at int64) error {
	ctx := context.Background()
	a.place = semel.Place{}
	if _, err := exec(ctx, w, deletePlaces, a.Name, at); err != nil {
		return err
	}
	n, err := exec(ctx, w, keepPlace, a.Name, a.holder[:], at+int64(a.lease))
	if err != nil {
		return err
	}
	if n > 0 {
		a.place.Taken = true
		return nil
	}
	free, err := a.crowded(ctx, w, at)
	if err != nil {
		return err
	}
	next, late, err := a.paced(ctx, w, at)
	if err != nil {
		return err
	}
	if ask := max(free, late); ask > at {
		a.place.At = fromNano(ask)
		return nil
	}
	if a.Every > 0 {
		if _, err := exec(ctx, w, upsertRate, a.Name, next); err != nil {
			return err
		}
	}
	a.place.Taken = true
	_, err = exec(ctx, w, insertPlace, a.Name, a.holder[:], at+int64(a.lease))
	return err
}

// crowded is when to ask again for one of the places, 0 where one is free.
func (a *acquisition) crowded(ctx context.Context, s session, at int64) (int64, error) {
	if a.AtOnce == 0 {
		return 0, nil
	}
	var taken int
	var first int64
	if _, err := one(ctx, s, into(&taken, &first), countPlaces, a.Name); err != nil || taken < a.AtOnce {
		return 0, err
	}
	return min(first, at+int64(askAgain)), nil
}

// paced is when the rate allows another place, and what it is paid until then.
// All that was taken is paid for at the time next, and a burst is how far that
// may lie ahead.
func (a *acquisition) paced(ctx context.Context, s session, at int64) (next, allowed int64, err error) {
	if a.Every == 0 {
		return 0, 0, nil
	}
	paid := at
	if _, err := one(ctx, s, into(&paid), selectRate, a.Name); err != nil {
		return 0, 0, err
	}
	paid = max(paid, at)
	return paid + int64(a.Every), paid - int64(a.Every)*int64(max(a.Burst, 1)-1), nil
}

// Release gives a place back before its lease ends.
func (s *Store) Release(ctx context.Context, l semel.Limit, holder semel.ID) error {
	if l.Zero() {
		return nil
	}
	return s.submit(ctx, &release{l.Name, holder}, false)
}

type release struct {
	name   string
	holder semel.ID
}

func (r *release) write(w *writer, _ int64) error {
	_, err := exec(context.Background(), w, deletePlace, r.name, r.holder[:])
	return err
}
