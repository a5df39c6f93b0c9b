package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/semel-dev/semel"
)

// runSelection are the flags that select runs.
type runSelection struct{ workflow, state, key, since string }

func (s *runSelection) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Var(&onceText{to: &s.workflow}, "workflow", "only runs of this workflow")
	f.Var(&onceText{to: &s.state}, "state", "only running, waiting, held, completed, failed or cancelled")
	f.Var(&onceText{to: &s.since}, "since", "only runs that were started since then: a time, or a duration such as 24h")
}

// filter reads the flags as of now.
func (s *runSelection) filter(now time.Time) (semel.RunFilter, error) {
	since, err := atOrBefore("--since", s.since, now)
	return semel.RunFilter{Workflow: s.workflow, State: semel.RunState(s.state), Key: semel.Key(s.key), Since: since}, err
}

// atOrBefore reads a time, or a duration before now; zero where nothing is
// given.
func atOrBefore(flag, given string, now time.Time) (time.Time, error) {
	t, err := atOrAfter(flag, given, now)
	if t.After(now) {
		t = now.Add(now.Sub(t))
	}
	return t, err
}

func newRunList(sh *shell) *cobra.Command {
	var s runSelection
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List runs, newest first, and mark what needs a person",
		Long: `List runs, newest first. The first column marks with ! what needs a person.

A run that is due and that no worker takes is shown as "no worker": start one
that has its workflow and version.`,
		Example: "  semel run list\n  semel run list --workflow billing --state held\n  semel run list --since 24h --output json",
		Args:    noArguments,
		RunE: ours(func(cmd *cobra.Command, _ []string) error {
			if err := validRunState(s.state); err != nil {
				return err
			}
			if limit < 1 {
				return usagef("--limit %d shows nothing: give 1 or more", limit)
			}
			return sh.listRuns(cmd.Context(), &s, limit)
		}),
	}
	s.flags(cmd)
	cmd.Flags().Var(&onceText{to: &s.key}, "key", "only runs with this key")
	cmd.Flags().IntVar(&limit, "limit", 100, "at most so many")
	return cmd
}

func (sh *shell) listRuns(ctx context.Context, s *runSelection, limit int) error {
	k, err := sh.lookKeeper(ctx)
	if errors.Is(err, errNothingYet) {
		sh.say("no runs: the default database does not exist yet")
		if sh.json() {
			return sh.print(runListJSON{Runs: []json.RawMessage{}})
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
	f, err := s.filter(now)
	if err != nil {
		return err
	}
	f.Limit = limit + 1 // one more tells that there are more
	if sh.json() {
		return sh.listRunsJSON(ctx, k, f, now)
	}
	return sh.listRunsTable(ctx, k, f, now)
}

// runListJSON is what a program reads of a list of runs.
type runListJSON struct {
	Runs        []json.RawMessage `json:"runs"`
	NeedsPerson int               `json:"needs_person"`
	More        bool              `json:"more"` // there are more than --limit
}

func (sh *shell) listRunsJSON(ctx context.Context, k *keeper, f semel.RunFilter, now time.Time) error {
	out := runListJSON{Runs: []json.RawMessage{}}
	var unreadable unreadableRows
	for r, err := range k.ListRuns(ctx, f) {
		if unreadable.count(sh, err) {
			continue
		}
		if len(out.Runs) == f.Limit-1 {
			out.More = true
			break
		}
		if r.NeedsPerson() {
			out.NeedsPerson++
		}
		out.Runs = append(out.Runs, encode(sh.describeRun(&r, nil, now)))
	}
	return errors.Join(sh.print(out), unreadable.err())
}

func (sh *shell) listRunsTable(ctx context.Context, k *keeper, f semel.RunFilter, now time.Time) error {
	out := &tolerant{to: sh.out}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	n, needs, idle, more := 0, 0, 0, false
	var unreadable unreadableRows
	for r, err := range k.ListRuns(ctx, f) {
		if unreadable.count(sh, err) {
			continue
		}
		if more = n == f.Limit-1; more {
			break
		}
		if n == 0 {
			fmt.Fprintln(table, " \tSTATE\tWORKFLOW\tKEY\tITEMS\tAGE\tRUN\tWAITS FOR, OR WHY")
		}
		n++
		mark := " "
		switch {
		case r.NeedsPerson():
			mark = "!"
			needs++
		case overdue(&r, now):
			idle++
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", mark, runWord(&r, now), oneLine(refOf(&r)), cut(oneLine(string(r.Key)), 50),
			itemsWord(&r), rough(now.Sub(r.CreatedAt)), r.ID, cut(orDash(runWhy(&r, now)), 100))
	}
	_ = table.Flush() // the writer keeps its error
	if out.err != nil {
		return fmt.Errorf("write to stdout: %w", out.err)
	}
	if n == 0 && unreadable == 0 {
		sh.say("no such runs")
	}
	if more {
		sh.say("these are the newest %d: --limit N shows more", n)
	}
	if idle > 0 {
		sh.say("due and taken by no worker: %d; start one that has their workflow and version", idle)
	}
	if needs > 0 {
		sh.say("%d marked ! need a person: %s", needs, sh.command("run show RUN"))
	}
	return unreadable.err()
}

func itemsWord(r *semel.Run) string {
	if r.Total == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", r.Done, r.Total)
}
