package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/semel-dev/semel"
)

// shownTicks and shownRuns are how many ticks and runs are shown of a workflow.
const (
	shownTicks = 3
	shownRuns  = 10
)

func newWorkflowShow(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show a workflow: its text, what starts it, and its runs that have not ended",
		Example: "  semel workflow show nightly_billing",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("%s needs the name of one workflow. See: semel workflow list", cmd.CommandPath())
			}
			return nil
		},
		RunE: ours(func(cmd *cobra.Command, args []string) error {
			unknown := usagef("no worker has registered a workflow %q here. See: %s", args[0], sh.command("workflow list"))
			k, err := sh.lookKeeper(cmd.Context())
			if errors.Is(err, errNothingYet) {
				return unknown
			}
			if err != nil {
				return err
			}
			defer sh.shut("the database", k.Close)
			all, err := k.registered(cmd.Context())
			if err != nil {
				return err
			}
			for i := range all {
				if all[i].Name == args[0] {
					return sh.showWorkflow(cmd.Context(), k, &all[i])
				}
			}
			return unknown
		}),
	}
}

// workflowStoryJSON is a workflow with all that is shown of it.
type workflowStoryJSON struct {
	workflowJSON
	Text  string      `json:"text"`
	Ticks []*tickJSON `json:"next_ticks"`
	Open  []runJSON   `json:"open_runs"` // held first, the newest of each state
}

func (sh *shell) showWorkflow(ctx context.Context, k *keeper, w *registeredWorkflow) error {
	now, err := k.Now(ctx)
	if err != nil {
		return err
	}
	open, err := k.openRuns(ctx, w.Name)
	if err != nil {
		return err
	}
	if sh.json() {
		story := workflowStoryJSON{workflowJSON: describeWorkflow(w), Ticks: []*tickJSON{}, Open: []runJSON{}}
		if w.definition != nil {
			story.Text = string(w.definition.Text)
		}
		for i := range w.schedules {
			ticks, err := nextTicks(&w.schedules[i], now, shownTicks)
			if err != nil {
				return err
			}
			story.Ticks = append(story.Ticks, ticks...)
		}
		for i := range open {
			story.Open = append(story.Open, sh.describeRun(&open[i], nil, now))
		}
		return sh.print(story)
	}
	out := &tolerant{to: sh.out}
	if err := tellWorkflow(out, w, now); err != nil {
		return err
	}
	sh.tellOpenRuns(out, open, now)
	if out.err != nil {
		return fmt.Errorf("write to stdout: %w", out.err)
	}
	return nil
}

// openRuns reads runs that have not ended, those that need a person first.
func (k *keeper) openRuns(ctx context.Context, workflow string) (open []semel.Run, err error) {
	for _, state := range []semel.RunState{semel.RunHeld, semel.RunRunning, semel.RunWaiting} {
		for r, err := range k.ListRuns(ctx, semel.RunFilter{Workflow: workflow, State: state, Limit: shownRuns}) {
			if err != nil {
				return nil, err
			}
			open = append(open, r)
		}
	}
	return open, nil
}

func tellWorkflow(w io.Writer, wf *registeredWorkflow, now time.Time) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "workflow\t%s\nowner\t%s\n", oneLine(wf.String()), orDash(wf.Owner))
	for _, t := range wf.triggers() {
		fmt.Fprintf(table, "started by\t%s\n", oneLine(t))
	}
	for i := range wf.schedules {
		s := &wf.schedules[i]
		if s.Paused {
			fmt.Fprintf(table, "paused\tby %s\n", orNone(s.PausedBy))
			continue
		}
		ticks, err := nextTicks(s, now, shownTicks)
		if err != nil {
			return err
		}
		for _, t := range ticks {
			fmt.Fprintf(table, "next\t%s (%s)\n", t.Local, relative(*t.At, now))
		}
	}
	var counts []string
	for _, state := range countedStates {
		if n := wf.runs[state]; n > 0 {
			counts = append(counts, countWord(n)+" "+string(state))
		}
	}
	if len(counts) == 0 {
		counts = []string{"none"}
	}
	fmt.Fprintf(table, "runs\t%s\n", strings.Join(counts, ", "))
	_ = table.Flush() // the writer keeps its error
	if wf.definition != nil {
		fmt.Fprintln(w, "\nDefinition")
		indented(w, "  ", visible(string(wf.definition.Text)))
	} else if wf.Definition == "" {
		fmt.Fprintln(w, "\nIt is written in Go: its worker has the definition.")
	}
	return nil
}

func (sh *shell) tellOpenRuns(w io.Writer, open []semel.Run, now time.Time) {
	if len(open) == 0 {
		return
	}
	fmt.Fprintf(w, "\nRuns that have not ended (at most %d of each state)\n", shownRuns)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i := range open {
		r := &open[i]
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\n", sh.paintedRun(r, runWord(r, now)), cut(oneLine(string(r.Key)), 50), r.ID, cut(orDash(runWhy(r, now)), 100))
	}
	_ = table.Flush() // the writer keeps its error
}
