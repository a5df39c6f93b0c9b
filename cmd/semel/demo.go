package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/semel-dev/semel/demo"
)

const demoHelp = `One night of billing, run twice against destinations that lose answers, with
worker processes that are killed in mid-send: first the usual way (at least
once, a key minted per call), then with Semel. What happened is counted in the
ledgers of the destinations.

Everything is kept in one directory, so the same command again goes on where it
stopped, and sends nothing that is settled. Exit code 0: with Semel nothing
happened twice and nothing is missing; 1: something did or is, as after the
database was deleted; 5: interrupted, run it again.`

const demoExamples = `  semel demo                      # then take the two dares at the end of the screen
  semel demo --fresh --seed 7     # another night
  semel demo --exit --output json | tail -1`

func newDemo(sh *shell) *cobra.Command {
	var o demo.Options
	var lose float64
	var kill int
	var exit bool
	cmd := &cobra.Command{
		Use: "demo", Short: "A night of billing that loses answers and workers", Long: demoHelp, Example: demoExamples,
		Args: noArguments,
		RunE: ours(func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("lose") {
				o.Lose = &lose
			}
			if cmd.Flags().Changed("kill") {
				o.Kill = &kill
			}
			if cmd.Flags().Changed("invoices") && o.Invoices == 0 {
				o.Invoices = -1 // no night at all: refused with the reason
			}
			o.DB, o.JSON, o.Out, o.Log, o.Program = sh.db, sh.json(), sh.out, sh.err, programName()
			o.Stay = !exit && term.IsTerminal(int(os.Stdout.Fd()))
			return sh.demo(cmd.Context(), o)
		}),
	}
	flags := cmd.Flags()
	flags.IntVar(&o.Invoices, "invoices", 0, "how many invoices are due (default 300)")
	flags.Float64Var(&lose, "lose", 0.2, "share of charges and transfers that lose their answer; mail loses a tenth of it")
	flags.IntVar(&kill, "kill", 2, "how many workers are killed in mid-send")
	flags.Uint64Var(&o.Seed, "seed", 0, "what gets lost and who dies (default 1)")
	flags.StringVar(&o.Dir, "dir", "", "where ledgers and database are kept (default $XDG_STATE_HOME/semel/demo)")
	flags.BoolVar(&o.Fresh, "fresh", false, "forget the night that the directory holds, and begin a new one")
	flags.BoolVar(&exit, "exit", false, "end when the night is over, also on a terminal")
	cmd.AddCommand(newDemoWorker(sh))
	return cmd
}

func (sh *shell) demo(ctx context.Context, o demo.Options) error {
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	report, err := demo.Run(ctx, o)
	switch {
	case errors.Is(err, demo.ErrInterrupted):
		return &refusedError{code: exitInProgress, text: err.Error()}
	case errors.As(err, new(*demo.SettingsError)):
		return usagef("%v", err)
	case err != nil:
		return err
	case !report.OK():
		return &outcomeError{code: exitFailed}
	}
	return nil
}

// newDemoWorker is what the demo starts its own program as.
func newDemoWorker(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use: "worker", Hidden: true, Args: noArguments,
		RunE: ours(func(cmd *cobra.Command, _ []string) error {
			return demo.Work(context.Background(), sh.in, sh.out, sh.err)
		}),
	}
}

// programName is how this program was called, for commands shown to people.
func programName() string {
	if path, err := os.Executable(); err == nil && strings.Contains(path, "go-build") {
		return "go run ./cmd/semel"
	}
	return "semel"
}
