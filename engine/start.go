package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-dev/semel"
)

// Start makes a run durable: some worker that has its workflow executes it.
// existing: a run had its key, and its input is the same; another input is a
// *semel.RunConflictError. On an error that wraps semel.ErrUnconfirmed the run
// may have been started: start it again under the same key.
func (e *Engine) Start(ctx context.Context, n semel.NewRun) (r semel.Run, existing bool, err error) {
	return e.start(ctx, n, nil)
}

func (e *Engine) start(ctx context.Context, n semel.NewRun, claim *semel.RunClaim) (semel.Run, bool, error) {
	runs, err := e.keeper()
	if err != nil {
		return semel.Run{}, false, err
	}
	if err := n.Validate(); err != nil {
		return semel.Run{}, false, err
	}
	fp, err := n.Fingerprint()
	if err != nil {
		return semel.Run{}, false, err
	}
	if n.ID == (semel.ID{}) {
		n.ID = e.newID()
	}
	r, existing, err := runs.Start(ctx, n, claim)
	if err != nil {
		return r, false, fmt.Errorf("start %s %q: %w", n.Workflow, n.Key, err)
	}
	if existing && r.Fingerprint != fp {
		return r, true, &semel.RunConflictError{Run: r, Fields: r.DiffInput(n.Input)}
	}
	return r, existing, nil
}

// keeper is the store as one that keeps runs.
func (e *Engine) keeper() (semel.Runs, error) {
	if runs, ok := e.store.(semel.Runs); ok {
		return runs, nil
	}
	return nil, errors.New("this store keeps no runs")
}

// Await waits until the run has ended or needs a person, or ctx ends, and
// returns it as it is then.
func (e *Engine) Await(ctx context.Context, id semel.ID) (semel.Run, error) {
	runs, err := e.keeper()
	if err != nil {
		return semel.Run{}, err
	}
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 250*time.Millisecond) {
		if a := e.arrivals.of(id); a != nil {
			select {
			case <-a.done:
				if a.run != nil {
					return *a.run, nil
				}
			case <-ctx.Done():
			}
		}
		r, err := runs.LoadRun(context.WithoutCancel(ctx), id)
		if err != nil || r.State.Ended() || r.State == semel.RunHeld {
			return r, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return r, ctx.Err()
		}
	}
}
