package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel"
)

// claimRuns takes due runs. The index gives the candidates of each workflow and
// priority, a few more than asked for, since other workers may hold some; they
// are locked one by one, so that no more are than are taken.
const claimRuns = `
with clock as materialized (
  select clock_timestamp() + $5::interval as now
), candidate as materialized (
  select due.id, p.priority, due.due_at
  from unnest($1::text[], $2::integer[]) as ref (workflow, version)
  cross join (values (1::smallint), (0::smallint), (-1::smallint)) as p (priority)
  cross join lateral (
    select r.id, r.due_at
    from semel.run as r
    where r.workflow = ref.workflow
      and r.version = ref.version
      and r.priority = p.priority
      and r.paused_by is null
      and r.due_at <= (select now from clock)
    order by r.due_at
    limit 2 * $3::integer + 50
  ) as due
  order by p.priority desc, due.due_at
  limit 2 * $3::integer + 50
), taken as materialized (
  select r.id, r.lease_until is not null as lapsed, r.claimed_by, c.priority, c.due_at
  from candidate as c
  join semel.run as r on r.id = c.id
  where r.paused_by is null
    and r.due_at <= (select now from clock)
  order by c.priority desc, c.due_at
  limit $3::integer
  for no key update of r skip locked
), claimed as (
  update semel.run as r
  set
    attempt = r.attempt + 1,
    crashes = r.crashes + taken.lapsed::integer,
    state = 'running',
    reason = '',
    claimed_by = $4::text,
    updated_at = ` + runAt + `,
    lease_until = ` + runAt + ` + $6::interval,
    due_at = ` + runAt + ` + $6::interval
  from taken, clock
  where r.id = taken.id
  returning r.*, taken.lapsed, taken.claimed_by as lapsed_by, taken.priority as was_priority, taken.due_at as was_due
), noted as (
  insert into semel.run_note (run_id, at, kind, by, text)
  select id, updated_at, 'lapsed', lapsed_by, 'attempt ' || attempt - 1 || ' ended without a word'
  from claimed
  where lapsed
)
select ` + runColumns + `
from claimed as r
order by r.was_priority desc, r.was_due`

// Claim takes runs that are due; see semel.Runs.
func (s *Store) Claim(ctx context.Context, c semel.RunClaim, workflows []semel.WorkflowRef, limit int) ([]semel.Run, error) {
	if len(workflows) == 0 || limit <= 0 {
		return nil, nil
	}
	names, versions := split(workflows)
	var runs []semel.Run
	err := s.transact(ctx, "claim runs", func(tx pgx.Tx, _ bool) error {
		if err := s.trusted(ctx, tx); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, claimRuns, names, versions, limit, c.By, s.offset(), micros(c.Lease))
		if err != nil {
			return err
		}
		runs, err = pgx.CollectRows(rows, runRow)
		return err
	})
	return runs, err
}

// trusted refuses where the server may lack claims.
func (s *Store) trusted(ctx context.Context, tx pgx.Tx) error {
	server := s.group.server
	if server.suspect.Load() == nil {
		return nil
	}
	if err := server.judge(ctx, tx.Conn()); err != nil {
		return err
	}
	if why := server.suspect.Load(); why != nil {
		return &verdict{unavailable("claim", *why)}
	}
	return nil
}

func runRow(row pgx.CollectableRow) (semel.Run, error) { return scanRun(row) }

// split is each workflow once.
func split(workflows []semel.WorkflowRef) (names []string, versions []int) {
	seen := make(map[semel.WorkflowRef]bool, len(workflows))
	for _, w := range workflows {
		if !seen[w] {
			seen[w] = true
			names, versions = append(names, w.Name), append(versions, w.Version)
		}
	}
	return names, versions
}

// RenewRuns extends leases; see semel.Runs. It holds no lock while it waits for
// another: runs that somebody else has locked, as their own commits do, follow
// one by one. Beside an error it returns those that it renewed all the same.
func (s *Store) RenewRuns(ctx context.Context, fences []semel.RunFence, lease time.Duration) ([]semel.Run, error) {
	if len(fences) == 0 {
		return nil, nil
	}
	runs, err := s.renew(ctx, fences, lease, " skip locked")
	if err != nil {
		return nil, err
	}
	renewed := make(map[semel.ID]bool, len(runs))
	for i := range runs {
		renewed[runs[i].ID] = true
	}
	for _, f := range fences {
		if renewed[f.Run] {
			continue
		}
		late, lateErr := s.renew(ctx, []semel.RunFence{f}, lease, "")
		runs, err = append(runs, late...), errors.Join(err, lateErr)
	}
	return runs, err
}

func (s *Store) renew(ctx context.Context, fences []semel.RunFence, lease time.Duration, locked string) (runs []semel.Run, err error) {
	update := `
with held as materialized (
  select id
  from semel.run
  where id = any($1::uuid[])
  for no key update` + locked + `
)
update semel.run as r
set
  lease_until = greatest(r.lease_until, ` + runAt + ` + $3::interval),
  due_at = greatest(r.lease_until, ` + runAt + ` + $3::interval)
from held, (select clock_timestamp() + $4::interval as now) as clock
where r.id = held.id
  and r.attempt = ($2::integer[])[array_position($1::uuid[], r.id)]` + held + `
  and r.lease_until > clock.now
returning ` + runColumns
	ids, attempts := make([][16]byte, len(fences)), make([]int, len(fences))
	for i, f := range fences {
		ids[i], attempts[i] = f.Run, f.Attempt
	}
	err = s.transact(ctx, "renew leases", func(tx pgx.Tx, _ bool) error {
		rows, err := tx.Query(ctx, update, ids, attempts, micros(lease), s.offset())
		if err != nil {
			return err
		}
		runs, err = pgx.CollectRows(rows, runRow)
		return err
	})
	return runs, err
}

// NextDue is when the next run or schedule is due; see semel.Runs.
func (s *Store) NextDue(ctx context.Context, workflows []semel.WorkflowRef) (time.Time, error) {
	const query = `
select least(
  (select min(due.due_at)
   from unnest($1::text[], $2::integer[]) as ref (workflow, version)
   cross join (values (1::smallint), (0::smallint), (-1::smallint)) as p (priority)
   cross join lateral (
     select r.due_at
     from semel.run as r
     where r.workflow = ref.workflow
       and r.version = ref.version
       and r.priority = p.priority
       and r.paused_by is null
       and r.due_at is not null
     order by r.due_at
     limit 1
   ) as due),
  (select min(next_at) from semel.schedule where not paused))`
	names, versions := split(workflows)
	at, err := collect(ctx, s, "look for the next run", pgx.RowTo[*time.Time], query, names, versions)
	if err != nil || at[0] == nil {
		return time.Time{}, err
	}
	return at[0].UTC(), nil
}
