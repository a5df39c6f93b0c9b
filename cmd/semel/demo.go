package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/semel-dev/semel/demo"
)

const demoHelp = `One night of billing, twice: a few hundred invoices against three destinations
that lose answers, while workers are killed in mid-send. Once the usual way, and
once with Semel as one run of a workflow; what happened is counted at the
destinations.

Then run it again: nothing is sent. Or delete the database and run it again.

The demo keeps its ledgers and its database in one directory and touches nothing
else; --db puts its operations elsewhere. The same command again goes on where
it stopped, with the settings of the night that the directory holds.

Exit code 0: with Semel nothing happened twice and nothing is missing. 1:
something did or is, as after the database was deleted. 5: interrupted, run it
again.`

const demoExamples = `  semel demo
  semel demo --fresh --lose 0.5 --kill 4
  semel demo --exit --output json | tail -1`

func newDemo(sh *shell) *cobra.Command {
	var o demo.Options
	var lose float64
	var kill int
	var exit bool
	cmd := &cobra.Command{
		Use: "demo", Short: "Watch a night of billing survive lost answers and killed workers", Long: demoHelp, Example: demoExamples,
		Args: noArguments,
		RunE: ours(func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("lose") {
				o.Lose = &lose
			}
			if cmd.Flags().Changed("kill") {
				o.Kill = &kill
			}
			if cmd.Flags().Changed("invoices") && o.Invoices == 0 {
				return usagef("--invoices is 0: give a number from 1 to %d", demo.MaxInvoices)
			}
			o.DB, o.JSON, o.Out, o.Log, o.Program = sh.db, sh.json(), sh.out, sh.err, program()
			o.Stay = !exit && sh.terminal
			return runDemo(cmd.Context(), o)
		}),
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.IntVar(&o.Invoices, "invoices", 0, "how many invoices are due (default 300)")
	f.Var(&share{to: &lose}, "lose", "share of charges and transfers that lose their answer, mail loses a tenth of it (default 0.2)")
	f.IntVar(&kill, "kill", 0, "how many workers are killed in mid-send (default 2)")
	f.Uint64Var(&o.Seed, "seed", 0, "what gets lost and who dies (default 1)")
	f.StringVar(&o.Dir, "dir", "", "ledgers and database of the demo (default $XDG_STATE_HOME/semel/demo)")
	f.BoolVar(&o.Fresh, "fresh", false, "forget the night that the directory holds, and begin a new one")
	f.BoolVar(&exit, "exit", false, "end when the night is over, also on a terminal")
	cmd.AddCommand(&cobra.Command{
		Use: "worker", Short: "A worker of the demo, started by the demo itself", Hidden: true, Args: noArguments,
		RunE: ours(func(cmd *cobra.Command, _ []string) error { return demo.Work(cmd.Context(), sh.in, sh.out, sh.err) }),
	})
	return cmd
}

func runDemo(ctx context.Context, o demo.Options) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	report, err := demo.Run(ctx, o)
	switch {
	case errors.As(err, new(*demo.SettingsError)):
		return usagef("%v", err)
	case errors.Is(err, demo.ErrInterrupted):
		return &refusedError{code: exitInProgress, text: err.Error()}
	case err != nil:
		return err
	case !report.OK():
		return &outcomeError{code: exitFailed}
	}
	return nil
}

// program is how a person calls this program.
func program() string {
	if path, err := os.Executable(); err == nil && strings.Contains(path, "/go-build") {
		return "go run ./cmd/semel"
	}
	return "semel"
}
