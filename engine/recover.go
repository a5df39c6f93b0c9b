package engine

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/semel-dev/semel"
)

// How many operations recovery takes in one look, how many it works on at a
// time, and how long it rests when nothing is due.
const (
	dueBatch  = 100
	atOnce    = 16
	dueRest   = 250 * time.Millisecond
	skipLater = time.Minute // an operation whose destination this engine does not know
	skipSoon  = time.Second // one that the store could not take just now

	upkeepEvery = 5 * time.Second
	expireBatch = 1000
)

// expirer is a store that can turn settled operations into tombstones.
type expirer interface {
	// Expire drops body and result of up to limit operations that were settled
	// before the given time and returns how many it took. Unknown outcomes and
	// open incidents never expire.
	Expire(ctx context.Context, before time.Time, limit int) (int, error)
}

// upkeep takes in evidence that was spooled meanwhile, and lets expire what
// the store need not keep.
func (e *Engine) upkeep(ctx context.Context) {
	if err := e.ingest(ctx); err != nil && ctx.Err() == nil {
		e.log.Warn("spool", "err", err)
	}
	store, ok := e.store.(expirer)
	if !ok || e.opt.Forget == 0 {
		return
	}
	now, err := e.now(ctx)
	if err == nil {
		_, err = store.Expire(ctx, now.Add(-e.opt.Forget), expireBatch)
	}
	if err != nil && ctx.Err() == nil {
		e.log.Warn("let records expire", "err", err)
	}
}

// Run recovers what is due until ctx ends: unknown operations by resending or
// lookup, as Decide says, and claims whose worker stopped reporting. Any
// number of engines may run over one store.
func (e *Engine) Run(ctx context.Context) error {
	skip := map[semel.ID]time.Time{}
	upkeep := time.Now()
	for ctx.Err() == nil && e.ctx.Err() == nil {
		if now := time.Now(); !now.Before(upkeep) {
			upkeep = now.Add(upkeepEvery)
			e.upkeep(ctx)
		}
		n, err := e.recoverDue(ctx, skip)
		if err != nil && ctx.Err() == nil {
			e.log.Warn("look for due operations", "err", err)
		}
		if n == dueBatch {
			continue
		}
		timer := time.NewTimer(dueRest)
		select {
		case <-timer.C:
		case <-ctx.Done():
		case <-e.ctx.Done():
		}
		timer.Stop()
	}
	return ctx.Err()
}

// Recover makes one pass over what is due now and returns how many operations
// it looked at.
func (e *Engine) Recover(ctx context.Context) (int, error) {
	return e.recoverDue(ctx, map[semel.ID]time.Time{})
}

func (e *Engine) recoverDue(ctx context.Context, skip map[semel.ID]time.Time) (int, error) {
	now := time.Now()
	maps.DeleteFunc(skip, func(_ semel.ID, until time.Time) bool { return !now.Before(until) })
	due, err := e.store.Due(ctx, dueBatch+len(skip)) // what is skipped never hides the rest
	if err != nil {
		return 0, err
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	slots := make(chan struct{}, atOnce)
	worked := 0
	for _, o := range due {
		mu.Lock()
		_, skipped := skip[o.ID]
		mu.Unlock()
		if skipped {
			continue
		}
		worked++
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			err := e.recoverOne(ctx, o)
			if err == nil || errors.Is(err, semel.ErrStale) {
				return
			}
			if crowded, ok := errors.AsType[*crowdedError](err); ok {
				mu.Lock()
				defer mu.Unlock()
				skip[o.ID] = time.Now().Add(crowded.at.Sub(e.estimate()))
				return
			}
			e.log.Warn("recover", "operation", o.ID, "scope", o.Scope, "key", o.Key, "err", err)
			rest := skipLater
			if errors.Is(err, semel.ErrUnavailable) || errors.Is(err, semel.ErrUnconfirmed) {
				rest = skipSoon // a window may end while the store is away
			}
			mu.Lock()
			defer mu.Unlock()
			skip[o.ID] = time.Now().Add(rest)
		})
	}
	wg.Wait()
	return worked, nil
}

func (e *Engine) recoverOne(ctx context.Context, o semel.Operation) error {
	now, err := e.now(ctx)
	if err != nil {
		return err
	}
	if o.State == semel.InProgress && o.StateAt(now) == semel.Unknown {
		if o, err = e.lapse(ctx, o); err != nil {
			return err
		}
	}
	if o.State != semel.Unknown || o.CheckAt.IsZero() || o.CheckAt.After(now) {
		return nil
	}
	resolve := e.resolver()
	if resolve == nil {
		return nil
	}
	d, current, err := resolve(&o)
	if err != nil {
		return err
	}
	p := &pursuit{e: e, recovers: true, call: &semel.Call{Scope: o.Scope, Key: o.Key, Request: o.Request, Contract: current, Destination: d}}
	defer p.leave()
	contract := o.Contract.Stricter(current)
	move := semel.Decide(&o, contract, now)
	switch move.Kind {
	case semel.MoveResend:
		if move.Caller || move.At.After(now) {
			return nil
		}
		if _, err := p.place(ctx); err != nil {
			return err
		}
		claimed, held, err := p.claim(ctx, o, contract, e.newID())
		if errors.Is(err, semel.ErrNotApproved) {
			_, err = e.commit(ctx, o, semel.Event{Kind: semel.EvLost, Attempt: o.Attempt, By: e.opt.Name, Unapproved: true, Reason: "its approval has ended, so nothing is sent again"}, e.newID())
			return err
		}
		if err != nil {
			return err
		}
		_, err = p.attempt(ctx, claimed, held)
		return err
	case semel.MoveLookup:
		if move.Caller || move.At.After(now) {
			return nil
		}
		_, err := e.look(ctx, o, contract, d, nil)
		return err
	case semel.MovePerson:
		// The contract became stricter than the one it was claimed with: stop asking.
		_, err := e.commit(ctx, o, semel.Event{Kind: semel.EvLost, Attempt: o.Attempt, By: e.opt.Name, Person: true, Reason: move.Reason}, e.newID())
		return err
	case semel.MoveSend, semel.MoveWait, semel.MoveDone:
	}
	return nil
}

// Retry does what is safe now for one operation, because a person asks: who
// may also start again what was cancelled before it was sent. What is not safe
// is refused: StatusUnsafe, with the reason in Next.
func (e *Engine) Retry(ctx context.Context, id semel.ID, source string) (semel.Outcome, error) {
	o, err := e.store.LoadID(ctx, id)
	if err != nil {
		return semel.Outcome{}, &semel.NotAskedError{Err: err}
	}
	notAsked := func(err error) (semel.Outcome, error) {
		return semel.Outcome{}, &semel.NotAskedError{Scope: o.Scope, Key: o.Key, Err: err}
	}
	resolve := e.resolver()
	if resolve == nil {
		return notAsked(errors.New("this engine knows no destinations"))
	}
	d, current, err := resolve(&o)
	if err != nil {
		return notAsked(err)
	}
	p := &pursuit{e: e, person: true, call: &semel.Call{Scope: o.Scope, Key: o.Key, Request: o.Request, Contract: current, Destination: d, Source: source}}
	defer p.leave()
	out, err := p.follow(ctx)
	if err != nil {
		return notAsked(err)
	}
	if !p.sent && !p.looked && (out.Status == semel.StatusUnknown || out.Status == semel.StatusFailed || out.Status == semel.StatusInProgress) {
		out.Status = semel.StatusUnsafe
	}
	return out, nil
}
