package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/semel-dev/semel"
)

const runCancelHelp = `Ask a run to stop. Nothing new begins from then on; what may have been sent is
waited for and recorded, so the run may say "asked to stop" for a while before it
is cancelled. What had happened stays: a refund is another action, not a cancel.

The exit code is 0 if the run is cancelled or was asked to stop, also before, and
4 if it is too late: it has completed or failed.`

func newRunCancel(sh *shell) *cobra.Command {
	return sh.runChange(semel.CancelRun, "Ask a run to stop", runCancelHelp,
		"  semel run cancel billing 2026-03-01 --reason \"wrong day\"")
}

func newRunPause(sh *shell) *cobra.Command {
	return sh.runChange(semel.PauseRun, "Leave a run alone until it is resumed", `Leave a run alone until semel run resume: no new step begins. A step that is
under way ends and is recorded. What the run waits for may come meanwhile, and
counts when it goes on.

The exit code is 0 if it is paused, also before, and 4 if it has ended.`,
		"  semel run pause billing 2026-03-01 --reason \"the ledger is being moved\"")
}

func newRunResume(sh *shell) *cobra.Command {
	return sh.runChange(semel.ResumeRun, "Let a paused run go on", `Let a paused run go on where it stood.

The exit code is 0 if it goes on, also if it was not paused, and 4 if it has
ended.`, "  semel run resume billing 2026-03-01 --reason \"the ledger is moved\"")
}

// runChange is the command by which a person asks something of one run.
func (sh *shell) runChange(verb semel.RunVerb, short, long, example string) *cobra.Command {
	c := semel.RunCommand{Verb: verb}
	cmd := &cobra.Command{
		Use: string(verb) + " (ID | WORKFLOW KEY) --reason TEXT", Short: short, Long: long, Example: example,
		RunE: ours(func(cmd *cobra.Command, args []string) error {
			name, err := nameRun(cmd, args)
			if err != nil {
				return err
			}
			if err := validDecision(c.By, c.Reason); err != nil {
				return err
			}
			return sh.changeRun(cmd.Context(), name, c)
		}),
	}
	decisionFlags(cmd, &c.By, &c.Reason)
	return cmd
}

// decisionFlags are the flags of what a person decides.
func decisionFlags(cmd *cobra.Command, by, reason *string) {
	cmd.Flags().StringVar(reason, "reason", "", "why: it is kept, with who and when")
	cmd.Flags().StringVar(by, "by", person(), "who decides")
	cmd.Flags().Lookup("by").DefValue = "user@host"
}

func validDecision(by, reason string) error {
	switch {
	case strings.TrimSpace(reason) == "":
		return usagef("--reason is missing: say why, it is kept for whoever looks at this later")
	case strings.TrimSpace(by) == "":
		return usagef("--by is empty: say who decides")
	}
	return nil
}

func (sh *shell) changeRun(ctx context.Context, name runName, c semel.RunCommand) error {
	k, err := sh.lookKeeper(ctx)
	if err != nil {
		return sh.noRun(err, name)
	}
	defer sh.shut("the database", k.Close)
	was, err := name.find(ctx, sh, k)
	if err != nil {
		return err
	}
	r, err := k.ChangeRun(ctx, was.ID, c)
	if refused, ok := errors.AsType[*semel.RunStateError](err); ok {
		r = refused.Run
		if !holdsAlready(&r, c.Verb) {
			return &refusedError{exitRefused, fmt.Sprintf("Refused: %s. Nothing was changed. See: %s", refusalOf(refused), sh.command("run show "+r.ID.String()))}
		}
		was = r
	} else if err != nil {
		return sh.noRun(err, name)
	}
	return sh.showChange(ctx, k, &was, &r, c.Verb)
}

// refusalOf is why a run does not take what was asked of it.
func refusalOf(e *semel.RunStateError) string {
	if e.Run.Cancel && !e.Run.State.Ended() {
		return fmt.Sprintf("run %s was asked to stop, and takes nothing else", e.Run.ID)
	}
	return e.Error()
}

// holdsAlready reports whether what was asked of a run is so, although the run
// did not take it: asking twice is no mistake.
func holdsAlready(r *semel.Run, verb semel.RunVerb) bool {
	switch verb {
	case semel.CancelRun:
		return r.State == semel.RunCancelled
	case semel.PauseRun:
		return r.Paused && !r.State.Ended()
	case semel.ResumeRun:
		return !r.Paused && !r.State.Ended()
	case semel.RetryRun:
		return !r.Paused && !r.Cancel && (r.State == semel.RunRunning || r.State == semel.RunWaiting)
	}
	return false
}

func (sh *shell) showChange(ctx context.Context, k *keeper, was, r *semel.Run, verb semel.RunVerb) error {
	waits, err := k.Waits(ctx, r.ID)
	if err != nil {
		return err
	}
	now, err := k.Now(ctx)
	if err != nil {
		return err
	}
	if sh.json() {
		err = sh.print(sh.describeRun(r, waits, now))
	} else {
		err = sh.runTable(r, now)
	}
	if err != nil {
		sh.say("it is recorded, but could not be shown: %v", err)
	}
	sh.say("%s", changeWords(was, r, verb))
	fmt.Fprintf(sh.err, "  %s\n", sh.paintedRun(r, visible(sh.adviseRun(r, waits, now).headline)))
	return nil
}

// changeWords says what the request of a person did.
func changeWords(was, r *semel.Run, verb semel.RunVerb) string {
	switch verb {
	case semel.CancelRun:
		switch {
		case was.State == semel.RunCancelled:
			return "it was cancelled before; nothing was changed"
		case r.State == semel.RunCancelled:
			return "confirmed: it is cancelled"
		case was.Cancel:
			return "it was asked to stop before; that is not confirmed yet"
		}
		return "requested, not confirmed yet: the worker that has it, or takes it next, stops it"
	case semel.PauseRun:
		if was.Paused {
			return "it was paused before; nothing was changed"
		}
		return "paused"
	case semel.ResumeRun:
		if !was.Paused {
			return "it is not paused; nothing was changed"
		}
		return "resumed"
	case semel.RetryRun:
		if holdsAlready(was, verb) {
			return "it goes on by itself; nothing was changed"
		}
		return "it is tried again, under the same keys: what happened is not repeated"
	}
	return ""
}
