package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/semel-dev/semel"
)

func newOp(sh *shell) *cobra.Command {
	return group("op", "Look at operations, settle and retry them",
		"An operation is one intended effect: a scope and a key. Looking never changes or sends anything.",
		"  semel op list --state unknown\n  semel op show --scope payments --key invoice-4417-charge",
		newList(sh), newShow(sh), newSettle(sh), newRetry(sh))
}

func newList(sh *shell) *cobra.Command {
	var state, scope string
	cmd := &cobra.Command{
		Use: "list", Short: "List operations, newest first, and mark what needs a person",
		Long: `List operations, newest first. The first column marks with ! what needs a person.

An operation whose worker stopped reporting is listed as unknown, whether or not
anybody has noticed.`,
		Example: "  semel op list\n  semel op list --state unknown\n  semel op list --scope payments --output json",
		Args:    noArguments,
		RunE: ours(func(cmd *cobra.Command, _ []string) error {
			f := semel.Filter{State: semel.State(state), Scope: semel.Scope(scope)}
			if err := validState(state); err != nil {
				return err
			}
			if cmd.Flags().Changed("scope") {
				if err := f.Scope.Validate(); err != nil {
					return err
				}
			}
			return sh.list(cmd.Context(), f)
		}),
	}
	cmd.Flags().StringVar(&state, "state", "", "only in_progress, completed, failed or unknown")
	cmd.Flags().StringVar(&scope, "scope", "", "only this scope")
	return cmd
}

func validState(state string) error {
	switch semel.State(state) {
	case "", semel.InProgress, semel.Completed, semel.Failed, semel.Unknown:
		return nil
	}
	return usagef("--state %q is unknown: use in_progress, completed, failed or unknown", state)
}

func (sh *shell) list(ctx context.Context, f semel.Filter) error {
	store, d, err := sh.openToLook(ctx)
	if errors.Is(err, errNothingYet) {
		sh.say("no operations: the default database %s does not exist yet", d)
		return sh.printNone()
	}
	if err != nil {
		return err
	}
	defer sh.shut("the database", store.Close)
	now, err := store.Now(ctx)
	if err != nil {
		return err
	}
	if sh.json() {
		return sh.listJSON(ctx, store, f, now)
	}
	return sh.listTable(ctx, store, f, now)
}

func (sh *shell) printNone() error {
	if !sh.json() {
		return nil
	}
	return sh.write([]byte(`{"operations":[],"needs_person":0}` + "\n"))
}

// listJSON writes one object, and holds one operation in memory at a time.
func (sh *shell) listJSON(ctx context.Context, store semel.Store, f semel.Filter, now time.Time) error {
	needs, separator := 0, `{"operations":[`
	var unreadable unreadableRows
	for o, err := range store.List(ctx, f) {
		if unreadable.count(sh, err) {
			continue
		}
		if needsPerson(&o, now) {
			needs++
		}
		if err := sh.write(append([]byte(separator), encode(sh.describe(&o, semel.Decide(&o, o.Contract, now), now))...)); err != nil {
			return err
		}
		separator = ","
	}
	if separator != "," {
		return errors.Join(sh.printNone(), unreadable.err())
	}
	return errors.Join(sh.write(fmt.Appendf(nil, `],"needs_person":%d}`+"\n", needs)), unreadable.err())
}

// listedAtOnce is how many rows of a table are aligned with each other.
const listedAtOnce = 1000

func (sh *shell) listTable(ctx context.Context, store semel.Store, f semel.Filter, now time.Time) error {
	out := &tolerant{to: sh.out}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	n, needs := 0, 0
	var unreadable unreadableRows
	for o, err := range store.List(ctx, f) {
		if unreadable.count(sh, err) {
			continue
		}
		if n%listedAtOnce == 0 {
			_ = table.Flush() // the writer keeps its error
			fmt.Fprintln(table, " \tSTATE\tSCOPE\tKEY\tTRIES\tCHANGED\tOPERATION\tNEXT")
		}
		n++
		mark := " "
		if needsPerson(&o, now) {
			mark = "!"
			needs++
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", mark, stateWord(&o, now), cut(oneLine(string(o.Scope)), 30), cut(oneLine(string(o.Key)), 50),
			o.Attempt, moment(o.UpdatedAt), o.ID, nextWord(&o, now))
	}
	_ = table.Flush() // the writer keeps its error
	if out.err != nil {
		return fmt.Errorf("write to stdout: %w", out.err)
	}
	switch {
	case n == 0 && unreadable == 0:
		sh.say("no such operations")
	case needs > 0:
		sh.say("%d marked ! need a person: %s", needs, sh.command("op show OPERATION"))
	}
	return unreadable.err()
}

