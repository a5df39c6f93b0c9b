package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/semel-dev/semel"
)

// maxJoins is how many absorbed requests an operation records one by one.
const maxJoins = 20

// Do performs c, or hands back what is known about it. The error is always
// *semel.NotAskedError: this call sent nothing. When ctx ends, an attempt
// under way goes on until it is recorded, and Do returns what is known now.
func (e *Engine) Do(ctx context.Context, c semel.Call) (semel.Outcome, error) {
	if c.Scope == "" {
		c.Scope = semel.ActionScope(e.opt.Tenant, c.Request.Connection, c.Action)
	}
	notAsked := func(err error) (semel.Outcome, error) {
		return semel.Outcome{}, &semel.NotAskedError{Scope: c.Scope, Key: c.Key, Err: err}
	}
	id, err := e.identify(&c)
	if err != nil {
		return notAsked(err)
	}
	if expired, err := e.forgotten(ctx, &c); err != nil {
		return notAsked(err)
	} else if expired {
		return semel.Outcome{Status: semel.StatusExpired, Operation: semel.Operation{Identity: id}}, nil
	}
	p := &pursuit{e: e, call: &c}
	defer p.leave()
	out, err := p.first(ctx, semel.Operation{Identity: id})
	if err != nil {
		return notAsked(err)
	}
	if out.Status != semel.StatusConflict && out.Operation.Attempt == 1 && !out.Replayed {
		out.Warnings = append(out.Warnings, e.regenerated(ctx, &out.Operation)...)
	}
	return out, nil
}

// identify checks the call and gives it its identity.
func (e *Engine) identify(c *semel.Call) (semel.Identity, error) {
	if err := errors.Join(c.Scope.Validate(), c.Key.Validate()); err != nil {
		return semel.Identity{}, err
	}
	if err := c.Contract.Validate(); err != nil {
		return semel.Identity{}, err
	}
	if c.Destination == nil {
		return semel.Identity{}, &semel.InputError{Field: "destination", Problem: "is missing", Hint: "say how the effect is sent"}
	}
	fp, err := c.Request.Fingerprint()
	if err != nil {
		return semel.Identity{}, err
	}
	return semel.Identity{ID: e.newID(), Scope: c.Scope, Key: c.Key, Fingerprint: fp, Request: c.Request, Contract: c.Contract}, nil
}

// forgotten reports whether the key was minted before the store's memory
// begins and is not on record: nobody can tell whether it was used.
func (e *Engine) forgotten(ctx context.Context, c *semel.Call) (bool, error) {
	if e.opt.Forget == 0 {
		return false, nil
	}
	minted, ok := c.Key.MintedAt()
	if !ok || minted.After(e.estimate().Add(-e.opt.Forget)) {
		return false, nil
	}
	_, err := e.store.Load(ctx, c.Scope, c.Key)
	if errors.Is(err, semel.ErrNotFound) {
		return true, nil
	}
	return false, err
}

// pursuit is one request on its way through an operation's states.
type pursuit struct {
	e      *Engine
	call   *semel.Call
	person bool // a person asks, and may start what was cancelled
	looked bool // this request has asked the destination
	sent   bool // this request has made an attempt

	recovers bool   // nobody asks: what is due is sent again
	seat     *place // under the destination's limit, for the next attempt

	// For a step of a run.
	branch   *branch
	path     string
	approval *semel.Approval
}

// first claims a new operation without reading: if the identity exists, the
// store says so.
func (p *pursuit) first(ctx context.Context, o semel.Operation) (semel.Outcome, error) {
	known, err := p.onRecord(ctx)
	if err != nil {
		return semel.Outcome{}, err
	}
	if known {
		return p.follow(ctx)
	}
	if _, err := p.place(ctx); err != nil {
		return semel.Outcome{}, err
	}
	claimed, held, err := p.claim(ctx, o, o.Contract, semel.ID{})
	if errors.Is(err, semel.ErrStale) {
		p.leave()
		return p.follow(ctx)
	}
	if err != nil {
		return semel.Outcome{}, err
	}
	return p.attempt(ctx, claimed, held)
}

// follow reads the operation and does the next safe thing, until nothing safe
// is left to do.
func (p *pursuit) follow(ctx context.Context) (semel.Outcome, error) {
	waitUntil := time.Now().Add(p.call.Wait)
	for {
		o, err := p.e.store.Load(ctx, p.call.Scope, p.call.Key)
		if err != nil {
			return semel.Outcome{}, err
		}
		out, again, err := p.step(ctx, o, waitUntil)
		if errors.Is(err, semel.ErrStale) {
			if ctx.Err() != nil {
				return semel.Outcome{}, ctx.Err()
			}
			continue
		}
		if err != nil && p.sent {
			return p.unrecorded(o, err), nil
		}
		if err != nil || !again {
			return out, err
		}
	}
}

