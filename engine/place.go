package engine

import (
	"context"
	"sync"
	"time"

	"github.com/semel-dev/semel"
)

// place is a place under a limit. Until it is given back, its lease is renewed:
// it outlasts the claim of its attempt, and with it the time for sending.
type place struct {
	e      *Engine
	keeper places
	limit  semel.Limit
	holder semel.ID

	mu    sync.Mutex // one answer of the store at a time: no renewal takes a place that was left
	timer *time.Timer
	over  bool
}

// lease of a place: twice that of a claim, since the place comes first and is
// renewed as often.
func (s *place) lease() time.Duration {
	if s.limit.AtOnce == 0 {
		return time.Second // its beginning counts, and nothing else
	}
	return 2 * s.e.opt.Lease
}

// take asks the store once. A caller who leaves does not leave the place
// behind; one whose taking could not be confirmed lapses.
func (s *place) take(ctx context.Context) (semel.Place, error) {
	if err := ctx.Err(); err != nil {
		return semel.Place{}, err
	}
	patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.e.opt.Patience)
	defer cancel()
	got, err := s.keeper.Acquire(patient, s.limit, s.holder, s.lease())
	if err != nil || !got.Taken || s.limit.AtOnce == 0 {
		return got, err
	}
	s.mu.Lock()
	s.timer = time.AfterFunc(s.e.opt.Lease/3, s.renew)
	s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		s.leave()
		return semel.Place{}, err
	}
	return got, nil
}

// renew extends the lease. An attempt whose place is lost all the same goes on:
// what was sent cannot be taken back.
func (s *place) renew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.e.opt.Lease)
	defer cancel()
	if _, err := s.keeper.Acquire(ctx, s.limit, s.holder, s.lease()); err != nil {
		s.e.log.Warn("keep a place", "limit", s.limit.Name, "err", err)
	}
	s.timer.Reset(s.e.opt.Lease / 3)
}

// leave gives the place back, once, and lets the next one of this engine ask.
// Leaving no place does nothing.
func (s *place) leave() {
	if s == nil || s.timer == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.over = true
	s.timer.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), s.e.opt.Patience)
	defer cancel()
	if err := s.keeper.Release(ctx, s.limit, s.holder); err != nil {
		s.e.log.Warn("give back a place", "limit", s.limit.Name, "err", err)
	}
	s.e.lines.of(s.limit.Name).next()
}
