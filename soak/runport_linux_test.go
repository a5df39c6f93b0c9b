package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-dev/semel"
)

// runPort is port for a store that keeps runs.
type runPort struct {
	*port
	semel.Runs
}

var errLost = fmt.Errorf("%w: the acknowledgement was lost", semel.ErrUnconfirmed)

// answered is the error of a call that the store has answered: it may be lost.
func (p *runPort) answered(err error) error {
	if err == nil && (p.isCut() || p.lose.Add(-1) >= 0) {
		return errLost
	}
	return err
}

func (p *runPort) Start(ctx context.Context, n semel.NewRun, claim *semel.RunClaim) (semel.Run, bool, error) {
	if p.isCut() {
		return semel.Run{}, false, errCut
	}
	r, existing, err := p.Runs.Start(ctx, n, claim)
	return r, existing, p.answered(err)
}

func (p *runPort) Claim(ctx context.Context, c semel.RunClaim, workflows []semel.WorkflowRef, limit int) ([]semel.Run, error) {
	if p.isCut() {
		return nil, errCut
	}
	claimed, err := p.Runs.Claim(ctx, c, workflows, limit)
	if len(claimed) == 0 {
		return claimed, err
	}
	if err := p.answered(err); err != nil {
		return nil, err // those runs are nobody's until their lease ends
	}
	return claimed, nil
}

func (p *runPort) RenewRuns(ctx context.Context, held []semel.RunFence, long time.Duration) ([]semel.Run, error) {
	if p.isCut() {
		return nil, errCut
	}
	return p.Runs.RenewRuns(ctx, held, long)
}

func (p *runPort) CommitRun(ctx context.Context, c semel.RunCommit) semel.RunCommitted {
	fail := func(err error) semel.RunCommitted {
		all := semel.RunCommitted{RunErr: err}
		if c.Outcome != nil {
			all.OutcomeErr = err
		}
		if c.Claim != nil {
			all.ClaimErr = err
		}
		return all
	}
	if p.isCut() {
		return fail(errCut)
	}
	answer := p.Runs.CommitRun(ctx, c)
	if errors.Is(p.answered(answer.RunErr), semel.ErrUnconfirmed) {
		return fail(errLost)
	}
	return answer
}

func (p *runPort) TakeEvent(ctx context.Context, c semel.EventClaim) (semel.StepRecord, error) {
	if p.isCut() {
		return semel.StepRecord{}, errCut
	}
	r, err := p.Runs.TakeEvent(ctx, c)
	return r, p.answered(err)
}

func (p *runPort) Send(ctx context.Context, e semel.InboxEvent) (bool, error) {
	if p.isCut() {
		return false, errCut
	}
	existing, err := p.Runs.Send(ctx, e)
	return existing, p.answered(err)
}

func (p *runPort) LoadRun(ctx context.Context, id semel.ID) (semel.Run, error) {
	if p.isCut() {
		return semel.Run{}, errCut
	}
	return p.Runs.LoadRun(ctx, id)
}

func (p *runPort) FindRun(ctx context.Context, workflow string, key semel.Key) (semel.Run, error) {
	if p.isCut() {
		return semel.Run{}, errCut
	}
	return p.Runs.FindRun(ctx, workflow, key)
}

func (p *runPort) History(ctx context.Context, run semel.ID) (semel.RunHistory, error) {
	if p.isCut() {
		return semel.RunHistory{}, errCut
	}
	return p.Runs.History(ctx, run)
}
