package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-dev/semel"
)

// CommitRun makes one step of an execution durable; see semel.Runs. All of it
// is one transaction, shared with other callers, but for an end that locks what
// the run waits for: that follows in one of its own.
func (s *Store) CommitRun(ctx context.Context, c semel.RunCommit) semel.RunCommitted {
	p := s.parts(ctx, c)
	if len(p.request.statements) > 0 {
		if err := s.group.do(ctx, &p.request); err != nil {
			s.notCommitted(ctx, c, p, err)
			return p.out
		}
	}
	s.answerOutcome(ctx, c, p)
	s.answerClaim(ctx, c, p)
	s.answerEnd(ctx, c, p)
	return p.out
}

// parts is a RunCommit on its way: the index of the statement that answers for
// each part, -1 for none.
type parts struct {
	request                     request
	outcome, steps, claim, next int
	out                         semel.RunCommitted
}

func (s *Store) parts(ctx context.Context, c semel.RunCommit) *parts {
	p := &parts{request: request{run: c.Run}, outcome: -1, steps: -1, claim: -1, next: -1}
	add := func(statements ...statement) (first int) {
		first = len(p.request.statements)
		p.request.statements = append(p.request.statements, statements...)
		return first
	}
	if c.Outcome != nil {
		statements, err := s.changing(ctx, *c.Outcome, guard{})
		if err != nil {
			p.out.OutcomeErr = err
		} else {
			p.outcome = add(statements...)
		}
	}
	for _, rec := range c.Steps {
		if first := add(s.recording(c.RunFence, rec)); p.steps < 0 {
			p.steps = first
		}
	}
	if c.Claim != nil {
		statements, err := s.changing(ctx, *c.Claim, guard{fence: c.RunFence})
		if err != nil {
			p.out.ClaimErr = err
		} else {
			p.claim = add(statements...)
			p.request.claims(*c.Claim, p.request.statements[:p.claim])
		}
	}
	switch {
	case c.Next == nil:
	case !known(c.Next.State):
		p.out.RunErr = &semel.InputError{Field: "run state", Problem: fmt.Sprintf("is %q", c.Next.State), Hint: "use one of the states"}
	case !alone(c.Next):
		watched, statements := s.ending(c.RunFence, c.Next)
		for _, id := range watched {
			add(statement{there: id, sql: watch, args: []any{[16]byte(id)}, exec: true})
		}
		p.next = add(statements...)
	}
	return p
}

// notCommitted answers for a transaction that failed. What is known of the
// outcome must not wait for a run that cannot be written.
func (s *Store) notCommitted(ctx context.Context, c semel.RunCommit, p *parts, err error) {
	if p.claim >= 0 {
		p.out.ClaimErr = err
	}
	if p.steps >= 0 || c.Next != nil {
		p.out.RunErr = err
	}
	switch {
	case p.outcome < 0:
	case errors.Is(err, semel.ErrUnconfirmed) || p.claim < 0 && p.out.RunErr == nil:
		p.out.OutcomeErr = err
	default:
		p.out.Outcome, p.out.OutcomeErr = s.Commit(ctx, *c.Outcome)
	}
}

func (s *Store) answerOutcome(ctx context.Context, c semel.RunCommit, p *parts) {
	if p.outcome < 0 {
		return
	}
	p.out.Outcome, p.out.OutcomeErr = s.answer(ctx, *c.Outcome, guard{}, p.request.statements[p.outcome])
}

func (s *Store) answerClaim(ctx context.Context, c semel.RunCommit, p *parts) {
	if p.claim < 0 {
		return
	}
	made := p.request.statements[p.claim]
	if made.refused != nil {
		p.out.ClaimErr = made.refused
		return
	}
	p.out.Claim, p.out.ClaimErr = s.answer(ctx, *c.Claim, guard{fence: c.RunFence}, made)
	if lost, ok := errors.AsType[*lostError](p.out.ClaimErr); ok {
		p.out.RunErr = lost
	}
}

// answerEnd answers for what the fence decides, and ends the execution where
// that needs a transaction of its own.
func (s *Store) answerEnd(ctx context.Context, c semel.RunCommit, p *parts) {
	stepsLost := p.steps >= 0 && !p.request.statements[p.steps].found
	switch {
	case p.next >= 0 && p.request.statements[p.next].found:
		p.out.NextAt = p.request.statements[p.next].at.UTC()
		s.clock.seen(p.out.NextAt)
	case p.next >= 0 || stepsLost:
		p.out.RunErr = s.whyNotEnded(ctx, c)
	case c.Next != nil && p.out.RunErr == nil:
		p.out.RunErr = s.nextAlone(ctx, c.RunFence, *c.Next)
	}
}

// whyNotEnded looks at a run whose end found nothing to do, and ends it where
// something hangs on it.
func (s *Store) whyNotEnded(ctx context.Context, c semel.RunCommit) error {
	r, err := s.LoadRun(ctx, c.Run)
	switch {
	case errors.Is(err, semel.ErrNotFound):
		return &lostError{c.RunFence}
	case err != nil:
		return err
	case c.Next == nil:
		return &lostError{c.RunFence}
	case holds(&r, c.RunFence) && c.Next.State.Ended():
		return s.nextAlone(ctx, c.RunFence, *c.Next)
	}
	return ended(&r, c.RunFence, c.Next)
}
