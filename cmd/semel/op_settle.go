package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

func newSettle(sh *shell) *cobra.Command {
	var s engine.Settlement
	var didNot bool
	var resultFile string
	cmd := &cobra.Command{
		Use: "settle ID --happened|--did-not-happen --reason TEXT", Short: "Record what a person found out about an unknown outcome",
		Long: `Record what a person found out about an operation whose outcome is unknown, or
that an incident has stopped. The decision is evidence like any other: who, why
and where the proof is. Settling sends nothing.

--happened        the effect is there: the operation is completed, and every
                  later request for it gets this answer
--did-not-happen  the effect is not there, and can no longer come: the same
                  request may be made again, under the same key

"It did not happen" before the request can no longer be running needs --force.
The exit code is 0 if the decision was recorded, 4 if the operation was settled
before, changed since --if-version, or it is too early, 5 if it is in progress.`,
		Example: `  semel op settle 019b2c5e-7c1a-7b3e-9d2f-3a5b6c7d8e9f --happened \
      --reason "found in the bank's list of 2 March" --reference TX-99812`,
		Args: exactlyOne,
		RunE: ours(func(cmd *cobra.Command, args []string) error {
			id, err := semel.ParseID(args[0])
			if err != nil {
				return err
			}
			switch {
			case s.Happened == didNot:
				return usagef("say what is true: either --happened or --did-not-happen")
			case strings.TrimSpace(s.Reason) == "":
				return usagef("--reason is missing: say how you know, it is the evidence")
			case didNot && resultFile != "":
				return usagef("--result belongs to --happened: what did not happen has no answer")
			case s.Happened && s.Force:
				return usagef("--force belongs to --did-not-happen: that it happened needs no waiting")
			case strings.TrimSpace(s.By) == "":
				return usagef("--by is empty: say who decides")
			case s.IfVersion < 0 || cmd.Flags().Changed("if-version") && s.IfVersion == 0:
				return usagef("--if-version %d is no version: semel op show names it", s.IfVersion)
			}
			if resultFile != "" {
				body, err := sh.readFile("--result", resultFile, semel.MaxResult)
				if err != nil {
					return err
				}
				s.Result = &semel.Result{Body: body, MediaType: semel.MediaTypeOf(body)}
			}
			return sh.settle(cmd.Context(), id, s)
		}),
	}
	flags := cmd.Flags()
	flags.BoolVar(&s.Happened, "happened", false, "it happened")
	flags.BoolVar(&didNot, "did-not-happen", false, "it did not happen, and can no longer happen")
	flags.StringVar(&s.Reason, "reason", "", "how you know")
	flags.StringVar(&s.Reference, "reference", "", "where the proof is: the destination's own identifier, a ticket")
	flags.StringVar(&resultFile, "result", "", "file with the answer that later requests get, - for stdin")
	flags.StringVar(&s.By, "by", person(), "who decides")
	flags.IntVar(&s.IfVersion, "if-version", 0, "only if the operation is still at this version")
	flags.BoolVar(&s.Force, "force", false, "accept --did-not-happen although the request may still be running")
	flags.Lookup("by").DefValue = "user@host"
	return cmd
}

func (sh *shell) settle(ctx context.Context, id semel.ID, s engine.Settlement) error {
	store, _, err := sh.openToLook(ctx)
	if err != nil {
		return sh.notFound(err, "operation "+id.String())
	}
	defer sh.shut("the database", store.Close)
	e, err := sh.engine(ctx, store, engine.Options{})
	if err != nil {
		return err
	}
	defer sh.shut("the engine", func() error { return e.Close(ctx) })
	o, err := e.Settle(ctx, id, s)
	if err != nil {
		return sh.settleError(err, id)
	}
	now, err := store.Now(ctx)
	if err != nil {
		return err
	}
	if sh.json() {
		return sh.print(sh.describe(&o, semel.DecideAsked(&o, o.Contract, now), now))
	}
	sh.facts(sh.out, &o, now)
	sh.say("settled by %s. %s", s.By, sh.advise(&o, semel.DecideAsked(&o, o.Contract, now), now).headline)
	return nil
}

// settleError gives a refused decision the exit code that tells why.
func (sh *shell) settleError(err error, id semel.ID) error {
	var input *semel.InputError
	switch {
	case errors.As(err, &input) && (input.Field == "version" || input.Field == "did-not-happen"):
		return &refusedError{exitRefused, fmt.Sprintf("%v; nothing was recorded. See: %s", input, sh.command("op show "+id.String()))}
	case errors.As(err, &input) && input.Field == "operation":
		return &refusedError{exitInProgress, fmt.Sprintf("%v; nothing was recorded", input)}
	}
	return sh.notFound(err, "operation "+id.String())
}
