package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/semel-dev/semel"
)

const runGroupHelp = `A run is one execution of a workflow for one intention, which its key names:
starting twice under one key is one run. Workers execute runs; a run that waits
for a time, an event, an approval or an outcome costs nothing meanwhile, and any
worker goes on with it.

  running    a worker executes it, or will as soon as one is free
  waiting    for a time, an event, an approval, another run or an outcome
  held       needs a person
  completed  the workflow returned
  failed     a step failed, and nothing happened in it; what others did stays
  cancelled  stopped at a person's request; what had happened stays

A run is named by its ID, or by its workflow and key.`

func newRun(sh *shell) *cobra.Command {
	return group("run", "Start runs of workflows, look at them, stop and retry them", runGroupHelp,
		"  semel run start billing --key 2026-03-01 --field day=2026-03-01\n  semel run list --state held\n  semel run show billing 2026-03-01",
		newRunStart(sh), newRunList(sh), newRunShow(sh), newRunWatch(sh), newRunCancel(sh), newRunPause(sh), newRunResume(sh), newRunRetry(sh))
}

// runName names one run: by its ID, or by workflow and key.
type runName struct {
	id       semel.ID
	workflow string
	key      semel.Key
}

// nameRun reads the arguments of a command about one run.
func nameRun(cmd *cobra.Command, args []string) (runName, error) {
	switch len(args) {
	case 1:
		id, err := semel.ParseID(args[0])
		if err != nil {
			return runName{}, usagef("%q is not the ID of a run: copy it from semel run list, or give workflow and key: %s WORKFLOW KEY", args[0], cmd.CommandPath())
		}
		return runName{id: id}, nil
	case 2:
		n := runName{workflow: args[0], key: semel.Key(args[1])}
		return n, errors.Join(semel.ValidateStepName(args[0]), n.key.Validate())
	}
	return runName{}, usagef("%s needs one run: its ID, or its workflow and key. See: semel run list", cmd.CommandPath())
}

func (n runName) String() string {
	switch {
	case n.key != "":
		return fmt.Sprintf("run of %s with key %q", n.workflow, n.key)
	case n.workflow != "":
		return "run of " + n.workflow
	}
	return "run " + n.id.String()
}

// find reads the run.
func (n runName) find(ctx context.Context, sh *shell, k *keeper) (r semel.Run, err error) {
	if n.workflow != "" {
		r, err = k.FindRun(ctx, n.workflow, n.key)
	} else {
		r, err = k.LoadRun(ctx, n.id)
	}
	return r, sh.noRun(err, n)
}

// noRun says that a run was never started here.
func (sh *shell) noRun(err error, n runName) error {
	if errors.Is(err, semel.ErrNotFound) || errors.Is(err, errNothingYet) {
		return usagef("there is no %s in this database. See: %s", n, sh.command("run list"))
	}
	return err
}

// validRunState refuses what is no state of a run.
func validRunState(state string) error {
	switch semel.RunState(state) {
	case "", semel.RunRunning, semel.RunWaiting, semel.RunHeld, semel.RunCompleted, semel.RunFailed, semel.RunCancelled:
		return nil
	}
	return usagef("--state %q is unknown: use running, waiting, held, completed, failed or cancelled", state)
}

// codeOfRun is the exit code of a command that waited for a run.
func codeOfRun(r *semel.Run) int {
	switch r.State {
	case semel.RunCompleted:
		return exitCompleted
	case semel.RunFailed, semel.RunCancelled:
		return exitFailed
	case semel.RunHeld:
		return exitUnknown
	case semel.RunRunning, semel.RunWaiting:
		return exitInProgress
	}
	return exitBug
}
