package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// lines are where the requests of one engine wait for places, one for each
// limit.
type lines struct {
	mu  sync.Mutex
	all map[string]*line
}

func (ls *lines) of(limit string) *line {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ln, ok := ls.all[limit]
	if !ok {
		if ls.all == nil {
			ls.all = map[string]*line{}
		}
		ln = &line{front: make(chan struct{}, 1), freed: make(chan struct{}, 1)}
		ls.all[limit] = ln
	}
	return ln
}

// line is where requests wait for places under one limit. Only who stands at
// its front asks the store, so that a crowd costs no more than one.
type line struct {
	front  chan struct{} // full while somebody stands there
	freed  chan struct{} // a place was given back
	length atomic.Int32
}

// next says that a place was given back by this engine.
func (ln *line) next() {
	select {
	case ln.freed <- struct{}{}:
	default:
	}
}

// waiter waits in a line for its place.
type waiter struct {
	place    *place
	line     *line
	patience time.Duration // 0 for as long as it takes
	ahead    bool          // it does not stand in line: what it resends may have a window that ends
	waited   bool
}

// wait returns when the place is taken. at is when to ask again, where the
// waiter's patience is over before.
func (w *waiter) wait(ctx context.Context) (at time.Time, err error) {
	e := w.place.e
	var enough <-chan time.Time
	if w.patience > 0 {
		timer := time.NewTimer(w.patience)
		defer timer.Stop()
		enough = timer.C
	}
	if !w.ahead {
		if w.line.length.Add(1) > longLine && w.patience > 0 {
			w.line.length.Add(-1)
			return e.estimate().Add(w.patience), nil
		}
		defer w.line.length.Add(-1)
		select {
		case w.line.front <- struct{}{}:
		default:
			w.waited = true
			select {
			case w.line.front <- struct{}{}:
			case <-enough:
				return e.estimate().Add(w.patience), nil
			case <-ctx.Done():
				return at, ctx.Err()
			case <-e.ctx.Done():
				return at, errClosed
			}
		}
		defer func() { <-w.line.front }()
	}
	for {
		got, err := w.place.take(ctx)
		if err != nil || got.Taken {
			return time.Time{}, err
		}
		w.waited = true
		timer := time.NewTimer(max(got.At.Sub(e.estimate()), time.Millisecond))
		select {
		case <-timer.C:
		case <-w.line.freed:
		case <-enough:
			timer.Stop()
			return got.At, nil
		case <-ctx.Done():
			timer.Stop()
			return at, ctx.Err()
		case <-e.ctx.Done():
			timer.Stop()
			return at, errClosed
		}
		timer.Stop()
	}
}
