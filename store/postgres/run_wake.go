package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel"
)

// suspended are runs that nobody executes and that are not due. Those that are
// executed look at what they wait for when they suspend.
const suspended = `
    and r.lease_until is null
    and r.ended_at is null
    and (r.due_at is null or r.due_at > clock.now)`

// wakeRun makes a suspended run due now.
const wakeRun = `
update semel.run as r
set due_at = clock.now
from (select clock_timestamp() + $1::interval as now) as clock
where r.id = $2::uuid` + suspended

// wakeWaiting makes suspended runs due now that wait for something. It locks
// the newest first, as all do; see order.go.
const wakeWaiting = `
with clock as materialized (
  select clock_timestamp() + $1::interval as now
), woken as materialized (
  select r.id
  from semel.run as r, clock
  where r.id = any(array(
      select w.run_id
      from semel.wait as w
      where %s))` + suspended + `
  order by r.id desc
  for no key update of r
)
update semel.run as r
set due_at = clock.now
from woken, clock
where r.id = woken.id`

var (
	// wakeForTarget wakes those that wait for an approval or a run.
	wakeForTarget = fmt.Sprintf(wakeWaiting, `w.target = $2::uuid and w.kind = $3::text`)

	// wakeForOperations wakes those that wait for any of several.
	wakeForOperations = fmt.Sprintf(wakeWaiting, `w.target = any($2::uuid[]) and w.kind = 'operation'`)

	// wakeForEvent wakes those that wait for an event.
	wakeForEvent = fmt.Sprintf(wakeWaiting, `w.kind = 'event' and w.event = $2::text and w.match = $3::text`)
)

func (s *Store) wake(ctx context.Context, tx pgx.Tx, kind semel.WaitKind, target semel.ID) error {
	_, err := tx.Exec(ctx, wakeForTarget, s.offset(), [16]byte(target), string(kind))
	return err
}

// clockOf is the store's clock inside a transaction.
func (s *Store) clockOf(ctx context.Context, tx pgx.Tx) (now time.Time, err error) {
	err = tx.QueryRow(ctx, `select clock_timestamp() + $1::interval`, s.offset()).Scan(&now)
	return now.UTC(), err
}
