package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel"
)

// ChangeRun does what a person asks; see semel.Runs.
func (s *Store) ChangeRun(ctx context.Context, id semel.ID, c semel.RunCommand) (r semel.Run, err error) {
	switch c.Verb {
	case semel.CancelRun, semel.PauseRun, semel.ResumeRun, semel.RetryRun:
	default:
		return r, &semel.InputError{Field: "verb", Problem: fmt.Sprintf("is %q", c.Verb), Hint: "use cancel, pause, resume or retry"}
	}
	err = s.transact(ctx, string(c.Verb)+" run "+id.String(), func(tx pgx.Tx, doubt bool) error {
		if c.Verb == semel.CancelRun { // what a run hangs on is locked before it
			if err := lockPending(ctx, tx, id); err != nil {
				return err
			}
		}
		before, err := lockRun(ctx, tx, id)
		if err != nil {
			return err
		}
		now, err := s.clockOf(ctx, tx)
		if err != nil {
			return err
		}
		now = later(now, before.UpdatedAt)
		effects := false
		if c.Verb == semel.CancelRun {
			if effects, err = waitsForOthers(ctx, tx, id); err != nil {
				return err
			}
		}
		r = before
		switch changed, ok := change(&r, c, now, effects); {
		case !ok && doubt && did(&before, c):
			return nil
		case !ok:
			return &verdict{&semel.RunStateError{Run: before, Verb: c.Verb}}
		case !changed:
			return nil
		}
		return s.keepChange(ctx, tx, &r, c)
	})
	return r, err
}

// did reports whether r is as the command leaves it.
func did(r *semel.Run, c semel.RunCommand) bool {
	switch c.Verb {
	case semel.CancelRun:
		return r.State == semel.RunCancelled
	case semel.PauseRun:
		return r.Paused
	case semel.ResumeRun, semel.RetryRun:
		return r.State == semel.RunRunning
	}
	return false
}

// change does c to r. effects says that r waits for the outcome of an
// operation. changed is false where r is so already, and ok where its state
// does not take c.
func change(r *semel.Run, c semel.RunCommand, now time.Time, effects bool) (changed, ok bool) {
	leased := now.Before(r.LeaseUntil)
	suspended := r.State == semel.RunWaiting || r.State == semel.RunHeld
	switch c.Verb {
	case semel.CancelRun:
		if r.State.Ended() || r.Cancel {
			return false, !r.State.Ended()
		}
		r.Cancel, r.Paused = true, false // somebody must look at it
		switch {
		case suspended && !effects:
			r.State, r.Reason, r.EndedAt = semel.RunCancelled, because("cancelled by "+c.By, c.Reason), now
			r.DueAt, r.LeaseUntil = time.Time{}, time.Time{}
		case r.State == semel.RunHeld:
			r.State, r.Reason, r.DueAt = semel.RunRunning, "", now
		case r.LeaseUntil.IsZero():
			r.DueAt = now
		}
	case semel.PauseRun:
		if r.State.Ended() || r.Cancel || r.Paused {
			return false, r.Paused
		}
		r.Paused = true
		if !leased {
			r.State, r.Reason = semel.RunHeld, "paused by "+c.By
		}
	case semel.ResumeRun:
		if !r.Paused {
			return false, false
		}
		r.Paused = false
		if !leased {
			r.State, r.Reason, r.DueAt = semel.RunRunning, "", now
		}
	case semel.RetryRun:
		if r.State != semel.RunFailed && (r.State != semel.RunHeld || r.Paused) {
			return false, false
		}
		r.Cancel = false // trying again withdraws it
		r.State, r.Reason, r.DueAt, r.RetriedAt, r.EndedAt, r.Crashes = semel.RunRunning, "", now, now, time.Time{}, 0
	}
	r.UpdatedAt = now
	return true, true
}

func because(what, reason string) string {
	if reason == "" {
		return what
	}
	return what + ": " + reason
}

func waitsForOthers(ctx context.Context, tx pgx.Tx, run semel.ID) (waits bool, err error) {
	const query = `
select exists (
  select from semel.wait
  where run_id = $1::uuid
    and kind in ('operation', 'run')
) or exists (
  select from semel.operation
  where run_id = $1::uuid
    and state in ('in_progress', 'unknown'))`
	err = tx.QueryRow(ctx, query, [16]byte(run)).Scan(&waits)
	return waits, err
}

func (s *Store) keepChange(ctx context.Context, tx pgx.Tx, r *semel.Run, c semel.RunCommand) error {
	const update = `
update semel.run
set state = $2::text, reason = $3::text, crashes = $6::integer, lease_until = $12::timestamptz,
  cancel_asked = case when $4::boolean then coalesce(cancel_asked, attempt) end,
  paused_by = case when $5::boolean then coalesce(paused_by, $11::text) end,
  due_at = $7::timestamptz, retried_at = $8::timestamptz, ended_at = $9::timestamptz, updated_at = $10::timestamptz
where id = $1::uuid`
	const forget = `
delete from semel.wait
where run_id = $1::uuid`
	_, err := tx.Exec(ctx, update, [16]byte(r.ID), string(r.State), r.Reason, r.Cancel, r.Paused, r.Crashes,
		instant(r.DueAt), instant(r.RetriedAt), instant(r.EndedAt), r.UpdatedAt, c.By, instant(r.LeaseUntil))
	if err != nil {
		return fmt.Errorf("%s: %w", c.Verb, err)
	}
	if err := note(ctx, tx, r.ID, r.UpdatedAt, string(c.Verb), c.By, c.Reason); err != nil {
		return err
	}
	if !r.State.Ended() {
		return nil
	}
	if _, err := tx.Exec(ctx, forget, [16]byte(r.ID)); err != nil {
		return err
	}
	return s.release(ctx, tx, r.ID)
}
