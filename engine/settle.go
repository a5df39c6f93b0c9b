package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-dev/semel"
)

// Settlement is a person's decision about an operation that no machine can
// settle.
type Settlement struct {
	Happened  bool
	Reason    string        // required: why this person knows
	Reference string        // where the proof is
	Result    *semel.Result // the answer, for an operation that happened
	By        string        // required: who decided
	IfVersion int           // refuse unless the operation is at this version; 0 for any
	Force     bool          // override the time that "did not happen" needs
	NewKey    bool          // the next attempt uses a new destination key
}

// SettledError says that the operation was settled before: the first decision
// stands.
type SettledError struct {
	Operation semel.Operation
	Last      semel.Event // the evidence that settled it
}

func (e *SettledError) Error() string {
	s := "it was settled before: " + e.Operation.State.Words()
	if e.Last.Kind != "" {
		s += fmt.Sprintf(" (%s at %s by %s", e.Last.Kind, e.Last.At.Format(time.RFC3339), e.Last.By)
		if e.Last.Reason != "" {
			s += ": " + e.Last.Reason
		}
		s += ")"
	}
	return s + "; this changed nothing"
}

// Settle records a person's decision. An open incident is closed by it. It
// fails with *SettledError when there is nothing to settle, with
// *semel.InputError for an incomplete or too early decision, and with the
// store's errors; then nothing was changed, unless the error wraps
// semel.ErrUnconfirmed: asking again tells.
func (e *Engine) Settle(ctx context.Context, id semel.ID, s Settlement) (semel.Operation, error) {
	if s.Reason == "" || s.By == "" {
		return semel.Operation{}, &semel.InputError{Field: "reason", Problem: "is missing", Hint: "say who decides and why: it is the evidence"}
	}
	for {
		o, err := e.store.LoadID(ctx, id)
		if err != nil {
			return o, err
		}
		settled, err := e.settle(ctx, o, s)
		if !errors.Is(err, semel.ErrStale) || ctx.Err() != nil {
			return settled, err
		}
	}
}

func (e *Engine) settle(ctx context.Context, o semel.Operation, s Settlement) (semel.Operation, error) {
	if s.IfVersion != 0 && s.IfVersion != o.Version {
		return o, &semel.InputError{
			Field: "version", Problem: fmt.Sprintf("is %d, not %d: something was recorded meanwhile", o.Version, s.IfVersion),
			Hint: "look at it again, then decide",
		}
	}
	now, err := e.now(ctx)
	if err != nil {
		return o, err
	}
	if o.State == semel.InProgress && o.StateAt(now) == semel.Unknown {
		if o, err = e.lapse(ctx, o); err != nil {
			return o, err
		}
	}
	ev := semel.Event{Kind: semel.EvDidNotHappen, By: s.By, Reason: s.Reason, Reference: s.Reference, Force: s.Force, NewKey: s.NewKey}
	correction := semel.Failed
	if s.Happened {
		ev.Kind, ev.Result, correction = semel.EvHappened, s.Result, semel.Completed
		if ev.Result != nil && ev.Result.Reference == "" {
			ev.Result.Reference = s.Reference
		}
	}
	switch {
	case o.State == semel.InProgress:
		return o, &semel.InputError{Field: "operation", Problem: "is in progress", Hint: "wait for its answer, at the latest until " + o.LeaseUntil.Format(time.RFC3339)}
	case o.State != semel.Unknown && o.Incident == "":
		return o, e.settledBefore(ctx, o)
	case !s.Happened && !s.Force && now.Before(o.QuietAt()):
		return o, &semel.InputError{
			Field: "did-not-happen", Problem: "is too early: the request may still be running until " + o.QuietAt().Format(time.RFC3339),
			Hint: "wait until then, or override it with --force and a reason",
		}
	}
	if o.Incident != "" {
		ev.Kind, ev.Correction = semel.EvIncident, correction
	}
	return e.commit(ctx, o, ev, e.newID())
}

func (e *Engine) settledBefore(ctx context.Context, o semel.Operation) error {
	events, err := e.store.Events(ctx, o.ID)
	if err != nil {
		return err
	}
	out := &SettledError{Operation: o}
	for _, ev := range events {
		if ev.Kind != semel.EvJoined {
			out.Last = ev
		}
	}
	return out
}

// Cancel asks that the operation stop. What was sent stays sent: the operation
// is cancelled only when its attempt confirms that it sent nothing.
func (e *Engine) Cancel(ctx context.Context, id semel.ID, by, reason string) (semel.Operation, error) {
	for {
		o, err := e.store.LoadID(ctx, id)
		if err != nil {
			return o, err
		}
		if o.State != semel.InProgress && o.State != semel.Unknown {
			return o, e.settledBefore(ctx, o)
		}
		next, err := e.commit(ctx, o, semel.Event{Kind: semel.EvCancelAsked, By: by, Reason: reason}, e.newID())
		if !errors.Is(err, semel.ErrStale) || ctx.Err() != nil {
			return next, err
		}
	}
}
