package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel"
)

// reschedule replaces the schedules of a workflow. One that stays keeps where
// it stands; one whose ticks change is looked at again now.
func reschedule(ctx context.Context, tx pgx.Tx, d *semel.WorkflowDefinition, now time.Time) error {
	const remove = `
delete from semel.schedule
where workflow = $1::text
  and name <> all($2::text[])`
	const upsert = `
insert into semel.schedule as s (workflow, name, version, cron, zone, missed, input, seen, next_at)
values ($1::text, $2::text, $3::integer, $4::text, $5::text, $6::text, $7::bytea, $8::timestamptz, $8::timestamptz)
on conflict (workflow, name) do update
set version = excluded.version, cron = excluded.cron, zone = excluded.zone, missed = excluded.missed, input = excluded.input,
  next_at = case
    when (s.cron, s.zone, s.input) = (excluded.cron, excluded.zone, excluded.input) then s.next_at
    else excluded.next_at end`
	names := make([]string, len(d.Schedules))
	for i, sch := range d.Schedules {
		names[i] = sch.Name
	}
	if _, err := tx.Exec(ctx, remove, d.Name, names); err != nil {
		return err
	}
	for _, sch := range d.Schedules {
		if _, err := tx.Exec(ctx, upsert, d.Name, sch.Name, d.Version, sch.Cron, sch.Zone, sch.Missed, notNil(sch.Input), now); err != nil {
			return err
		}
	}
	return nil
}

// Schedules lists all schedules; see semel.Runs.
func (s *Store) Schedules(ctx context.Context) ([]semel.ScheduleState, error) {
	const query = `
select s.workflow, s.name, s.version, w.definition, s.cron, s.zone, s.missed, s.input, s.paused, s.paused_by, s.seen, s.next_at
from semel.schedule as s
join semel.workflow as w on w.name = s.workflow
order by s.workflow, s.name`
	return collect(ctx, s, "list schedules", func(row pgx.CollectableRow) (semel.ScheduleState, error) {
		var st semel.ScheduleState
		err := row.Scan(&st.Workflow, &st.Name, &st.Version, &st.Definition, &st.Cron, &st.Zone, &st.Missed, &st.Input, &st.Paused, &st.PausedBy, &st.Seen, &st.NextAt)
		st.Seen, st.NextAt = st.Seen.UTC(), st.NextAt.UTC()
		if len(st.Input) == 0 {
			st.Input = nil
		}
		return st, err
	}, query)
}

// Fire starts the runs of a schedule and moves it on; see semel.Runs.
func (s *Store) Fire(ctx context.Context, f semel.Firing) error {
	const move = `
update semel.schedule
set seen = $4::timestamptz, next_at = $5::timestamptz
where workflow = $1::text
  and name = $2::text
  and seen = $3::timestamptz
  and not paused`
	const moved = `
select seen = $3::timestamptz
from semel.schedule
where workflow = $1::text
  and name = $2::text`
	starts := make([]beginning, len(f.Runs))
	for i, n := range f.Runs {
		var err error
		if starts[i], err = s.begin(n, nil); err != nil {
			return err
		}
	}
	stale := &verdict{fmt.Errorf("schedule %q of %s: %w", f.Name, f.Workflow, semel.ErrStale)}
	return s.transact(ctx, "fire a schedule of "+f.Workflow, func(tx pgx.Tx, doubt bool) error {
		tag, err := tx.Exec(ctx, move, f.Workflow, f.Name, micro(f.Seen), micro(f.Last), f.NextAt)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			var mine bool
			if err := tx.QueryRow(ctx, moved, f.Workflow, f.Name, micro(f.Last)).Scan(&mine); err != nil && !errors.Is(err, pgx.ErrNoRows) {
				return err
			}
			if doubt && mine {
				return nil
			}
			return stale
		}
		var batch pgx.Batch
		for _, b := range starts {
			batch.Queue(insertRun, b.args(s.offset())...)
		}
		return tx.SendBatch(ctx, &batch).Close()
	})
}

// micro is t as the database keeps it.
func micro(t time.Time) time.Time { return t.Truncate(time.Microsecond) }

// PauseSchedule stops a schedule, or lets it go on; see semel.Runs.
func (s *Store) PauseSchedule(ctx context.Context, workflow, name string, paused bool, by string) error {
	const update = `
update semel.schedule
set paused = $3::boolean, paused_by = $4::text,
  seen = case when paused and not $3::boolean then greatest(seen, $5::timestamptz) else seen end,
  next_at = case when paused and not $3::boolean then $5::timestamptz else next_at end
where workflow = $1::text
  and name = $2::text`
	if !paused {
		by = ""
	}
	return s.transact(ctx, "pause a schedule of "+workflow, func(tx pgx.Tx, _ bool) error {
		now, err := s.clockOf(ctx, tx)
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, update, workflow, name, paused, by, now)
		if err == nil && tag.RowsAffected() == 0 {
			return &verdict{fmt.Errorf("schedule %q of %s: %w", name, workflow, semel.ErrNotFound)}
		}
		return err
	})
}
