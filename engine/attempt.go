package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-dev/semel"
)

// freshClaim is how long after a claim the pre-send check needs no look at the
// store: the claim itself tested the cancel request.
const freshClaim = time.Second

// grace is how long past its timeout a destination may take to say so.
const grace = 2 * time.Second

var (
	errTooLate   = errors.New("the time for sending was over")
	errFenced    = errors.New("the claim was lost")
	errCancelled = errors.New("it was cancelled")
	errPaused    = errors.New("the run was paused")
	errTwice     = errors.New("one attempt may send only once")
	errNotKept   = errors.New("what came before it in the run could not be recorded")
)

// claim commits the next attempt under contract c. The returned held counts
// its deadline from before the store was asked.
func (p *pursuit) claim(ctx context.Context, o semel.Operation, c semel.Contract, token semel.ID) (semel.Operation, *held, error) {
	h := &held{e: p.e, from: p.e.clock()}
	by := p.call.Source
	if by == "" {
		by = p.e.opt.Name
	}
	ev := semel.Event{
		Kind: semel.EvClaimed, Attempt: o.Attempt + 1, By: by, Token: token, Lease: p.e.opt.Lease, SendWithin: p.e.opt.Lease, Force: p.person,
		Approval: o.Approval, ApprovedUntil: o.ApprovedUntil,
	}
	if a := p.approval; a != nil {
		ev.Approval, ev.ApprovedUntil = a.ID, a.Until
	}
	if o.State == semel.Unknown && c.Protection == semel.Keyed {
		ev.SendWithin = min(ev.SendWithin, o.WindowEnd(c).Sub(p.e.estimate()))
	}
	change := token
	if o.Attempt == 0 {
		change = o.ID
	}
	// A caller who leaves does not leave the claim in doubt.
	patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.e.opt.Patience)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return o, nil, err
	}
	claimed, err := p.commitClaim(patient, o, ev, change)
	if errors.Is(err, semel.ErrUnconfirmed) {
		p.disown(o, ev, change)
	}
	if err != nil {
		return o, nil, err
	}
	if err := ctx.Err(); err != nil {
		_, _, recordErr := p.e.conclude(claimed, semel.Event{
			Kind: semel.EvRefused, Attempt: claimed.Attempt, By: by,
			Reason: "the caller left before anything was sent", Unsent: true,
		})
		return o, nil, errors.Join(err, recordErr)
	}
	a := claimed.Attempts[len(claimed.Attempts)-1]
	h.op, h.attempt = claimed.ID, a.Number
	h.sendBy = h.from.Add(a.SendBy.Sub(a.ClaimedAt))
	h.until.set(h.from.Add(p.e.opt.Lease))
	if p.branch != nil {
		h.stop = p.branch.stopping
	}
	return claimed, h, nil
}

// commitClaim commits a claim; that of a run's step together with what the run
// has to record.
func (p *pursuit) commitClaim(ctx context.Context, o semel.Operation, ev semel.Event, token semel.ID) (semel.Operation, error) {
	if p.branch == nil {
		return p.e.commit(ctx, o, ev, token)
	}
	ev.At = p.e.estimate()
	change, err := o.Change(ev, token)
	if err != nil {
		return o, err
	}
	claimed, err := p.branch.claim(ctx, change)
	if err == nil {
		p.e.offset.Store(int64(claimed.UpdatedAt.Sub(p.e.clock())))
	}
	return claimed, err
}

// disown puts on record that an attempt whose claim may have been committed
// sent nothing.
func (p *pursuit) disown(o semel.Operation, ev semel.Event, token semel.ID) {
	if p.e.opt.Spool == nil {
		return
	}
	err := p.e.opt.Spool.Put(semel.Evidence{
		ID: o.ID, Scope: o.Scope, Key: o.Key, Token: token,
		Event: semel.Event{Kind: semel.EvRefused, Attempt: ev.Attempt, By: ev.By, Reason: "the claim could not be confirmed, so nothing was sent", Unsent: true},
	})
	if err != nil {
		p.e.log.Error("spool", "operation", o.ID, "err", err)
	}
}

