package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/schedule"
)

func newScheduleNext(sh *shell) *cobra.Command {
	var n int
	cmd := &cobra.Command{
		Use: "next WORKFLOW [SCHEDULE]", Short: "Show the next ticks of a schedule",
		Long: `Show the next ticks of a schedule: the time in its zone, in UTC, and the key of
the run. Where the clocks change, this shows what happens: a repeated hour starts
no second run of a schedule with a fixed hour, and a skipped one still starts it.`,
		Example: "  semel schedule next billing --ticks 10", Args: scheduleNamed,
	}
	cmd.Flags().IntVar(&n, "ticks", 5, "how many, at most 1000")
	cmd.RunE = sh.withSchedule(func(ctx context.Context, k *keeper, s *semel.ScheduleState) error {
		if n < 1 || n > 1000 {
			return usagef("--ticks %d: give 1 to 1000", n)
		}
		now, err := k.Now(ctx)
		if err != nil {
			return err
		}
		ticks, err := nextTicks(s, now, n)
		if err != nil {
			return err
		}
		return sh.showTicks(s, ticks)
	})
	return cmd
}

// nextTicks are the next n ticks of a schedule after now.
func nextTicks(s *semel.ScheduleState, now time.Time, n int) ([]*tickJSON, error) {
	spec, err := schedule.Parse(s.Cron, s.Zone)
	if err != nil {
		return nil, err
	}
	ticks := []*tickJSON{}
	for at := now; len(ticks) < n; {
		t, ok := spec.Next(at)
		if !ok {
			break
		}
		ticks, at = append(ticks, describeTick(s, t)), t.At
	}
	return ticks, nil
}

func (sh *shell) showTicks(s *semel.ScheduleState, ticks []*tickJSON) error {
	if sh.json() {
		return sh.print(struct {
			Workflow string      `json:"workflow"`
			Name     string      `json:"name"`
			Ticks    []*tickJSON `json:"ticks"`
		}{s.Workflow, s.Name, ticks})
	}
	out := &tolerant{to: sh.out}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "IN ITS ZONE\tIN UTC\tKEY OF THE RUN")
	for _, t := range ticks {
		fmt.Fprintf(table, "%s\t%s\t%s\n", t.Local, moment(*t.At), oneLine(t.Key))
	}
	_ = table.Flush() // the writer keeps its error
	if out.err != nil {
		return fmt.Errorf("write to stdout: %w", out.err)
	}
	if s.Paused {
		sh.say("it is paused by %s: none of these starts a run until semel schedule resume", orNone(s.PausedBy))
	}
	return nil
}
