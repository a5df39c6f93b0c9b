package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-dev/semel"
)

// guard is what a claim asks for besides its identity: a run that goes on, and
// an approval that the event names.
type guard struct{ fence semel.RunFence }

// needed reports whether the claim must be guarded at all.
func (g guard) needed(c semel.Change) bool {
	return g.fence.Run != semel.ID{} || c.Event.Approval != semel.ID{}
}

func (g guard) args(c semel.Change) []any {
	return []any{uuid(g.fence.Run), g.fence.Attempt, uuid(c.Event.Approval), digestOf(c)}
}

func digestOf(c semel.Change) string {
	return semel.ApprovalDigest(c.After.Scope, c.After.Key, c.After.Fingerprint)
}

// guardedClaim is insertClaim with a guard, guardedOf later claims.
var (
	guardedClaim = insertClaim + "\nwhere " + guarded(14) + orNothing
	guardedOf    = map[string]string{
		secondEvent: changeOperation + inRow + whereCurrent + "\n  and " + guarded(15) + returningChange,
		laterEvent:  withChanged + whereCurrent + "\n  and " + guarded(15) + recordChanged,
	}
)

// guarded is the condition of a guard whose arguments begin with the given
// number. An approval is locked, so that taking it back waits for the claim, or
// the claim for it. A run is not: asking it to stop and claiming at once is
// either order.
func guarded(first int) string {
	return fmt.Sprintf(`($%[1]d::uuid is null or exists (
    select from semel.run as r
    where r.id = $%[1]d::uuid
      and r.attempt = $%[2]d::integer`+held+`
      and r.cancel_asked is null
      and r.paused_by is null))
  and ($%[3]d::uuid is null or exists (
    select from semel.approval as a
    where a.id = $%[3]d::uuid
      and a.digest = $%[4]d::text
      and a.state = 'approved'
      and (a.until is null or a.until > clock.now)
    for share))`, first, first+1, first+2, first+3)
}

// held is the rest of a fence: a worker executes the run.
const held = `
      and r.state = 'running'
      and r.lease_until is not null`

// unchanged says why a change was not made, if it was not made before.
func (s *Store) unchanged(ctx context.Context, c semel.Change, g guard) (semel.Operation, error) {
	o, err := s.recognise(ctx, c)
	taken := c.Before.Version == 0 && errors.Is(err, semel.ErrStale)
	if err == nil || taken || c.Event.Kind != semel.EvClaimed || !g.needed(c) || errors.Is(err, semel.ErrUnconfirmed) {
		return o, err
	}
	if g.fence.Run != (semel.ID{}) {
		r, loadErr := s.LoadRun(ctx, g.fence.Run)
		switch {
		case lost(&r, g.fence, loadErr):
			return o, &lostError{g.fence}
		case loadErr != nil:
			return o, loadErr
		case r.Cancel || r.Paused:
			return o, fmt.Errorf("run %s: %w", r.ID, semel.ErrStopped)
		}
	}
	if c.Event.Approval != (semel.ID{}) {
		covers, approvalErr := s.covers(ctx, c)
		switch {
		case approvalErr != nil:
			return o, approvalErr
		case !covers:
			return o, fmt.Errorf("operation %s: %w", c.After.ID, semel.ErrNotApproved)
		}
	}
	return o, err
}

// holds reports whether the fence is that of the worker that executes r.
func holds(r *semel.Run, f semel.RunFence) bool {
	return r.Attempt == f.Attempt && r.State == semel.RunRunning && !r.LeaseUntil.IsZero()
}

// lost reports whether the fence does not hold for r, which was read with err.
func lost(r *semel.Run, f semel.RunFence, err error) bool {
	return err == nil && !holds(r, f) || errors.Is(err, semel.ErrNotFound)
}

// lostError is a fence that no longer holds.
type lostError struct{ fence semel.RunFence }

func (e *lostError) Error() string {
	return fmt.Sprintf("run %s is no longer executed by attempt %d", e.fence.Run, e.fence.Attempt)
}

func (e *lostError) Unwrap() error { return semel.ErrStale }

func (s *Store) covers(ctx context.Context, c semel.Change) (covers bool, err error) {
	const query = `
select exists (
  select from semel.approval
  where id = $1::uuid
    and digest = $2::text
    and state = 'approved'
    and (until is null or until > clock_timestamp() + $3::interval))`
	err = s.read(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, query, [16]byte(c.Event.Approval), digestOf(c), s.offset()).Scan(&covers)
	})
	if err != nil {
		return false, unavailable("read the approval", err)
	}
	return covers, nil
}