// held is a claim in the hands of the worker that made it.
type held struct {
	e       *Engine
	op      semel.ID
	attempt int
	from    time.Time // before the claim was asked for
	sendBy  time.Time // the last moment for the first byte
	until   deadline  // the end of the lease
	begun   atomic.Bool
	fenced  atomic.Bool
	cancel  atomic.Bool
	stop    func() error // why the run that asks must not send, if it must not
	seat    *place       // what the attempt gives back when it is over
	mu      sync.Mutex
	timer   *time.Timer
	over    bool
}

// begin is the check immediately before the first byte.
func (h *held) begin() error {
	if h.e.clock().Sub(h.from) > freshClaim && h.attempt > 0 {
		h.renew()
	}
	if h.stop != nil {
		if err := h.stop(); err != nil {
			return err
		}
	}
	switch {
	case h.fenced.Load():
		return errFenced
	case h.cancel.Load():
		return errCancelled
	case over(h.sendBy, h.e.clock()) || h.until.over(h.e.clock()):
		return errTooLate
	case h.begun.Swap(true):
		return errTwice
	}
	return nil
}

// keep renews the lease until release.
func (h *held) keep() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.timer = time.AfterFunc(h.e.opt.Lease/3, func() {
		h.renew()
		h.mu.Lock()
		defer h.mu.Unlock()
		if !h.over && !h.fenced.Load() {
			h.timer.Reset(h.e.opt.Lease / 3)
		}
	})
}

func (h *held) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	h.timer.Stop()
}

func (h *held) renew() {
	asked := h.e.clock()
	ctx, cancel := context.WithTimeout(context.Background(), h.e.opt.Lease)
	defer cancel()
	r, err := h.e.store.Renew(ctx, h.op, h.attempt, h.e.opt.Lease)
	switch {
	case errors.Is(err, semel.ErrStale), errors.Is(err, semel.ErrNotFound):
		h.fenced.Store(true)
	case err != nil:
		h.e.log.Warn("renew the lease", "operation", h.op, "err", err)
	default:
		h.until.set(asked.Add(h.e.opt.Lease))
		if r.Cancel {
			h.cancel.Store(true)
		}
	}
}

// attempt sends the claimed operation and records what came back.
func (p *pursuit) attempt(ctx context.Context, o semel.Operation, h *held) (semel.Outcome, error) {
	p.sent = true
	h.seat, p.seat = p.seat, nil
	landed := p.e.flights.start(o.ID)
	p.e.attempts.Add(1)
	if ctx.Done() == nil && o.Contract.Timeout == 0 {
		defer landed()
		return p.send(o, h), nil
	}
	return p.sendApart(ctx, o, h, landed), nil
}

// sendApart sends in a goroutine of its own, which goes on when the caller
// leaves.
func (p *pursuit) sendApart(ctx context.Context, o semel.Operation, h *held, landed func()) semel.Outcome {
	done := make(chan semel.Outcome, 1)
	go func() {
		defer landed()
		done <- p.send(o, h)
	}()
	select {
	case out := <-done:
		return out
	case <-ctx.Done():
		return semel.Outcome{
			Status: semel.StatusInProgress, Operation: o,
			Next: semel.Move{Kind: semel.MoveWait, At: o.LeaseUntil, Reason: "the attempt goes on; nobody waits for it here"},
		}
	}
}

// send performs the attempt and owns it until its evidence is recorded.
func (p *pursuit) send(o semel.Operation, h *held) semel.Outcome {
	defer p.e.attempts.Done()
	defer h.seat.leave()
	h.keep()
	defer h.release()
	ev := p.perform(o, h)
	if p.branch != nil {
		if after, ok := p.branch.postpone(o, ev, p.e.newID()); ok {
			return semel.Outcome{Status: semel.StatusCompleted, Operation: after}
		}
	}
	recorded, kept, err := p.e.conclude(o, ev)
	if err != nil {
		out := p.unrecorded(o, err)
		switch {
		case ev.Kind != semel.EvConfirmed:
		case kept:
			out.Operation.Reason = "the destination confirmed it, but that could not be recorded; the answer is kept and will be: " + err.Error()
		default:
			out.Operation.Result = ev.Result // the only copy there is
			out.Operation.Reason = "the destination confirmed it, but that could be neither recorded nor kept, so write this answer down: " + err.Error()
		}
		return out
	}
	recorded = p.checked(recorded)
	out := semel.Outcome{Status: semel.Status(recorded.State), Operation: recorded, Next: semel.DecideAsked(&recorded, recorded.Contract, p.e.estimate())}
	if recorded.Incident != "" {
		out.Status = semel.StatusIncident
	}
	return out
}

