package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/semel-dev/semel"
)

const runRetryHelp = `Try again what failed in a run, or let a held run go on when its cause is gone.
Steps that happened keep their answers and are not repeated; what failed, so that
nothing happened, is tried again under the same keys. An outcome that is unknown
stays unknown: this sends nothing that semel op retry would refuse.

Many at once: --workflow W --state held|failed, and --since. Without --yes this
counts and lists them, and changes nothing. With --yes it acts on those that are
still in that state when their turn comes, and says how many were not.

The exit code is 0 also if the run goes on by itself already, and 4 if it has
completed or was cancelled.`

// bulkRetry are the flags of run retry for many runs.
type bulkRetry struct {
	runSelection
	yes bool
}

func newRunRetry(sh *shell) *cobra.Command {
	var b bulkRetry
	cmd := sh.runChange(semel.RetryRun, "Try again what failed, in one run or in many", runRetryHelp,
		"  semel run retry billing 2026-03-01 --reason \"the bank is back\"\n  semel run retry --workflow billing --state failed --since 24h\n  semel run retry --workflow billing --state failed --since 24h --reason \"the bank is back\" --yes")
	cmd.Use = "retry (ID | WORKFLOW KEY | --workflow W --state S) --reason TEXT"
	b.flags(cmd)
	cmd.Flags().BoolVar(&b.yes, "yes", false, "do it; without this, many runs are only listed")
	one := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		many := b.workflow != "" || b.state != "" || b.since != "" || b.yes
		if !many {
			return one(cmd, args)
		}
		return ours(func(cmd *cobra.Command, args []string) error {
			return sh.retryMany(cmd, args, &b)
		})(cmd, args)
	}
	return cmd
}

func (sh *shell) retryMany(cmd *cobra.Command, args []string, b *bulkRetry) error {
	by, _ := cmd.Flags().GetString("by") // both exist
	reason, _ := cmd.Flags().GetString("reason")
	switch {
	case len(args) > 0:
		return usagef("name one run, or select many with --workflow and --state, not both")
	case b.workflow == "":
		return usagef("--workflow is missing: say whose runs are to be tried again")
	case b.state != string(semel.RunHeld) && b.state != string(semel.RunFailed):
		return usagef("--state %q is not held or failed: only such runs can be tried again", b.state)
	}
	if b.yes {
		if err := validDecision(by, reason); err != nil {
			return err
		}
	}
	ctx := cmd.Context()
	k, err := sh.lookKeeper(ctx)
	if err != nil {
		return sh.noRun(err, runName{workflow: b.workflow})
	}
	defer sh.shut("the database", k.Close)
	now, err := k.Now(ctx)
	if err != nil {
		return err
	}
	f, err := b.filter(now)
	if err != nil {
		return err
	}
	if !b.yes {
		return sh.previewRetry(ctx, k, f)
	}
	found, paused, err := retryable(ctx, k, f)
	if err != nil {
		return err
	}
	return sh.retryThese(ctx, k, found, paused, semel.RunCommand{Verb: semel.RetryRun, By: by, Reason: reason})
}

// retryable are the runs that f selects, without those that are paused.
func retryable(ctx context.Context, k *keeper, f semel.RunFilter) (found []semel.Run, paused int, err error) {
	for r, err := range k.ListRuns(ctx, f) {
		if err != nil {
			return nil, 0, err
		}
		if r.Paused {
			paused++
			continue
		}
		found = append(found, r)
	}
	return found, paused, nil
}

// retryJSON is what a program reads of a retry of many runs.
type retryJSON struct {
	Selected int      `json:"selected"`
	Retried  int      `json:"retried"`
	Resolved int      `json:"resolved_meanwhile"`
	Paused   int      `json:"paused"` // and left alone
	Runs     []string `json:"runs"`   // that were retried, or would be
}

func (sh *shell) previewRetry(ctx context.Context, k *keeper, f semel.RunFilter) error {
	found, paused, err := retryable(ctx, k, f)
	if err != nil {
		return err
	}
	if sh.json() {
		out := retryJSON{Selected: len(found), Paused: paused, Runs: []string{}}
		for i := range found {
			out.Runs = append(out.Runs, found[i].ID.String())
		}
		return sh.print(out)
	}
	f.Limit = shownItems + 1
	now, err := k.Now(ctx)
	if err != nil {
		return err
	}
	if err := sh.listRunsTable(ctx, k, f, now); err != nil {
		return err
	}
	sh.leftPaused(paused)
	sh.say("selected to be tried again: %d. Nothing was changed; to do it, add: --reason TEXT --yes", len(found))
	return nil
}

// leftPaused says how many of the selected runs nothing is done to.
func (sh *shell) leftPaused(n int) {
	if n > 0 {
		sh.say("left alone, since they are paused: %d; semel run resume lets one go on", n)
	}
}

func (sh *shell) retryThese(ctx context.Context, k *keeper, found []semel.Run, paused int, c semel.RunCommand) error {
	out := retryJSON{Selected: len(found), Paused: paused, Runs: []string{}}
	sh.leftPaused(paused)
	progress := sh.progressLine("retrying", "runs")
	defer progress.end()
	for i, was := range slices.Backward(found) { // the oldest first
		progress.show(len(found)-i, len(found))
		r, err := k.LoadRun(ctx, was.ID)
		if err == nil && (r.State != was.State || r.Paused) {
			out.Resolved++
			continue
		}
		if err == nil {
			_, err = k.ChangeRun(ctx, was.ID, c)
		}
		if _, ok := errors.AsType[*semel.RunStateError](err); ok {
			out.Resolved++
			continue
		}
		if err != nil {
			return fmt.Errorf("%w\n%d of %d were retried before that: run the same command again for the others", err, out.Retried, len(found))
		}
		out.Retried++
		out.Runs = append(out.Runs, was.ID.String())
	}
	if sh.json() {
		return sh.print(out)
	}
	return sh.write(fmt.Appendf(nil, "%d retried, %d had been resolved meanwhile\n", out.Retried, out.Resolved))
}
