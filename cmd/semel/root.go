package main

import (
	"github.com/spf13/cobra"
)

const rootHelp = `Semel performs consequential actions that are safe to retry.

"Try that again" never has to mean "make it happen twice": each action is an
operation with an identity (--scope and --key). The first run records a claim,
sends, and records what came back. Any later run with the same key finds it.

An operation is in one of four states:

  in progress              an attempt is running
  completed                it happened; the answer is on record and is shown again
  failed, nothing happened there is evidence of that; safe to try again
  outcome unknown          it may have happened; Semel does the next safe thing,
                           or says what a person must find out

Operations are also the steps of runs: semel run shows what runs do, wait for and
need; semel event and semel approve let them go on; semel schedule starts them. A
run that needs a person is held, and ends semel run start --wait with 3. Workflows
are files: semel dev helps to write them, and semel serve executes them. Before that,
semel check finds what could go wrong, semel drill breaks them on purpose, and semel
probe asks a test endpoint whether its promises hold.

Exit codes:

  0  completed                    4  refused: conflict, expired, unsafe, incident
  1  failed, nothing happened     5  in progress
  2  usage or bad input           6  Semel itself could not work; this call sent nothing
  3  outcome unknown             70  a bug in Semel

stdout is data, stderr is messages; --output json prints one JSON object.`

const rootExamples = `  # Charge once, however often cron runs this. The provider honours keys for a day.
  semel do --scope payments --key invoice-4417-charge --protection keyed --window 24h \
      --post https://api.example.com/v1/charges --body charge.json

  # Run a program once per day. Once it ran, it is not started again for this key.
  semel do --key report-2026-03-01 -- ./send-report.sh 2026-03-01

  # What needs a person, and why.
  semel op list --state unknown
  semel run list --state held`

func newRoot(sh *shell) *cobra.Command {
	root := &cobra.Command{
		Use: "semel", Short: "Consequential actions that are safe to retry", Long: rootHelp, Example: rootExamples,
		SilenceErrors: true, SilenceUsage: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return noCommand(cmd, args[0])
			}
			return nil
		},
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if sh.output != "table" && sh.output != "json" {
				return usagef("--output %q is unknown: use table or json", sh.output)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(sh.out)
	root.SetErr(sh.err)
	root.SetIn(sh.in)
	flags := root.PersistentFlags()
	flags.StringVar(&sh.db, "db", "", "database, sqlite:PATH or postgres://... (env SEMEL_DB; default "+defaultDatabaseHelp+")")
	flags.BoolVar(&sh.create, "create", false, "make the database if it is not there yet")
	flags.StringVar(&sh.config, "config", "", "file with named connections (env SEMEL_CONFIG; default semel.yaml beside the database)")
	flags.StringVar(&sh.output, "output", "table", "table or json")
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetHelpCommand(newHelp())
	root.AddCommand(newDo(sh), newOp(sh), newRun(sh), newEvent(sh), newApproval(sh), newApprove(sh), newReject(sh), newSchedule(sh), newServe(sh), newDev(sh), newWorkflow(sh), newCheck(sh), newDrill(sh), newProbe(sh), newSandbox(sh), newDemo(sh), newMigrate(sh), newStore(sh), newVersion(sh))
	return root
}

// newHelp is help that does not take a mistyped command for none.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Help about any command", Long: "Help about any command: semel help run start is semel run start --help.",
		Example: "  semel help run start",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return noCommand(about, rest[0])
			}
			return about.Help()
		},
	}
}

// noCommand says that cmd holds none of that name.
func noCommand(cmd *cobra.Command, name string) error {
	if !cmd.HasParent() {
		return usagef("there is no command %q: see semel help", name)
	}
	return usagef("there is no command \"%s %s\": see %s --help", cmd.CommandPath(), name, cmd.CommandPath())
}

// group makes a command that only holds others: called without one, it helps.
func group(use, short, long, example string, children ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Example: example,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return noCommand(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(children...)
	return cmd
}

// ours marks the errors of a command's own work.
func ours(work func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := work(cmd, args); err != nil {
			return &commandError{err}
		}
		return nil
	}
}

// noArguments refuses stray words, which are mostly flags without dashes.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no argument %q: see %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())
	}
	return nil
}