// unreadableRows counts what a listing could not read: one broken row hides no
// other.
type unreadableRows int

func (n *unreadableRows) count(sh *shell, err error) bool {
	if err != nil {
		*n++
		sh.say("%v", err)
	}
	return err != nil
}

func (n *unreadableRows) err() error {
	if *n == 0 {
		return nil
	}
	return &outcomeError{exitUnavailable}
}

// stateWord is the state as of now, in words.
func stateWord(o *semel.Operation, now time.Time) string {
	return o.StateAt(now).Words()
}

// nextWord is the next move in a few words.
func nextWord(o *semel.Operation, now time.Time) string {
	if o.Incident != "" {
		return "incident: a person must look"
	}
	m := semel.DecideAsked(o, o.Contract, now)
	switch m.Kind {
	case semel.MoveSend:
		return "safe to try again"
	case semel.MoveResend:
		return "safe to send again under the same key"
	case semel.MoveLookup:
		return "check the original request"
	case semel.MoveWait:
		return "running"
	case semel.MovePerson:
		return "a person must find out"
	case semel.MoveDone:
	}
	return "-"
}

// selection names one operation: by its id, or by scope and key.
type selection struct{ scope, key string }

func (s *selection) flags(cmd *cobra.Command, sh *shell) {
	cmd.Flags().StringVar(&s.scope, "scope", "", "scope of the operation (env SEMEL_SCOPE, default default)")
	cmd.Flags().StringVar(&s.key, "key", "", "key of the operation")
}

// load finds the operation; args holds its id, or nothing.
func (s *selection) load(ctx context.Context, sh *shell, store semel.Store, args []string) (semel.Operation, error) {
	if len(args) == 1 {
		id, err := semel.ParseID(args[0])
		if err != nil {
			return semel.Operation{}, err
		}
		o, err := store.LoadID(ctx, id)
		return o, sh.notFound(err, "operation "+args[0])
	}
	scope := semel.Scope(sh.scope(s.scope))
	o, err := store.Load(ctx, scope, semel.Key(s.key))
	return o, sh.notFound(err, fmt.Sprintf("operation with key %q in scope %q", s.key, scope))
}

// check refuses a selection that names no operation, or two.
func (s *selection) check(cmd *cobra.Command, sh *shell, args []string) error {
	byKey := cmd.Flags().Changed("key")
	switch {
	case len(args) == 1 && (byKey || cmd.Flags().Changed("scope")):
		return usagef("give an operation ID, or --scope and --key, not both")
	case len(args) == 1:
		_, err := semel.ParseID(args[0])
		return err
	case !byKey:
		return usagef("name the operation: an ID from semel op list, or --scope and --key")
	}
	return errors.Join(semel.Scope(sh.scope(s.scope)).Validate(), semel.Key(s.key).Validate())
}

func (sh *shell) notFound(err error, what string) error {
	if errors.Is(err, semel.ErrNotFound) || errors.Is(err, errNothingYet) {
		return usagef("there is no %s in this database: it was never asked for here. See: %s", what, sh.command("op list"))
	}
	return err
}

// atMostOne allows one argument, the operation's id.
func atMostOne(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usagef("%s takes one operation ID, not %d", cmd.CommandPath(), len(args))
	}
	return nil
}

// exactlyOne demands the operation's id.
func exactlyOne(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef("%s needs the ID of one operation: see semel op list", cmd.CommandPath())
	}
	return nil
}
