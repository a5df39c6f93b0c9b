package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/semel-dev/semel"
)

// heldRun reads a run that the attempt holds. An execution that has ended, or
// was never begun, holds no lease.
const heldRun = `
	select workflow, by, cancel_asked, paused_by
	from run
	where id = ?
		and attempt = ?
		and state = 'running'
		and lease_until is not null`

// CommitRun makes one step of an execution durable; see semel.Runs. A claim
// that an earlier call with the same token made is made, whatever holds now.
func (s *Store) CommitRun(ctx context.Context, c semel.RunCommit) semel.RunCommitted {
	w := &runCommit{RunCommit: c}
	w.prepare(s.clock.now())
	if err := s.submit(ctx, w, false); err != nil {
		out := semel.RunCommitted{RunErr: err}
		if c.Outcome != nil {
			out.OutcomeErr = err
		}
		if c.Claim != nil {
			out.ClaimErr = err
		}
		return out
	}
	return w.out
}

// runCommit is the work of CommitRun.
type runCommit struct {
	semel.RunCommit
	outcome, claim *change
	next           *ending

	// What cannot be encoded is refused alone.
	outcomeErr, claimErr, nextErr error

	out semel.RunCommitted
}

// prepare encodes the parts, outside the transaction.
func (c *runCommit) prepare(now int64) {
	if c.Outcome != nil {
		c.outcome, c.outcomeErr = newChange(*c.Outcome)
	}
	if c.Claim != nil {
		c.claim, c.claimErr = newChange(*c.Claim)
	}
	if c.Next != nil {
		c.next, c.nextErr = newEnding(*c.Next, c.RunFence, now)
	}
}

func (c *runCommit) write(w *writer, at int64) error {
	ctx := context.Background()
	c.out = semel.RunCommitted{OutcomeErr: c.outcomeErr, ClaimErr: c.claimErr, RunErr: c.nextErr}
	if c.outcome != nil {
		c.out.Outcome, c.out.OutcomeErr = c.outcome.result(w, at)
		if err := c.out.OutcomeErr; !isAnswer(err) {
			return err
		}
	}
	if len(c.Steps) == 0 && c.Claim == nil && c.Next == nil {
		return nil
	}
	err := w.apart(ctx, func() error { return c.fenced(ctx, w, at) })
	if isStorage(err) || isBusy(err) {
		return err
	}
	if err != nil { // poison: the outcome stays
		err = fmt.Errorf("%w: %w", semel.ErrUnavailable, err)
		c.out.Claim, c.out.RunErr = semel.Operation{}, err
		if c.Claim != nil {
			c.out.ClaimErr = err
		}
	}
	return nil
}

// holding is what a commit must know of the run that its attempt holds.
type holding struct {
	semel.RunFence
	workflow, by string
	cancel       bool
	// cancelNow: it was asked during this attempt, which may not know.
	cancelNow bool
	pausedBy  sql.NullString
}

// hold reads the run; it answers ErrStale where the attempt does not hold it.
func hold(ctx context.Context, s session, f semel.RunFence) (holding, error) {
	h := holding{RunFence: f}
	var cancel sql.NullInt64
	found, err := one(ctx, s, into(&h.workflow, &h.by, &cancel, &h.pausedBy), heldRun, f.Run[:], f.Attempt)
	if err == nil && !found {
		err = &answer{fmt.Sprintf("attempt %d no longer holds run %s", f.Attempt, f.Run), semel.ErrStale}
	}
	h.cancel, h.cancelNow = cancel.Valid, cancel.Valid && cancel.Int64 == int64(f.Attempt)
	return h, err
}

// fenced writes the parts for which the attempt must hold the run.
func (c *runCommit) fenced(ctx context.Context, w *writer, at int64) error {
	h, err := hold(ctx, w, c.RunFence)
	if err != nil {
		if !isAnswer(err) {
			return err
		}
		return c.unheld(ctx, w, err)
	}
	for i := range c.Steps {
		if err := writeStep(ctx, w, c.Run, &c.Steps[i], at); err != nil {
			return err
		}
	}
	if c.claim != nil {
		c.out.Claim, c.out.ClaimErr = c.claimIn(w, &h, at)
		if err := c.out.ClaimErr; !isAnswer(err) {
			return err
		}
	}
	if c.next == nil {
		return nil
	}
	err = w.apart(ctx, func() error { return c.next.end(ctx, w, &h, at) })
	if isConflict(err) || isAnswer(err) {
		c.out.RunErr = err
		return nil
	}
	if err == nil {
		c.out.NextAt = fromNano(at)
	}
	return err
}

// claimIn claims unless somebody asked the run to stop.
func (c *runCommit) claimIn(w *writer, h *holding, at int64) (semel.Operation, error) {
	var err error
	switch {
	case w.refusal != nil:
		err = c.claim.refused(w, w.refusal)
	case h.cancel || h.pausedBy.Valid:
		err = c.claim.refused(w, fmt.Errorf("%w: run %s", semel.ErrStopped, c.Run))
	default:
		return c.claim.result(w, at)
	}
	if err != nil {
		return semel.Operation{}, err
	}
	return c.claim.answer(), nil
}

// unheld answers parts that were not written, as far as an earlier call did
// not write them.
func (c *runCommit) unheld(ctx context.Context, w *writer, why error) error {
	if c.claim != nil {
		c.out.ClaimErr = c.claim.refused(w, why)
		if c.out.ClaimErr == nil {
			c.out.Claim = c.claim.answer()
		} else if !isAnswer(c.out.ClaimErr) {
			return c.out.ClaimErr
		}
	}
	if c.next != nil {
		done, err := c.next.ended(ctx, w)
		if err != nil || done {
			return err
		}
	}
	c.out.RunErr = why
	return nil
}

// result commits the change in the open transaction.
func (c *change) result(w *writer, at int64) (semel.Operation, error) {
	if err := c.write(w, at); err != nil {
		return semel.Operation{}, err
	}
	return c.answer(), nil
}
