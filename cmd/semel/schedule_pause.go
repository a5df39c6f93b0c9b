package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/semel-dev/semel"
)

func newSchedulePause(sh *shell) *cobra.Command {
	return sh.schedulePause("pause", "Let a schedule start no runs until it is resumed", `Let a schedule start no runs until semel schedule resume. Runs that it has started
go on. The ticks of the time between are left out: they are not missed ones, and
nothing makes up for them.

Pausing twice is no mistake: the exit code is 0.`, true)
}

func newScheduleResume(sh *shell) *cobra.Command {
	return sh.schedulePause("resume", "Let a paused schedule go on", `Let a paused schedule go on from now. The ticks of the pause are left out;
semel schedule trigger starts a run for what must not be.

Resuming twice is no mistake: the exit code is 0.`, false)
}

func (sh *shell) schedulePause(use, short, long string, pause bool) *cobra.Command {
	var by string
	cmd := &cobra.Command{
		Use: use + " WORKFLOW [SCHEDULE]", Short: short, Long: long, Example: "  semel schedule " + use + " billing", Args: scheduleNamed,
	}
	cmd.Flags().StringVar(&by, "by", person(), "who decides")
	cmd.Flags().Lookup("by").DefValue = "user@host"
	cmd.RunE = sh.withSchedule(func(ctx context.Context, k *keeper, s *semel.ScheduleState) error {
		said := map[bool]string{true: "paused", false: "it goes on"}[pause]
		if s.Paused == pause {
			said = map[bool]string{true: "it was paused before, by " + orNone(s.PausedBy) + "; nothing was changed", false: "it is not paused; nothing was changed"}[pause]
		} else {
			if err := k.PauseSchedule(ctx, s.Workflow, s.Name, pause, by); err != nil {
				return err
			}
			again, err := sh.findSchedule(ctx, k, []string{s.Workflow, s.Name}) // resuming leaves out the ticks of the pause
			if err != nil {
				return err
			}
			s = &again
		}
		now, err := k.Now(ctx)
		if err != nil {
			return err
		}
		if sh.json() {
			return sh.print(describeSchedule(s))
		}
		if err := sh.listSchedules([]semel.ScheduleState{*s}, now); err != nil {
			return err
		}
		sh.say("%s", said)
		return nil
	})
	return cmd
}
