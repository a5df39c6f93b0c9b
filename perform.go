package semel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Perform makes an Effect of a Go function, for example a call of a
// provider's client library. The function gets the input as the first claim
// recorded it, and must pass s.DestinationKey on where the provider takes a
// key. A nil error is a confirmation, an error made by NoEffect says that
// nothing happened, and every other error leaves the outcome unknown. Switch
// the library's own retries off: Semel counts attempts.
func Perform[In, Out any](c Contract, fn func(ctx context.Context, s *Send, in In) (Out, error)) Effect[In, Out] {
	return Effect[In, Out]{Contract: c, Destination: performer(func(ctx context.Context, s *Send) Event {
		var in In
		if err := json.Unmarshal(s.Operation.Request.Body, &in); err != nil {
			return Event{Kind: EvRefused, Reason: "the recorded input cannot be read: " + err.Error()}
		}
		if err := s.Begin(); err != nil {
			return Event{Kind: EvRefused, Reason: err.Error()}
		}
		out, err := fn(ctx, s, in)
		var none *noEffectError
		switch {
		case errors.As(err, &none):
			return Event{Kind: EvRefused, Reason: none.Error()}
		case err != nil:
			return Event{Kind: EvLost, Reason: err.Error()}
		}
		body, err := json.Marshal(out)
		if err != nil {
			return Event{Kind: EvConfirmed, Reason: fmt.Sprintf("the answer could not be kept: %v", err)}
		}
		return Event{Kind: EvConfirmed, Result: &Result{MediaType: "application/json", Body: body}}
	})}
}

type performer func(context.Context, *Send) Event

func (p performer) Send(ctx context.Context, s *Send) Event { return p(ctx, s) }

type noEffectError struct{ err error }

func (e *noEffectError) Error() string { return e.err.Error() }
func (e *noEffectError) Unwrap() error { return e.err }

// NoEffect marks an error as evidence that nothing happened, and never will
// because of this attempt. Use it only for answers that say so, such as a
// rejected input. NoEffect(nil) is nil.
func NoEffect(err error) error {
	if err == nil {
		return nil
	}
	return &noEffectError{err}
}
