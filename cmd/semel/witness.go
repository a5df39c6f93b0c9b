package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/semel-dev/semel"
)

// witness is the store of a worker, and sees what the worker commits.
type witness struct {
	semel.Store
	semel.Runs
	sees seer

	completed, failed, cancelled, held, waiting atomic.Int64
}

// seer is told what happened, after it is durable.
type seer interface {
	// began: this worker took a run that nobody had executed before.
	began(ctx context.Context, r *semel.Run)
	// moved: an execution of the run ended so.
	moved(ctx context.Context, run semel.ID, next *semel.RunNext)
	// settled: evidence about the operation was recorded.
	settled(ctx context.Context, o *semel.Operation, ev *semel.Event)
}

// Start makes a run durable.
func (w *witness) Start(ctx context.Context, n semel.NewRun, claim *semel.RunClaim) (semel.Run, bool, error) {
	r, existing, err := w.Runs.Start(ctx, n, claim)
	if err == nil && !existing && claim != nil {
		w.sees.began(ctx, &r)
	}
	return r, existing, err
}

// Claim takes runs that are due.
func (w *witness) Claim(ctx context.Context, c semel.RunClaim, workflows []semel.WorkflowRef, limit int) ([]semel.Run, error) {
	runs, err := w.Runs.Claim(ctx, c, workflows, limit)
	for i := range runs {
		if runs[i].Attempt == 1 {
			w.sees.began(ctx, &runs[i])
		}
	}
	return runs, err
}

// Commit makes an event of an operation durable.
func (w *witness) Commit(ctx context.Context, c semel.Change) (semel.Operation, error) {
	o, err := w.Store.Commit(ctx, c)
	if err == nil {
		w.sees.settled(ctx, &o, &c.Event)
	}
	return o, err
}

// CommitRun makes a step of an execution durable.
func (w *witness) CommitRun(ctx context.Context, c semel.RunCommit) semel.RunCommitted {
	done := w.Runs.CommitRun(ctx, c)
	if c.Outcome != nil && done.OutcomeErr == nil {
		w.sees.settled(ctx, &done.Outcome, &c.Outcome.Event)
	}
	if c.Next != nil && done.RunErr == nil {
		w.count(c.Next.State)
		w.sees.moved(ctx, c.Run, c.Next)
	}
	return done
}

func (w *witness) count(s semel.RunState) {
	switch s {
	case semel.RunCompleted:
		w.completed.Add(1)
	case semel.RunFailed:
		w.failed.Add(1)
	case semel.RunCancelled:
		w.cancelled.Add(1)
	case semel.RunHeld:
		w.held.Add(1)
	case semel.RunWaiting, semel.RunRunning:
		w.waiting.Add(1)
	}
}

// loaded reads a run that a seer tells about.
func (w *witness) loaded(ctx context.Context, id semel.ID) (semel.Run, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return w.LoadRun(ctx, id)
}
