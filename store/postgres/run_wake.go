package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel"
)

// wakeSuspended makes suspended runs due now. Those that are executed look at
// what they wait for when they suspend.
const wakeSuspended = `
update semel.run as r
set due_at = clock.now
from (select clock_timestamp() + $1::interval as now) as clock
where r.lease_until is null
  and r.ended_at is null
  and (r.due_at is null or r.due_at > clock.now)
  and `

const wakeRun = wakeSuspended + `r.id = $2::uuid`

const wakeWaiting = wakeSuspended + `r.id = any(array(
    select w.run_id
    from semel.wait as w
    where `

// wakeForTarget wakes those that wait for an operation, an approval or a run.
const wakeForTarget = wakeWaiting + `w.target = $2::uuid
      and w.kind = $3::text))`

// wakeForEvent wakes those that wait for an event.
const wakeForEvent = wakeWaiting + `w.kind = 'event'
      and w.event = $2::text
      and w.match = $3::text))`

func (s *Store) waking(kind semel.WaitKind, target semel.ID) statement {
	return statement{sql: wakeForTarget, args: []any{s.offset(), [16]byte(target), string(kind)}, exec: true}
}

func (s *Store) wake(ctx context.Context, tx pgx.Tx, kind semel.WaitKind, target semel.ID) error {
	_, err := tx.Exec(ctx, wakeForTarget, s.offset(), [16]byte(target), string(kind))
	return err
}

// clockOf is the store's clock inside a transaction.
func (s *Store) clockOf(ctx context.Context, tx pgx.Tx) (now time.Time, err error) {
	err = tx.QueryRow(ctx, `select clock_timestamp() + $1::interval`, s.offset()).Scan(&now)
	return now.UTC(), err
}
