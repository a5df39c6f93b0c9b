package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-dev/semel"
)

// waitingNext writes what the execution that just ended waits for. The rows
// before it go in the same statement, so none of the two may have a key that
// the caller gives.
const waitingNext = `, waiting as (
  insert into semel.wait (run_id, path, kind, until, event, match, target, version, person, since, reason)
  select next.id, w.path, w.kind, w.until, w.event, w.match, w.target, w.version, w.person, coalesce(w.since, next.updated_at), w.reason
  from next,
    unnest($13::text[], $14::text[], $15::timestamptz[], $16::text[], $17::text[], $18::uuid[], $19::integer[], $20::boolean[],
      $21::timestamptz[], $22::text[]) with ordinality
      as w (path, kind, until, event, match, target, version, person, since, reason, place)
  order by w.place
)`

// waitArgs are the columns of the waits.
func waitArgs(waits []semel.RunWait) []any {
	n := len(waits)
	path, kind, event, match, reason := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	until, since := make([]pgtype.Timestamptz, n), make([]pgtype.Timestamptz, n)
	target, version, person := make([]pgtype.UUID, n), make([]int, n), make([]bool, n)
	for i, w := range waits {
		path[i], kind[i], event[i], match[i], reason[i] = w.Path, string(w.Kind), w.Event, w.Match, w.Reason
		until[i], since[i] = instant(w.Until), instant(w.Since)
		target[i], version[i], person[i] = uuid(w.Target), w.Version, w.Person
	}
	return []any{path, kind, until, event, match, target, version, person, since, reason}
}

// lookAgain makes the run due if a wait of it is over already. One that was woken
// since it was suspended stays due since then.
const lookAgain = `
update semel.run as r
set due_at = r.updated_at
where r.id = $1::uuid
  and r.attempt = $2::integer
  and r.lease_until is null
  and r.ended_at is null
  and r.due_at between r.updated_at and clock_timestamp() + $3::interval is not true
  and (` + anyOver + `)`

const anyOver = `exists (
    select from semel.wait as w
    join semel.operation as o on o.id = w.target
    where w.run_id = r.id and w.kind = 'operation' and o.version > w.version
  ) or exists (
    select from semel.wait as w
    join semel.approval as a on a.id = w.target
    where w.run_id = r.id and w.kind = 'approval' and a.state <> 'pending'
  ) or exists (
    select from semel.wait as w
    join semel.run as child on child.id = w.target
    where w.run_id = r.id and w.kind = 'run' and child.ended_at is not null
  ) or exists (
    select from semel.wait as w
    join semel.event as e on e.name = w.event and e.match = w.match
    where w.run_id = r.id and w.kind = 'event'
      and (w.until is null or e.at <= w.until)
      and not exists (
        select from semel.event_taken as taken
        where taken.event_id = e.id and taken.workflow = r.workflow)
  )`

const selectWaits = `
select path, kind, until, event, match, target, version, person, since, reason
from semel.wait
where run_id = $1::uuid
order by seq`

func scanWait(row pgx.CollectableRow) (semel.RunWait, error) {
	var w semel.RunWait
	var until pgtype.Timestamptz
	var target pgtype.UUID
	err := row.Scan(&w.Path, &w.Kind, &until, &w.Event, &w.Match, &target, &w.Version, &w.Person, &w.Since, &w.Reason)
	w.Until, w.Target, w.Since = timeOf(until), target.Bytes, w.Since.UTC()
	return w, err
}

// Waits reads what a run waits for; see semel.Runs.
func (s *Store) Waits(ctx context.Context, run semel.ID) ([]semel.RunWait, error) {
	return collect(ctx, s, "read waits", scanWait, selectWaits, [16]byte(run))
}