// checked asks the Check of a program that is gone without telling, since its
// word is proof now; other lookups need time.
func (p *pursuit) checked(o semel.Operation) semel.Operation {
	if o.State != semel.Unknown || o.Contract.Check == "" || o.Person || o.Incident != "" || o.Attempts[len(o.Attempts)-1].ClosedAt.IsZero() {
		return o
	}
	looked, err := p.e.look(p.e.ctx, o, o.Contract, p.call.Destination, p.call.Withheld)
	if err != nil {
		p.e.log.Warn("check", "operation", o.ID, "err", err)
		return o
	}
	return looked
}

// perform calls the destination. A destination that panics, answers something
// else than evidence, or does not come back in time has lost the attempt.
func (p *pursuit) perform(o semel.Operation, h *held) semel.Event {
	var refused error
	s := &semel.Send{
		Operation: &o, Attempt: o.Attempt, DestinationKey: o.DestinationKey(), Withheld: p.call.Withheld,
		Begin: func() error { refused = h.begin(); return refused },
	}
	late := func(ev semel.Event) {
		if h.attempt == 0 {
			return // an effect that commutes has no record, and is repeated
		}
		if _, _, err := p.e.conclude(o, evidence(ev, o.Attempt, p.e.opt.Name)); err != nil {
			p.e.log.Error("record late evidence", "operation", o.ID, "err", err)
		}
	}
	if p.e.opt.Late {
		s.Late = late
	}
	ev := p.transmit(s, late)
	if ev.Kind == semel.EvRefused && refused != nil {
		ev.Unsent = !errors.Is(refused, errTwice)
		if errors.Is(refused, errCancelled) {
			ev.Kind, ev.Reason = semel.EvCancelled, "it was cancelled before anything was sent"
		}
	}
	return evidence(ev, o.Attempt, p.e.opt.Name)
}

// evidence makes what a destination said into evidence about one attempt.
func evidence(ev semel.Event, attempt int, by string) semel.Event {
	switch ev.Kind {
	case semel.EvConfirmed, semel.EvRefused, semel.EvRetained, semel.EvLost, semel.EvCancelled:
	default:
		ev = semel.Event{Kind: semel.EvLost, Reason: fmt.Sprintf("the destination answered %q, which is no evidence", ev.Kind)}
	}
	ev.Attempt, ev.By = attempt, by
	return ev
}

// transmit waits for the destination, but not much longer than the contract's
// timeout; what comes after that is late evidence.
func (p *pursuit) transmit(s *semel.Send, late func(semel.Event)) semel.Event {
	c := &s.Operation.Contract
	if c.Timeout == 0 {
		return call(p.e.ctx, p.call.Destination, s)
	}
	answer := make(chan semel.Event)
	gaveUp := make(chan struct{})
	p.e.attempts.Go(func() {
		ev := call(p.e.ctx, p.call.Destination, s)
		select {
		case answer <- ev:
		case <-gaveUp:
			late(ev)
		}
	})
	timer := time.NewTimer(c.Timeout + max(c.WriteTimeout, semel.DefaultWriteTimeout) + grace)
	defer timer.Stop()
	select {
	case ev := <-answer:
		return ev
	case <-timer.C:
		close(gaveUp)
		return semel.Event{Kind: semel.EvLost, Reason: fmt.Sprintf("the destination did not come back within %v", c.Timeout)}
	}
}

func call(ctx context.Context, d semel.Destination, s *semel.Send) (ev semel.Event) {
	defer func() {
		if r := recover(); r != nil {
			ev = semel.Event{Kind: semel.EvLost, Reason: fmt.Sprintf("the destination's code panicked: %v", r)}
		}
	}()
	return d.Send(ctx, s)
}
