package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-dev/semel"
)

// Limited is a Destination that must not be asked too often, or too often at
// once, by all workers together.
type Limited interface {
	Limit() semel.Limit
}

// placeLease is how long a place is kept for an attempt beyond its timeout.
const placeLease = 30 * time.Second

// shortly is how long a step of a run waits for a place before it frees its
// worker.
const shortly = 50 * time.Millisecond

// place takes a place under the destination's limit. A step of a run that must
// wait for one is suspended; other callers wait here until ctx ends.
func (p *pursuit) place(ctx context.Context) error {
	l, ok := p.limit()
	if !ok {
		return nil
	}
	runs, err := p.e.keeper()
	if err != nil {
		return err
	}
	if p.placed == (semel.ID{}) {
		p.placed = p.e.newID()
	}
	lease := p.call.Contract.Timeout + placeLease
	if p.call.Contract.Timeout == 0 {
		lease = time.Hour
	}
	for {
		got, err := runs.Acquire(ctx, l, p.placed, lease)
		if err != nil || got.Taken {
			return err
		}
		pause := got.At.Sub(p.e.estimate())
		if p.branch != nil && pause > shortly {
			p.branch.suspend(semel.RunWait{Path: p.path, Kind: semel.WaitTime, Until: got.At, Reason: fmt.Sprintf("step %s waits for a place at %s, which is limited", p.path, l.Name)})
		}
		timer := time.NewTimer(max(pause, time.Millisecond))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// leave gives the place back.
func (p *pursuit) leave() {
	l, ok := p.limit()
	if !ok || p.placed == (semel.ID{}) || l.AtOnce == 0 {
		return
	}
	runs, err := p.e.keeper()
	if err == nil {
		err = runs.Release(context.Background(), l, p.placed)
	}
	if err != nil {
		p.e.log.Warn("give back a place", "limit", l.Name, "err", err)
	}
	p.placed = semel.ID{}
}

func (p *pursuit) limit() (semel.Limit, bool) {
	d, ok := p.call.Destination.(Limited)
	if !ok {
		return semel.Limit{}, false
	}
	l := d.Limit()
	return l, !l.Zero()
}
