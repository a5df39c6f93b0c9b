package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/semel-dev/semel"
)

const (
	schedulesOf = `
		select name
		from schedule
		where workflow = ?`
	deleteSchedule = `
		delete from schedule
		where workflow = ? and name = ?`
	// replaceSchedule has a worker look again where the ticks or what they
	// start have changed.
	replaceSchedule = `
		insert into schedule (workflow, name, cron, zone, missed, input, seen, next_at)
		values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)
		on conflict (workflow, name) do update
		set next_at = case when cron = ?3 and zone = ?4 and input = ?6 then next_at else ?7 end,
			cron = ?3,
			zone = ?4,
			missed = ?5,
			input = ?6`
	selectSchedules = `
		select s.workflow, s.name, s.cron, s.zone, s.missed, s.input, s.paused_by, s.seen, s.next_at, w.version, w.digest
		from schedule s
		join workflow w on w.name = s.workflow
		order by s.workflow, s.name`
	fireSchedule = `
		update schedule
		set seen = ?4,
			next_at = ?5
		where workflow = ?1
			and name = ?2
			and seen = ?3
			and paused_by is null`
	pauseSchedule = `
		update schedule
		set paused_by = ?3,
			seen = case when paused_by is not null and ?3 is null then max(seen, ?4) else seen end,
			next_at = case when paused_by is not null and ?3 is null then ?4 else next_at end
		where workflow = ?1
			and name = ?2`
)

// replaceSchedules makes d's schedules those of its workflow; one that stays
// goes on where it stood.
func replaceSchedules(ctx context.Context, s session, d *semel.WorkflowDefinition, at int64) error {
	keep := map[string]bool{}
	for _, sch := range d.Schedules {
		keep[sch.Name] = true
		if _, err := exec(ctx, s, replaceSchedule, d.Name, sch.Name, sch.Cron, sch.Zone, sch.Missed, string(sch.Input), at); err != nil {
			return err
		}
	}
	var gone []string
	err := each(ctx, s, func(sc scan) error {
		var name string
		err := sc(&name)
		if !keep[name] {
			gone = append(gone, name)
		}
		return err
	}, schedulesOf, d.Name)
	for _, name := range gone {
		if err == nil {
			_, err = exec(ctx, s, deleteSchedule, d.Name, name)
		}
	}
	return err
}

// Schedules lists all schedules.
func (s *Store) Schedules(ctx context.Context) ([]semel.ScheduleState, error) {
	var all []semel.ScheduleState
	err := s.read(ctx, func(tx *sql.Tx) error {
		all = nil
		return each(ctx, tx, func(sc scan) error {
			var st semel.ScheduleState
			var input string
			var paused sql.NullString
			var seen, next int64
			err := sc(&st.Workflow, &st.Name, &st.Cron, &st.Zone, &st.Missed, &input, &paused, &seen, &next, &st.Version, &st.Definition)
			if input != "" {
				st.Input = []byte(input)
			}
			st.Paused, st.PausedBy, st.Seen, st.NextAt = paused.Valid, paused.String, fromNano(seen), fromNano(next)
			all = append(all, st)
			return err
		}, selectSchedules)
	})
	return all, err
}

// Fire starts the runs of a schedule's ticks and moves it on; see semel.Runs.
func (s *Store) Fire(ctx context.Context, f semel.Firing) error {
	w := &firing{Firing: f}
	for _, n := range f.Runs {
		b, err := newBirth(n, s.clock.now())
		if err != nil {
			return err
		}
		w.runs = append(w.runs, b)
	}
	return s.submit(ctx, w, false)
}

// firing is the work of Fire.
type firing struct {
	semel.Firing
	runs []*birth
}

func (f *firing) write(w *writer, at int64) error {
	ctx := context.Background()
	n, err := exec(ctx, w, fireSchedule, f.Workflow, f.Name, nano(f.Seen), nano(f.Last), nano(f.NextAt))
	if err != nil {
		return err
	}
	if n == 0 {
		return &answer{fmt.Sprintf("schedule %q of %s was moved on or paused meanwhile", f.Name, f.Workflow), semel.ErrStale}
	}
	for _, b := range f.runs {
		if err := b.insert(ctx, w, at); err != nil {
			return err
		}
	}
	return nil
}

// PauseSchedule stops a schedule, or lets it go on.
func (s *Store) PauseSchedule(ctx context.Context, workflow, name string, paused bool, by string) error {
	return s.submit(ctx, &schedulePause{workflow, name, paused, by}, false)
}

type schedulePause struct {
	workflow, name string
	paused         bool
	by             string
}

func (p *schedulePause) write(w *writer, at int64) error {
	var by any
	if p.paused {
		by = p.by
	}
	n, err := exec(context.Background(), w, pauseSchedule, p.workflow, p.name, by, at)
	if err == nil && n == 0 {
		err = &answer{fmt.Sprintf("%s has no schedule %q", p.workflow, p.name), semel.ErrNotFound}
	}
	return err
}
