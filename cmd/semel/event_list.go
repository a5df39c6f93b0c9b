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

func newEventList(sh *shell) *cobra.Command {
	var f semel.EventFilter
	cmd := &cobra.Command{
		Use: "list", Short: "List events, newest first, and what became of them",
		Long: `List events, newest first, with the runs that took them and those that they
started. An event that no run took is kept: it counts for the first wait with its
name and match.`,
		Example: "  semel event list\n  semel event list --name order.paid --match 4417 --output json",
		Args:    noArguments,
		RunE: ours(func(cmd *cobra.Command, _ []string) error {
			if f.Limit < 1 {
				return usagef("--limit %d shows nothing: give 1 or more", f.Limit)
			}
			return sh.listEvents(cmd.Context(), f)
		}),
	}
	cmd.Flags().Var(&onceText{to: &f.Name}, "name", "only events of this name")
	cmd.Flags().Var(&onceText{to: &f.Match}, "match", "only events about this")
	cmd.Flags().IntVar(&f.Limit, "limit", 100, "at most so many")
	return cmd
}

// eventListJSON is what a program reads of a list of events.
type eventListJSON struct {
	Events []eventEntryJSON `json:"events"`
}

func (sh *shell) listEvents(ctx context.Context, f semel.EventFilter) error {
	list := eventListJSON{Events: []eventEntryJSON{}}
	k, err := sh.lookKeeper(ctx)
	if errors.Is(err, errNothingYet) {
		sh.say("no events: the default database does not exist yet")
		if sh.json() {
			return sh.print(list)
		}
		return nil
	}
	if err != nil {
		return err
	}
	defer sh.shut("the database", k.Close)
	now, err := k.Now(ctx)
	if err != nil {
		return err
	}
	out := &tolerant{to: sh.out}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	n := 0
	for e, err := range k.Inbox(ctx, f) {
		if err != nil {
			return err
		}
		if sh.json() {
			list.Events = append(list.Events, describeEntry(&e))
			continue
		}
		if n == 0 {
			fmt.Fprintln(table, "EVENT\tMATCH\tID\tAGE\tBY\tWHAT BECAME OF IT")
		}
		n++
		became := becameWords(&e)
		if !e.Delivered {
			became = "sent inside a transaction; the next worker delivers it"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", oneLine(e.Name), cut(orDash(e.Match), 50), cut(oneLine(e.ID), 50), rough(now.Sub(e.At).Round(time.Second)), orDash(e.By), became)
	}
	if sh.json() {
		return sh.print(list)
	}
	_ = table.Flush() // the writer keeps its error
	if out.err != nil {
		return fmt.Errorf("write to stdout: %w", out.err)
	}
	if n == 0 {
		sh.say("no such events")
	}
	return nil
}
