package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-dev/semel"
)

// conclude records evidence about an attempt, for as long as the engine's
// patience lasts, and then spools it: kept says that it is safe there.
func (e *Engine) conclude(o semel.Operation, ev semel.Event) (_ semel.Operation, kept bool, _ error) {
	ctx, cancel := context.WithTimeout(context.Background(), e.opt.Patience)
	defer cancel()
	recorded, err := e.record(ctx, o, ev)
	if err == nil || e.opt.Spool == nil {
		return recorded, false, err
	}
	token := o.Attempts[ev.Attempt-1].Token
	if put := e.opt.Spool.Put(semel.Evidence{ID: o.ID, Scope: o.Scope, Key: o.Key, Token: token, Event: ev}); put != nil {
		e.log.Error("spool", "operation", o.ID, "err", put)
		return o, false, errors.Join(err, put)
	}
	return o, true, err
}

// record commits evidence to the operation as it is now: whatever happened
// meanwhile, evidence is judged and never dropped. It tries until ctx ends.
func (e *Engine) record(ctx context.Context, o semel.Operation, ev semel.Event) (semel.Operation, error) {
	token := e.newID()
	pause := 5 * time.Millisecond
	for {
		next, err := e.commit(ctx, o, ev, token)
		if err == nil {
			return next, nil
		}
		var never *semel.TransitionError
		stale := errors.Is(err, semel.ErrStale)
		if errors.As(err, &never) || stale {
			now, loadErr := e.store.LoadID(ctx, o.ID)
			switch {
			case loadErr == nil && now.Version == o.Version && !stale:
				return o, err // the operation as it is cannot take it
			case loadErr == nil:
				o = now
				continue
			}
			err = loadErr
		}
		if ctx.Err() != nil {
			return o, fmt.Errorf("the store did not take it for %v: %w", e.opt.Patience, err)
		}
		pause = min(2*pause, time.Second)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return o, fmt.Errorf("the store did not take it: %w", err)
		}
	}
}

// look asks the destination what became of an operation and records what it
// said. c is the stricter of the contract it was claimed with and today's.
func (e *Engine) look(ctx context.Context, o semel.Operation, c semel.Contract, d semel.Destination, withheld map[string]string) (semel.Operation, error) {
	asked, err := e.now(ctx)
	if err != nil {
		return o, err
	}
	ev := semel.Event{Kind: semel.EvNoAnswer, Reason: "this destination cannot be asked"}
	if l, ok := d.(semel.Looker); ok {
		ev = lookup(ctx, l, &semel.Send{Operation: &o, Attempt: o.Attempt, DestinationKey: o.DestinationKey(), Withheld: withheld})
	}
	switch ev.Kind {
	case semel.EvFound, semel.EvAbsent, semel.EvNoAnswer:
	default:
		ev = semel.Event{Kind: semel.EvNoAnswer, Reason: fmt.Sprintf("the lookup answered %q, which is no evidence", ev.Kind)}
	}
	if ev.Kind == semel.EvAbsent && proves(&o, o.Contract, asked) && !proves(&o, c, asked) {
		ev = semel.Event{Kind: semel.EvNoAnswer, Reason: "not found, which under today's contract proves nothing yet"}
	}
	ev.AskedAt, ev.By = asked, e.opt.Name
	return e.record(ctx, o, ev)
}

// proves reports whether "not found", asked at a time, is proof under c.
func proves(o *semel.Operation, c semel.Contract, asked time.Time) bool {
	at, ok := o.ProofAt(c)
	return ok && !asked.Before(at)
}

func lookup(ctx context.Context, l semel.Looker, s *semel.Send) (ev semel.Event) {
	defer func() {
		if r := recover(); r != nil {
			ev = semel.Event{Kind: semel.EvNoAnswer, Reason: fmt.Sprintf("the lookup panicked: %v", r)}
		}
	}()
	return l.Look(ctx, s)
}
