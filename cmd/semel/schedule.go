package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/schedule"
)

const scheduleHelp = `A schedule starts a run of its workflow at every tick, under the tick's name as
key, so that any number of workers start one run per tick. Workers register the
schedules of the workflows that they have. A schedule is named by its workflow,
and by its own name where the workflow has several.`

func newSchedule(sh *shell) *cobra.Command {
	return group("schedule", "Look at schedules, pause them, start a run by hand", scheduleHelp,
		"  semel schedule list\n  semel schedule next billing --ticks 10\n  semel schedule pause billing",
		newScheduleList(sh), newScheduleNext(sh), newSchedulePause(sh), newScheduleResume(sh), newScheduleTrigger(sh))
}

// scheduleJSON is a schedule as a program reads it.
type scheduleJSON struct {
	Workflow string     `json:"workflow"`
	Name     string     `json:"name"`
	Version  int        `json:"version"`
	Cron     string     `json:"cron"`
	Zone     string     `json:"zone"`
	Missed   string     `json:"missed"`
	Paused   bool       `json:"paused"`
	PausedBy string     `json:"paused_by,omitempty"`
	Seen     *time.Time `json:"seen"` // the last tick that was handled, or when it was registered
	Next     *tickJSON  `json:"next"`
	Problem  string     `json:"problem,omitempty"`
}

type tickJSON struct {
	At    *time.Time `json:"at"`
	Local string     `json:"local"` // in the zone of the schedule
	Key   string     `json:"key"`   // of the run
}

// nextTick is the first tick that has not been handled: it may be due already.
func nextTick(s *semel.ScheduleState) (schedule.Tick, error) {
	spec, err := schedule.Parse(s.Cron, s.Zone)
	if err != nil {
		return schedule.Tick{}, err
	}
	t, _ := spec.Next(s.Seen)
	return t, nil
}

// keyOfTick is the key of the run that a tick starts.
func keyOfTick(s *semel.ScheduleState, t schedule.Tick) string {
	if s.Name == "" {
		return t.Label
	}
	return s.Name + " " + t.Label
}

func describeTick(s *semel.ScheduleState, t schedule.Tick) *tickJSON {
	return &tickJSON{instant(t.At), t.Local, keyOfTick(s, t)}
}

func describeSchedule(s *semel.ScheduleState) scheduleJSON {
	d := scheduleJSON{
		Workflow: s.Workflow, Name: s.Name, Version: s.Version, Cron: s.Cron, Zone: s.Zone, Missed: missedWord(s), Paused: s.Paused, PausedBy: s.PausedBy,
		Seen: instant(s.Seen),
	}
	t, err := nextTick(s)
	if err != nil {
		d.Problem = err.Error()
		return d
	}
	d.Next = describeTick(s, t)
	return d
}

func missedWord(s *semel.ScheduleState) string {
	if s.Missed == "" {
		return string(schedule.Once)
	}
	return s.Missed
}

func newScheduleList(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List schedules with their next tick",
		Long: `List all schedules with their next tick, in their own zone and in UTC, and the
last one that was handled. A tick that is due is started as soon as a worker
runs.`,
		Example: "  semel schedule list\n  semel schedule list --output json", Args: noArguments,
		RunE: ours(func(cmd *cobra.Command, _ []string) error {
			k, err := sh.lookKeeper(cmd.Context())
			if errors.Is(err, errNothingYet) {
				return sh.listSchedules(nil, time.Time{})
			}
			if err != nil {
				return err
			}
			defer sh.shut("the database", k.Close)
			now, err := k.Now(cmd.Context())
			if err != nil {
				return err
			}
			all, err := k.Schedules(cmd.Context())
			if err != nil {
				return err
			}
			return sh.listSchedules(all, now)
		}),
	}
}

func (sh *shell) listSchedules(all []semel.ScheduleState, now time.Time) error {
	if sh.json() {
		list := struct {
			Schedules []scheduleJSON `json:"schedules"`
		}{[]scheduleJSON{}}
		for i := range all {
			list.Schedules = append(list.Schedules, describeSchedule(&all[i]))
		}
		return sh.print(list)
	}
	if len(all) == 0 {
		sh.say("no schedules: a worker registers those of its workflows when it starts")
		return nil
	}
	out := &tolerant{to: sh.out}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "WORKFLOW\tSCHEDULE\tCRON\tZONE\tMISSED\tNEXT\tIN UTC\tLAST")
	for i := range all {
		s := &all[i]
		local, utc := nextWords(s, now)
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", oneLine(semel.WorkflowRef{Name: s.Workflow, Version: s.Version}.String()), orDash(s.Name),
			oneLine(s.Cron), orDash(s.Zone), missedWord(s), local, utc, moment(s.Seen))
	}
	_ = table.Flush() // the writer keeps its error
	if out.err != nil {
		return fmt.Errorf("write to stdout: %w", out.err)
	}
	return nil
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return oneLine(text)
}

// nextWords says when a schedule starts a run next, in its zone and in UTC.
func nextWords(s *semel.ScheduleState, now time.Time) (local, utc string) {
	t, err := nextTick(s)
	switch {
	case s.Paused:
		return "paused by " + orNone(s.PausedBy), "-"
	case err != nil:
		return oneLine(err.Error()), "-"
	case !t.At.After(now):
		return t.Local, "due, the next worker starts it"
	}
	return t.Local, moment(t.At) + " (" + relative(t.At, now) + ")"
}

// findSchedule finds one schedule; the name may be left out where there is one.
func (sh *shell) findSchedule(ctx context.Context, k *keeper, args []string) (semel.ScheduleState, error) {
	all, err := k.Schedules(ctx)
	if err != nil {
		return semel.ScheduleState{}, err
	}
	var found []semel.ScheduleState
	for _, s := range all {
		if s.Workflow == args[0] && (len(args) == 1 || s.Name == args[1]) {
			found = append(found, s)
		}
	}
	switch len(found) {
	case 0:
		return semel.ScheduleState{}, usagef("there is no such schedule. See: %s", sh.command("schedule list"))
	case 1:
		return found[0], nil
	}
	return semel.ScheduleState{}, usagef("%s has %d schedules: name one of them. See: %s", args[0], len(found), sh.command("schedule list"))
}

// scheduleNamed checks the arguments of a command about one schedule.
func scheduleNamed(cmd *cobra.Command, args []string) error {
	if len(args) < 1 || len(args) > 2 {
		return usagef("%s needs one schedule: its workflow, and its name where the workflow has several. See: semel schedule list", cmd.CommandPath())
	}
	return nil
}

// withSchedule opens the database and finds the schedule.
func (sh *shell) withSchedule(work func(ctx context.Context, k *keeper, s *semel.ScheduleState) error) func(*cobra.Command, []string) error {
	return ours(func(cmd *cobra.Command, args []string) error {
		k, err := sh.lookKeeper(cmd.Context())
		if errors.Is(err, errNothingYet) {
			return usagef("there are no schedules: the default database does not exist yet")
		}
		if err != nil {
			return err
		}
		defer sh.shut("the database", k.Close)
		s, err := sh.findSchedule(cmd.Context(), k, args)
		if err != nil {
			return err
		}
		return work(cmd.Context(), k, &s)
	})
}
