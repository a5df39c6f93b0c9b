package sqlite

import (
	"context"
	"fmt"

	"github.com/semel-dev/semel"
)

const (
	waitsForOthers = `
		select 1
		from wait
		where run = ?1
			and kind in ('operation', 'run')
		union all
		select 1
		from operation indexed by operation_run_id
		where run_id = ?1
			and state in ('in_progress', 'unknown')
		limit 1`
	cancelNow = `
		update run
		set state = 'cancelled',
			reason = ?2,
			cancel_asked = attempt,
			updated_at = ?3
		where id = ?1`
	// askCancel leaves the lease of a worker alone: it looks at its next commit
	// or renewal.
	askCancel = `
		update run
		set state = case state when 'held' then 'running' else state end,
			reason = case state when 'held' then '' else reason end,
			cancel_asked = attempt,
			paused_by = null,
			due_at = case when lease_until is null then ?2 else due_at end,
			updated_at = ?2
		where id = ?1`
	pauseRun = `
		update run
		set paused_by = ?2,
			updated_at = ?3
		where id = ?1`
	holdRun = `
		update run
		set state = 'held',
			reason = ?2
		where id = ?1`
	resumeRun = `
		update run
		set paused_by = null,
			state = 'running',
			reason = '',
			due_at = case when lease_until > ?2 then due_at else ?2 end,
			updated_at = ?2
		where id = ?1`
	retryRun = `
		update run
		set state = 'running',
			reason = '',
			crashes = 0,
			due_at = ?2,
			cancel_asked = null,
			retried_at = ?2,
			ended_at = null,
			updated_at = ?2
		where id = ?1`
)

// ChangeRun does what a person asks; see semel.Runs. Stopping ends a pause, and
// trying again withdraws the request to stop.
func (s *Store) ChangeRun(ctx context.Context, id semel.ID, c semel.RunCommand) (semel.Run, error) {
	w := &runChange{RunCommand: c, id: id}
	if err := s.submit(ctx, w, false); err != nil {
		return semel.Run{}, err
	}
	return w.run, nil
}

// runChange is the work of ChangeRun.
type runChange struct {
	semel.RunCommand
	id  semel.ID
	run semel.Run
}

func (c *runChange) write(w *writer, at int64) error {
	ctx := context.Background()
	var err error
	if c.run, err = lockedRun(ctx, w, c.id); err != nil {
		return err
	}
	r := &c.run
	done, takes := false, false // what was asked holds already; the state takes it
	change := c.cancel
	switch c.Verb {
	case semel.CancelRun:
		done, takes = r.Cancel, !r.State.Ended()
	case semel.PauseRun:
		done, takes, change = r.Paused, !r.State.Ended() && !r.Cancel, c.pause
	case semel.ResumeRun:
		takes, change = r.Paused, c.resume
	case semel.RetryRun:
		takes, change = r.State == semel.RunFailed || r.State == semel.RunHeld && !r.Paused, c.retry
	default:
		return &semel.InputError{Field: "verb", Problem: fmt.Sprintf("is %q", c.Verb), Hint: "use cancel, pause, resume or retry"}
	}
	if !takes {
		return &semel.RunStateError{Run: *r, Verb: c.Verb}
	}
	if done {
		return nil
	}
	if err := note(ctx, w, c.id, at, semel.RunNote{Kind: string(c.Verb), By: c.By, Text: c.Reason}); err != nil {
		return err
	}
	if err := change(ctx, w, at); err != nil {
		return err
	}
	c.run, err = lockedRun(ctx, w, c.id)
	return err
}

// cancel ends a run that waits for nothing that may have happened; another one
// is ended by its worker.
func (c *runChange) cancel(ctx context.Context, s session, at int64) error {
	sleeps := c.run.State == semel.RunWaiting || c.run.State == semel.RunHeld
	open, err := exists(ctx, s, waitsForOthers, c.id[:])
	if err != nil {
		return err
	}
	if !sleeps || open {
		_, err = exec(ctx, s, askCancel, c.id[:], at)
		return err
	}
	if _, err := exec(ctx, s, cancelNow, c.id[:], c.said("cancelled"), at); err != nil {
		return err
	}
	return finish(ctx, s, c.id, at)
}

func (c *runChange) pause(ctx context.Context, s session, at int64) error {
	if _, err := exec(ctx, s, pauseRun, c.id[:], c.By, at); err != nil {
		return err
	}
	if held(&c.run, fromNano(at)) {
		return nil // its worker ends its execution
	}
	_, err := exec(ctx, s, holdRun, c.id[:], "paused by "+c.By)
	return err
}

func (c *runChange) resume(ctx context.Context, s session, at int64) error {
	_, err := exec(ctx, s, resumeRun, c.id[:], at)
	return err
}

func (c *runChange) retry(ctx context.Context, s session, at int64) error {
	_, err := exec(ctx, s, retryRun, c.id[:], at)
	return err
}

// said is what happened, by whom and why.
func (c *runChange) said(what string) string {
	text := what + " by " + c.By
	if c.Reason != "" {
		text += ": " + c.Reason
	}
	return text
}
