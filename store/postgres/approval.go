package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-dev/semel"
)

const selectApproval = `
select a.id, a.run_id, a.path, a.digest, a.scope, a.key, a.request, a.body, a.ask, a.state, a.asked_at, a.by, a.reason, a.decided_at, a.until
from semel.approval as a`

func scanApproval(row scanner) (semel.Approval, error) {
	var a semel.Approval
	var id, run [16]byte
	var request, body, ask []byte
	var decided, until pgtype.Timestamptz
	err := row.Scan(&id, &run, &a.Path, &a.Digest, &a.Scope, &a.Key, &request, &body, &ask, &a.State, &a.AskedAt, &a.By, &a.Reason, &decided, &until)
	if err != nil {
		return a, err
	}
	a.ID, a.Run, a.AskedAt, a.DecidedAt, a.Until = id, run, a.AskedAt.UTC(), timeOf(decided), timeOf(until)
	if err := errors.Join(json.Unmarshal(request, &a.Request), json.Unmarshal(ask, &a.Ask)); err != nil {
		return a, fmt.Errorf("approval %s: %w", a.ID, err)
	}
	a.Request.Body = body
	return a, nil
}

func approvalRow(row pgx.CollectableRow) (semel.Approval, error) { return scanApproval(row) }

// Approval reads one; see semel.Runs.
func (s *Store) Approval(ctx context.Context, id semel.ID) (semel.Approval, error) {
	const query = selectApproval + `
where a.id = $1::uuid`
	found, err := collect(ctx, s, "read an approval", approvalRow, query, [16]byte(id))
	switch {
	case err != nil:
		return semel.Approval{}, err
	case len(found) == 0:
		return semel.Approval{}, fmt.Errorf("approval %s: %w", id, semel.ErrNotFound)
	}
	return found[0], nil
}

// Approvals lists approvals of a run, or of all; see semel.Runs.
func (s *Store) Approvals(ctx context.Context, run semel.ID, state semel.ApprovalState) iter.Seq2[semel.Approval, error] {
	return pages(func(before semel.ID) ([]semel.Approval, error) {
		q := listing{query: selectApproval, key: "a.id"}
		if run != (semel.ID{}) {
			q.where("a.run_id = %s::uuid", [16]byte(run))
		}
		if state != "" {
			q.where("a.state = %s::text", string(state))
		}
		query, args := q.page(before)
		return collect(ctx, s, "list approvals", approvalRow, query, args...)
	}, func(a semel.Approval) semel.ID { return a.ID })
}

// standing gives w the approval that was asked for before, if it was not turned
// down, or else the ID of one to be asked for.
func (s *Store) standing(ctx context.Context, tx pgx.Tx, f semel.RunFence, w *semel.RunWait) error {
	const query = `
select id
from semel.approval
where run_id = $1::uuid
  and path = $2::text
  and digest = $3::text
  and (state = 'pending' or state = 'approved' and (until is null or until > clock_timestamp() + $4::interval))
order by id desc
limit 1`
	a := w.Approval
	if a == nil {
		return nil
	}
	var id [16]byte
	err := tx.QueryRow(ctx, query, [16]byte(f.Run), cmp.Or(a.Path, w.Path), a.Digest, s.offset()).Scan(&id)
	switch {
	case err == nil:
		w.Target, w.Approval = id, nil
	case !errors.Is(err, pgx.ErrNoRows):
		return err
	case a.ID != (semel.ID{}):
		w.Target = a.ID
	default:
		w.Target = s.mint()
	}
	return nil
}

const insertApproval = `
insert into semel.approval (id, run_id, path, digest, scope, key, request, body, ask, state, asked_at)
values ($1::uuid, $2::uuid, $3::text, $4::text, $5::text, $6::text, $7::bytea, $8::bytea, $9::bytea, 'pending', $10::timestamptz)`

func askArgs(f semel.RunFence, w *semel.RunWait, at time.Time) ([]any, error) {
	a := w.Approval
	request, err := json.Marshal(&a.Request)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	ask, err := json.Marshal(&a.Ask)
	if err != nil {
		return nil, fmt.Errorf("encode ask: %w", err)
	}
	return []any{
		[16]byte(w.Target), [16]byte(f.Run), cmp.Or(a.Path, w.Path), a.Digest, string(a.Scope), string(a.Key), request, a.Request.Body, ask, at,
	}, nil
}

// lockPending waits for decisions under way about a run that ends.
func lockPending(ctx context.Context, tx pgx.Tx, run semel.ID) error {
	const lock = `
select from semel.approval
where run_id = $1::uuid
  and state = 'pending'
order by id
for no key update`
	_, err := tx.Exec(ctx, lock, [16]byte(run))
	return err
}

// Decide records a decision; see semel.Runs.
func (s *Store) Decide(ctx context.Context, id semel.ID, d semel.Decision) (semel.Approval, error) {
	const lock = selectApproval + `
where a.id = $1::uuid
for no key update`
	const update = `
update semel.approval
set state = $2::text, by = $3::text, reason = $4::text, decided_at = $5::timestamptz, until = $6::timestamptz
where id = $1::uuid`
	var a semel.Approval
	err := s.transact(ctx, "decide", func(tx pgx.Tx, doubt bool) (err error) {
		a, err = scanApproval(tx.QueryRow(ctx, lock, [16]byte(id)))
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return &verdict{fmt.Errorf("approval %s: %w", id, semel.ErrNotFound)}
		case err != nil:
			return err
		case doubt && a.State == d.State && a.By == d.By && a.Reason == d.Reason:
			return nil // it was this call that decided
		}
		now, err := s.clockOf(ctx, tx)
		if err != nil {
			return err
		}
		if a, err = a.Decide(d, now); err != nil {
			return &verdict{err}
		}
		a.Until = a.Until.Truncate(time.Microsecond)
		if _, err := tx.Exec(ctx, update, [16]byte(id), string(a.State), a.By, a.Reason, a.DecidedAt, instant(a.Until)); err != nil {
			return err
		}
		if d.State == semel.ApprovalRevoked { // the run may be past its wait
			if _, err := tx.Exec(ctx, wakeRun, s.offset(), [16]byte(a.Run)); err != nil {
				return err
			}
		}
		return s.wake(ctx, tx, semel.WaitApproval, id)
	})
	return a, err
}
