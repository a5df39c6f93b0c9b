package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-dev/semel"
)

const (
	endExecution = `
		update run
		set state = ?2,
			reason = ?3,
			due_at = ?4,
			lease_until = null,
			crashes = 0,
			done = ?5,
			total = ?6,
			result = ?7,
			updated_at = ?8
		where id = ?1`
	// sameEnd finds a run whose execution has ended in this way, and which
	// nobody claimed since.
	sameEnd = `
		select 1
		from run
		where id = ?1
			and attempt = ?2
			and lease_until is null
			and (state = ?3 or state = 'held' and paused_by is not null and ?3 in ('running', 'waiting', 'held'))`
	endRun = `
		update run
		set due_at = null,
			lease_until = null,
			paused_by = null,
			ended_at = ?2
		where id = ?1`
	deleteWaits = `
		delete from wait
		where run = ?`
	closeApprovals = `
		update approval
		set state = 'closed'
		where run = ?
			and state = 'pending'`
	wakeRuns = `
		update run
		set due_at = min(coalesce(due_at, ?2), ?2)
		where id in (select run from wait where target = ?1)
			and lease_until is null
			and ended_at is null`
	wakeRun = `
		update run
		set due_at = min(coalesce(due_at, ?2), ?2)
		where id = ?1
			and lease_until is null
			and ended_at is null`
)

// ending is the end of an execution.
type ending struct {
	semel.RunNext
	semel.RunFence
	waits []*waiting
}

// newEnding encodes n, outside the transaction.
func newEnding(n semel.RunNext, f semel.RunFence, now int64) (*ending, error) {
	e := &ending{RunNext: n, RunFence: f}
	switch n.State {
	case semel.RunRunning, semel.RunWaiting, semel.RunHeld, semel.RunCompleted, semel.RunFailed, semel.RunCancelled:
	default:
		return nil, &semel.InputError{Field: "run state", Problem: fmt.Sprintf("is %q", n.State), Hint: "use one of the states"}
	}
	if n.State.Ended() {
		return e, nil
	}
	for _, wt := range n.Waits {
		w, err := newWaiting(wt, f.Run, now)
		if err != nil {
			return nil, err
		}
		e.waits = append(e.waits, w)
	}
	return e, nil
}

// ended reports whether an earlier call ended the execution.
func (e *ending) ended(ctx context.Context, s session) (bool, error) {
	return exists(ctx, s, sameEnd, e.Run[:], e.Attempt, string(e.State))
}

// end writes the end of an execution. An error that is an answer must take
// back what was written.
func (e *ending) end(ctx context.Context, s *writer, h *holding, at int64) error {
	asked := e.State == semel.RunCancelled && h.cancel || e.State == semel.RunHeld && h.pausedBy.Valid
	if e.Stopped && !asked {
		return &answer{fmt.Sprintf("nobody asks run %s to stop any more", e.Run), semel.ErrStale}
	}
	state, reason, due := e.State, e.Reason, nano(e.DueAt)
	if state == semel.RunRunning && due == nil {
		due = at
	}
	if h.pausedBy.Valid && !state.Ended() {
		state = semel.RunHeld
		if !e.Stopped || reason == "" {
			reason = "paused by " + h.pausedBy.String
		}
	}
	if h.cancelNow || h.pausedBy.Valid {
		due = at
	}
	if _, err := exec(ctx, s, deleteWaits, e.Run[:]); err != nil {
		return err
	}
	for _, w := range e.waits {
		over, err := w.begin(ctx, s, h, at)
		if err != nil {
			return err
		}
		if over {
			due = at
		}
	}
	if _, err := exec(ctx, s, endExecution, e.Run[:], string(state), reason, due, e.Done, e.Total, text(e.Result), at); err != nil {
		return err
	}
	if state == semel.RunHeld && !h.pausedBy.Valid || state == semel.RunFailed {
		if err := note(ctx, s, e.Run, at, semel.RunNote{Kind: string(state), By: h.by, Text: reason}); err != nil {
			return err
		}
	}
	if state.Ended() {
		return finish(ctx, s, e.Run, at)
	}
	return nil
}

// finish does what follows from the end of a run, whose state is written.
func finish(ctx context.Context, s session, run semel.ID, at int64) error {
	if _, err := exec(ctx, s, endRun, run[:], at); err != nil {
		return err
	}
	for _, text := range []string{deleteWaits, closeApprovals} {
		if _, err := exec(ctx, s, text, run[:]); err != nil {
			return err
		}
	}
	return wake(ctx, s, run, at)
}

// wake makes the runs due that wait for an operation, an approval or a run. A
// run that is being executed looks by itself before it waits.
func wake(ctx context.Context, s session, target semel.ID, at int64) error {
	_, err := exec(ctx, s, wakeRuns, target[:], at)
	return err
}

func isConflict(err error) bool {
	_, ok := errors.AsType[*semel.RunConflictError](err)
	return ok
}
