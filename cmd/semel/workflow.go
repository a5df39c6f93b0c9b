package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/workflowfile"
)

func newWorkflow(sh *shell) *cobra.Command {
	return group("workflow", "List workflows that workers have, show one, print the schema of files",
		"A workflow is what runs execute: a file, or a function of a program. Workers make\nknown which they have.",
		"  semel workflow list\n  semel workflow show nightly_billing\n  semel workflow schema >workflow.schema.json",
		newWorkflowList(sh), newWorkflowShow(sh), newWorkflowSchema(sh))
}

func newWorkflowSchema(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of a workflow file, for editors",
		Long: `Print the JSON Schema (2020-12) of a workflow file. An editor that knows it completes
and explains members; semel check finds more.`,
		Example: "  semel workflow schema >workflow.schema.json\n  # first line of a workflow file: # yaml-language-server: $schema=workflow.schema.json",
		Args:    noArguments,
		RunE:    ours(func(*cobra.Command, []string) error { return sh.write(workflowfile.Schema()) }),
	}
}

func newWorkflowList(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the workflows that workers have registered",
		Long: `List the newest version of each workflow that a worker has registered, with what
starts it and its runs by state. Each count ends at 100, which is shown as 100+.`,
		Example: "  semel workflow list\n  semel workflow list --output json", Args: noArguments,
		RunE: ours(func(cmd *cobra.Command, _ []string) error {
			k, err := sh.lookKeeper(cmd.Context())
			if errors.Is(err, errNothingYet) {
				return sh.listWorkflows(nil)
			}
			if err != nil {
				return err
			}
			defer sh.shut("the database", k.Close)
			all, err := k.registered(cmd.Context())
			if err != nil {
				return err
			}
			return sh.listWorkflows(all)
		}),
	}
}

// registeredWorkflow is a workflow with what is known about it here.
type registeredWorkflow struct {
	semel.RegisteredWorkflow
	definition *workflowfile.Definition // nil for Go, and for a text that cannot be read
	schedules  []semel.ScheduleState
	runs       map[semel.RunState]int
}

// countedStates are those that are told apart, and countedTo is where their
// count ends.
var countedStates = []semel.RunState{semel.RunRunning, semel.RunWaiting, semel.RunHeld, semel.RunFailed, semel.RunCompleted}

const countedTo = 100

// registered reads all workflows.
func (k *keeper) registered(ctx context.Context) ([]registeredWorkflow, error) {
	known, err := k.Workflows(ctx)
	if err != nil {
		return nil, err
	}
	schedules, err := k.Schedules(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]registeredWorkflow, len(known))
	for i, w := range known {
		all[i] = registeredWorkflow{RegisteredWorkflow: w, runs: map[semel.RunState]int{}}
		for _, s := range schedules {
			if s.Workflow == w.Name {
				all[i].schedules = append(all[i].schedules, s)
			}
		}
		if all[i].definition, err = k.definition(ctx, w.Name, w.Definition); err != nil {
			return nil, err
		}
		for _, state := range countedStates {
			n, err := countRuns(ctx, k, semel.RunFilter{Workflow: w.Name, State: state})
			if err != nil {
				return nil, err
			}
			all[i].runs[state] = n
		}
	}
	return all, nil
}

// definition reads the definition with a digest; nil for one that this program
// cannot read.
func (k *keeper) definition(ctx context.Context, name, digest string) (*workflowfile.Definition, error) {
	if digest == "" {
		return nil, nil
	}
	text, err := k.Registered(ctx, digest)
	if errors.Is(err, semel.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d, _ := workflowfile.Restore(name+".yaml", text, checksWith(nil))
	return d, nil
}

// countRuns counts runs up to countedTo, and one more for more.
func countRuns(ctx context.Context, runs semel.Runs, f semel.RunFilter) (n int, err error) {
	f.Limit = countedTo + 1
	for _, err := range runs.ListRuns(ctx, f) {
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

func countWord(n int) string {
	if n > countedTo {
		return fmt.Sprintf("%d+", countedTo)
	}
	return fmt.Sprint(n)
}

// triggers are what starts runs of the workflow, in words.
func (w *registeredWorkflow) triggers() (words []string) {
	for _, s := range w.schedules {
		words = append(words, "schedule "+strings.TrimSpace(s.Name+" "+s.Cron+" "+s.Zone))
	}
	if w.definition != nil {
		if e := w.definition.Triggers.Event; e != nil {
			words = append(words, "event "+e.Name)
		}
		if w.definition.Triggers.HTTP != nil {
			words = append(words, "http")
		}
	}
	return words
}

// workflowJSON is a workflow as a program reads it.
type workflowJSON struct {
	Workflow   string                 `json:"workflow"`
	Version    int                    `json:"version"`
	Owner      string                 `json:"owner"`
	Kind       string                 `json:"kind"` // file or go
	Definition string                 `json:"definition,omitempty"`
	Triggers   []string               `json:"triggers"`
	Schedules  []scheduleJSON         `json:"schedules"`
	Runs       map[semel.RunState]int `json:"runs"`       // by state
	Counted    int                    `json:"counted_to"` // a count above it means more
}

func describeWorkflow(w *registeredWorkflow) workflowJSON {
	d := workflowJSON{
		Workflow: w.Name, Version: w.Version, Owner: w.Owner, Kind: w.kind(), Definition: w.Definition,
		Triggers: append([]string{}, w.triggers()...), Schedules: []scheduleJSON{}, Runs: w.runs, Counted: countedTo,
	}
	for i := range w.schedules {
		d.Schedules = append(d.Schedules, describeSchedule(&w.schedules[i]))
	}
	return d
}

func (w *registeredWorkflow) kind() string {
	if w.Definition == "" {
		return "go"
	}
	return "file"
}

func (sh *shell) listWorkflows(all []registeredWorkflow) error {
	if sh.json() {
		list := struct {
			Workflows []workflowJSON `json:"workflows"`
		}{[]workflowJSON{}}
		for i := range all {
			list.Workflows = append(list.Workflows, describeWorkflow(&all[i]))
		}
		return sh.print(list)
	}
	if len(all) == 0 {
		sh.say("no workflows: a worker registers those that it has when it starts, for example semel serve")
		return nil
	}
	out := &tolerant{to: sh.out}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "WORKFLOW\tOWNER\tSTARTED BY\tRUNNING\tWAITING\tHELD\tFAILED\tCOMPLETED")
	for i := range all {
		w := &all[i]
		fmt.Fprintf(table, "%s\t%s\t%s", oneLine(w.String()), orDash(w.Owner), orDash(strings.Join(w.triggers(), ", ")))
		for _, state := range countedStates {
			fmt.Fprintf(table, "\t%s", countWord(w.runs[state]))
		}
		fmt.Fprintln(table)
	}
	_ = table.Flush() // the writer keeps its error
	if out.err != nil {
		return fmt.Errorf("write to stdout: %w", out.err)
	}
	return nil
}
