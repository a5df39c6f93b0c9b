package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-dev/semel"
)

// insertWait writes what the execution that just ended waits for.
const insertWait = `
insert into semel.wait (run_id, seq, path, kind, until, event, match, target, version, person, since, reason)
select r.id, $3::integer, $4::text, $5::text, $6::timestamptz, $7::text, $8::text, $9::uuid, $10::integer, $11::boolean,
  coalesce($12::timestamptz, r.updated_at), $13::text
from semel.run as r
where r.id = $1::uuid
  and r.attempt = $2::integer
  and r.lease_until is null
on conflict do nothing`

func waitArgs(f semel.RunFence, seq int, w *semel.RunWait) []any {
	return []any{
		[16]byte(f.Run), f.Attempt, seq, w.Path, string(w.Kind), instant(w.Until), w.Event, w.Match, uuid(w.Target), w.Version, w.Person,
		instant(w.Since), w.Reason,
	}
}

// lookAgain makes the run due if a wait of it is over already.
const lookAgain = `
update semel.run as r
set due_at = r.updated_at
where r.id = $1::uuid
  and r.attempt = $2::integer
  and r.lease_until is null
  and r.ended_at is null
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

// Waits reads what a run waits for; see semel.Runs.
func (s *Store) Waits(ctx context.Context, run semel.ID) ([]semel.RunWait, error) {
	const query = `
select path, kind, until, event, match, target, version, person, since, reason
from semel.wait
where run_id = $1::uuid
order by seq`
	return collect(ctx, s, "read waits", func(row pgx.CollectableRow) (semel.RunWait, error) {
		var w semel.RunWait
		var until pgtype.Timestamptz
		var target pgtype.UUID
		err := row.Scan(&w.Path, &w.Kind, &until, &w.Event, &w.Match, &target, &w.Version, &w.Person, &w.Since, &w.Reason)
		w.Until, w.Target, w.Since = timeOf(until), target.Bytes, w.Since.UTC()
		return w, err
	}, query, [16]byte(run))
}
