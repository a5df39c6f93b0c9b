package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/semel-dev/semel"
)

// Limited is a Destination that must not be asked too often, or too often at
// once, by all workers together. A limit without a bound is none. Over a store
// that keeps no places, without Acquire and Release as in semel.Runs, there is no
// limit, and the log says so once.
//
// An attempt waits for its place before it is claimed, so that waiting takes
// nothing from the time it has for sending. It gives the place back when its
// destination has answered or is not waited for any longer; that of a killed
// process is free again when its lease is over. Lookups take none.
type Limited interface {
	Limit() semel.Limit
}

const (
	// shortly is how long a step of a run, or recovery, waits for a place before
	// it comes back later; what is behind longLine others comes back at once.
	shortly  = 500 * time.Millisecond
	longLine = 32
	// comeBack is how long a step stays away at most. Before that, it is a
	// quarter of the time that it has waited.
	comeBack = 15 * time.Second
)

// places is a store that keeps places under limits; see semel.Runs.
type places interface {
	Acquire(ctx context.Context, l semel.Limit, holder semel.ID, lease time.Duration) (semel.Place, error)
	Release(ctx context.Context, l semel.Limit, holder semel.ID) error
}

var errClosed = errors.New("the engine was closed")

// crowdedError says that there is no place yet. Nothing was claimed.
type crowdedError struct {
	limit string
	at    time.Time // when to ask again
}

func (e *crowdedError) Error() string {
	return fmt.Sprintf("there is no place at %s, which is limited, before %s", e.limit, e.at.Format(time.RFC3339Nano))
}

// place takes a place under the destination's limit, unless the pursuit has
// one. waited: that took time, in which the operation may have changed. A step
// of a run that must wait for long is suspended, recovery gets a crowdedError,
// and other callers wait until ctx ends.
func (p *pursuit) place(ctx context.Context) (waited bool, err error) {
	l, keeper := p.limit()
	if keeper == nil || p.seat != nil {
		return false, nil
	}
	w := &waiter{place: &place{e: p.e, keeper: keeper, limit: l, holder: p.e.newID()}, line: p.e.lines.of(l.Name)}
	if p.branch != nil || p.recovers {
		w.patience = shortly
	}
	w.ahead = p.recovers
	at, err := w.wait(ctx)
	switch {
	case err != nil:
		return w.waited, err
	case at.IsZero():
		p.seat = w.place
		return w.waited, nil
	case p.branch != nil:
		p.branch.crowded(p.path, l.Name, at)
	}
	return w.waited, &crowdedError{limit: l.Name, at: at}
}

// leave gives the place back, unless an attempt has taken it over.
func (p *pursuit) leave() {
	p.seat.leave()
	p.seat = nil
}

// limit is the limit of the destination, and the store that keeps its places;
// nil where there is no limit.
func (p *pursuit) limit() (semel.Limit, places) {
	d, ok := p.call.Destination.(Limited)
	if !ok {
		return semel.Limit{}, nil
	}
	l := d.Limit()
	if l.Zero() {
		return l, nil
	}
	keeper, ok := p.e.store.(places)
	if !ok {
		p.e.unkept.Do(func() { p.e.log.Info("this store keeps no places, so no limit is kept", "limit", l.Name) })
		return l, nil
	}
	return l, keeper
}

// onRecord reports whether the operation of a limited destination is known
// already: what is only replayed takes no place, and waits for none.
func (p *pursuit) onRecord(ctx context.Context) (bool, error) {
	if _, keeper := p.limit(); keeper == nil {
		return false, nil
	}
	_, err := p.e.store.Load(ctx, p.call.Scope, p.call.Key)
	if errors.Is(err, semel.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// crowded suspends the branch until it asks for a place again.
func (b *branch) crowded(path, limit string, at time.Time) {
	now := b.x.w.e.estimate()
	w := semel.RunWait{Path: path, Kind: semel.WaitTime, Since: now, Reason: fmt.Sprintf("step %s waits for a place at %s, which is limited", path, limit)}
	if was, ok := b.x.waited(path); ok && was.Kind == semel.WaitTime {
		w.Version = was.Version // the attempts of an effect that is repeated
		if was.Reason == w.Reason {
			w.Since = was.Since
		}
	}
	away := min(max(now.Sub(w.Since)/4, shortly/2), comeBack)
	away += rand.N(away / 2) // not all at once
	w.Until = now.Add(away)
	if at.After(w.Until) {
		w.Until = at.Add(rand.N(away))
	}
	b.suspend(w)
}