// step does one move. again: the operation changed, decide anew.
func (p *pursuit) step(ctx context.Context, o semel.Operation, waitUntil time.Time) (out semel.Outcome, again bool, err error) {
	if fields, same := p.same(&o); !same {
		return semel.Outcome{Status: semel.StatusConflict, Operation: o, Fields: fields}, false, nil
	}
	now, err := p.e.now(ctx)
	if err != nil {
		return semel.Outcome{}, false, err
	}
	if o.State == semel.InProgress && o.StateAt(now) == semel.Unknown {
		_, err := p.e.lapse(ctx, o)
		return semel.Outcome{}, err == nil, err
	}
	contract := o.Contract.Stricter(p.call.Contract)
	contract.OnFailed = p.call.Contract.OnFailed
	move := semel.DecideAsked(&o, contract, now)
	out = semel.Outcome{Status: semel.Status(o.State), Operation: o, Next: move, Replayed: !p.sent}
	switch {
	case o.Incident != "":
		out.Status = semel.StatusIncident
		return out, false, nil
	case o.Expired:
		out.Status = semel.StatusExpired
		return out, false, nil
	}
	switch move.Kind {
	case semel.MoveWait:
		p.leave()
		again, err := p.wait(ctx, &o, waitUntil)
		out.Replayed = false
		return out, again, err
	case semel.MoveSend, semel.MoveResend:
		if p.sent || !p.canSend(&o) {
			return out, false, nil
		}
		return p.again(ctx, o, contract)
	case semel.MoveLookup:
		if p.looked || p.sent {
			return out, false, nil
		}
		p.leave()
		p.looked = true
		_, err := p.e.look(ctx, o, contract, p.call.Destination, p.call.Withheld)
		return out, err == nil, err
	case semel.MoveDone:
		if o.State == semel.Completed && !p.sent {
			p.e.join(ctx, o, p.call.Source)
		}
	case semel.MovePerson:
		if p.person && o.State == semel.Failed && !p.sent && p.canSend(&o) {
			return p.again(ctx, o, contract) // what was cancelled, a person may start
		}
	}
	return out, false, nil
}

// again claims the next attempt and sends, unless that had to wait.
func (p *pursuit) again(ctx context.Context, o semel.Operation, c semel.Contract) (semel.Outcome, bool, error) {
	if waited, err := p.place(ctx); err != nil || waited {
		return semel.Outcome{}, true, err
	}
	claimed, held, err := p.claim(ctx, o, c, p.e.newID())
	if err != nil {
		return semel.Outcome{}, false, err
	}
	out, err := p.attempt(ctx, claimed, held)
	return out, false, err
}

// same reports whether the call asks for what the operation is bound to.
func (p *pursuit) same(o *semel.Operation) ([]string, bool) {
	fp, err := p.call.Request.Fingerprint()
	if err != nil || fp != o.Fingerprint {
		if fields := o.Request.Diff(&p.call.Request); len(fields) > 0 {
			return fields, false
		}
		return []string{"request"}, false
	}
	return nil, true
}

// canSend reports whether this caller brought every header that is needed and
// not stored.
func (p *pursuit) canSend(o *semel.Operation) bool {
	return !slices.ContainsFunc(o.Request.Withheld, func(name string) bool {
		_, ok := p.call.Withheld[name]
		return !ok
	})
}

// wait waits for the attempt that somebody else is running; again is false
// when the time is up.
func (p *pursuit) wait(ctx context.Context, o *semel.Operation, until time.Time) (again bool, err error) {
	left := time.Until(until)
	if left <= 0 {
		return false, nil
	}
	timer := time.NewTimer(min(left, 100*time.Millisecond))
	defer timer.Stop()
	select {
	case <-p.e.flights.landed(o.ID):
		return true, nil
	case <-timer.C:
		return true, nil
	case <-ctx.Done():
		return false, nil
	}
}

// unrecorded is the outcome of a request that sent, and cannot say more.
func (p *pursuit) unrecorded(o semel.Operation, err error) semel.Outcome {
	o.State, o.Reason = semel.Unknown, "it was sent; "+err.Error()
	return semel.Outcome{Status: semel.StatusUnknown, Operation: o, Next: semel.Decide(&o, o.Contract, p.e.estimate())}
}

// lapse records that the lease of the current attempt is over.
func (e *Engine) lapse(ctx context.Context, o semel.Operation) (semel.Operation, error) {
	return e.commit(ctx, o, semel.Event{
		Kind: semel.EvLapsed, Attempt: o.Attempt, By: e.opt.Name,
		Reason: "the worker that sent it stopped reporting; it may have happened",
	}, e.newID())
}

// join records that the operation absorbed a request, as far as that costs
// nothing but a write: losing the record loses no effect.
func (e *Engine) join(ctx context.Context, o semel.Operation, source string) semel.Operation {
	if o.Joined >= maxJoins {
		return o
	}
	if source == "" {
		source = e.opt.Name
	}
	joined, err := e.commit(ctx, o, semel.Event{Kind: semel.EvJoined, By: source}, e.newID())
	if err != nil && !errors.Is(err, semel.ErrStale) {
		e.log.Warn("record of an absorbed request", "operation", o.ID, "err", err)
	}
	return joined
}
