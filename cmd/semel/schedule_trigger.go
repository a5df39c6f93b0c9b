package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

func newScheduleTrigger(sh *shell) *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use: "trigger WORKFLOW [SCHEDULE] --key K", Short: "Start a run by hand, as a tick would",
		Long: `Start a run by hand as a tick of the schedule would, with its input, now. The
schedule itself stays as it is: its next tick starts another run.

The key of the run is "manual K", so that typing this twice is one run, and no
tick is taken for it. Give a K that says why, such as a ticket.`,
		Example: "  semel schedule trigger billing --key OPS-4417", Args: scheduleNamed,
	}
	cmd.Flags().Var(&onceText{to: &key}, "key", "what names this one run")
	find := sh.withSchedule(func(ctx context.Context, k *keeper, s *semel.ScheduleState) error {
		return sh.trigger(ctx, k, s, key)
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if key == "" {
			return usagef("--key is missing: it tells this run from others that are started by hand, and typing it twice is one run")
		}
		return find(cmd, args)
	}
	return cmd
}

func (sh *shell) trigger(ctx context.Context, k *keeper, s *semel.ScheduleState, key string) error {
	now, err := k.Now(ctx)
	if err != nil {
		return err
	}
	t := semel.Tick{At: now, Label: "manual " + key, Date: now.Format(time.DateOnly)}
	if zone, err := time.LoadLocation(s.Zone); err == nil {
		t.Date = now.In(zone).Format(time.DateOnly)
	}
	n := semel.NewRun{
		Workflow: s.Workflow, Version: s.Version, Definition: s.Definition, Key: semel.Key(t.Label), Input: s.Input,
		Trigger: semel.Trigger{Kind: semel.ByPerson, By: person(), Tick: &t},
	}
	e, err := sh.engine(ctx, k, engine.Options{})
	if err != nil {
		return err
	}
	defer sh.shut("the engine", func() error { return e.Close(ctx) })
	r, existing, err := e.Start(ctx, n)
	if err != nil {
		return sh.startError(err, &n)
	}
	return sh.showStart(ctx, k, &r, existing, false)
}
