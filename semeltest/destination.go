package semeltest

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-dev/semel"
)

// destination is the simulated destination of one action.
type destination struct {
	world  *World
	action string
}

var (
	_ semel.Destination = destination{}
	_ semel.Looker      = destination{}
)

// Send does what the script says, as the operation's contract allows.
func (d destination) Send(ctx context.Context, s *semel.Send) semel.Event {
	now, err := d.world.store.Now(ctx)
	if err == nil {
		err = s.Begin()
	}
	if err != nil {
		return semel.Event{Kind: semel.EvRefused, Reason: err.Error()}
	}
	d.world.mu.Lock()
	defer d.world.mu.Unlock()
	return d.world.receive(d.action, s, now)
}

// receive takes one request.
func (w *World) receive(action string, s *semel.Send, now time.Time) semel.Event {
	o := s.Operation
	got := Sent{
		Action: action, Scope: o.Scope, Key: o.Key, DestinationKey: s.DestinationKey,
		Attempt: s.Attempt, Request: o.Request, At: now,
	}
	a := w.answer(action, o.Key)
	before := w.recognised(&got, o.Contract)
	switch {
	case before != nil:
		got.result = before.result
	case a.happens():
		got.Happened = true
		got.result, _ = a.result() // OnKey encoded it before
		if got.result.Reference == "" {
			got.result.Reference = fmt.Sprintf("%s-%d", action, len(w.sent)+1)
		}
	}
	w.sent = append(w.sent, got)
	return a.evidence(got.result)
}

// recognised is the effect that a destination with this contract had under the
// same key before, and does not repeat.
func (w *World) recognised(got *Sent, c semel.Contract) *Sent {
	switch c.Protection {
	case semel.Keyed, semel.Commutes, semel.Absolute, semel.Transactional:
	case semel.Lookup, semel.Unprotected:
		return nil
	}
	for i := range w.sent {
		s := &w.sent[i]
		if !s.Happened || s.DestinationKey != got.DestinationKey {
			continue
		}
		if c.Protection != semel.Keyed || got.At.Before(s.At.Add(c.Window)) {
			return s
		}
	}
	return nil
}

// Look finds what is visible by now.
func (d destination) Look(ctx context.Context, s *semel.Send) semel.Event {
	now, err := d.world.store.Now(ctx)
	if err != nil {
		return semel.Event{Kind: semel.EvNoAnswer, Reason: err.Error()}
	}
	d.world.mu.Lock()
	defer d.world.mu.Unlock()
	o := s.Operation
	for _, e := range d.world.sent {
		if e.Happened && e.Scope == o.Scope && e.Key == o.Key && !now.Before(e.At.Add(o.Contract.VisibleAfter)) {
			return semel.Event{Kind: semel.EvFound, Result: &e.result}
		}
	}
	return semel.Event{Kind: semel.EvAbsent, Reason: "not found"}
}
