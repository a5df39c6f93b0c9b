package semeltest

import (
	"context"
	"slices"

	"github.com/semel-dev/semel"
)

// Runs are all runs of the world, in the order in which they were started.
func (w *World) Runs() []semel.Run {
	w.t.Helper()
	var runs []semel.Run
	for r, err := range w.store.ListRuns(context.Background(), semel.RunFilter{}) {
		if err != nil {
			w.t.Fatalf("semeltest: %v", err)
			return runs
		}
		runs = append(runs, r)
	}
	slices.Reverse(runs)
	return runs
}

// Steps are the recorded steps of a run, oldest first. The Effect of an action's
// step is its operation.
func (w *World) Steps(run semel.Run) []semel.StepRecord {
	w.t.Helper()
	steps, err := w.store.Steps(context.Background(), run.ID)
	if err != nil {
		w.t.Fatalf("semeltest: %v", err)
	}
	return steps
}

// Step is the recorded step at a path, for example "charge" or
// "invoices[4417]/charge". It fails the test where there is none.
func (w *World) Step(run semel.Run, path string) semel.StepRecord {
	w.t.Helper()
	var have []string
	for _, s := range w.Steps(run) {
		if s.Path == path {
			return s
		}
		have = append(have, s.Path)
	}
	w.t.Fatalf("semeltest: run %s of %s has no record of step %q; it has %q", run.ID, run.Workflow, path, have)
	return semel.StepRecord{}
}

// load reads a run as it is now.
func (w *World) load(id semel.ID) semel.Run {
	w.t.Helper()
	r, err := w.store.LoadRun(context.Background(), id)
	if err != nil {
		w.t.Fatalf("semeltest: %v", err)
	}
	return r
}
