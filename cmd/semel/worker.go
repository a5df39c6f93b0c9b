package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
	"github.com/semel-dev/semel/workflowfile"
)

// openWorkerStore opens the database for a worker, and says what about it
// weakens the guarantees.
func (sh *shell) openWorkerStore(ctx context.Context) (*patientStore, database, semel.Runs, error) {
	store, d, err := sh.open(ctx)
	if err != nil {
		return nil, d, nil, err
	}
	runs, ok := store.Store.(semel.Runs)
	if !ok {
		sh.shut("the database", store.Close)
		return nil, d, nil, errors.New("this store keeps no runs")
	}
	for _, warning := range store.Warnings() {
		sh.say("warning: the database: %s", warning)
	}
	return store, d, runs, nil
}

// workerEngine makes an engine that works until it is closed.
func (sh *shell) workerEngine(ctx context.Context, store semel.Store, o engine.Options) (*engine.Engine, error) {
	o.Late, o.Logger = true, sh.logger()
	return engine.New(ctx, store, o)
}

func (sh *shell) logger() *slog.Logger { return slog.New(&plainLog{to: sh.err}) }

// executable turns files into what a worker executes.
func executable(files []*workflowfile.Definition, a workflowfile.Actions) (all []semel.WorkflowDefinition) {
	for _, d := range files {
		all = append(all, d.Workflow(a))
	}
	return all
}

// earlier reads the definitions that runs may have begun with: of versions
// before those of the files. lost are those that cannot be used any more, with
// the reason.
func earlier(ctx context.Context, runs semel.Runs, files []*workflowfile.Definition, checks workflowfile.Checks, a workflowfile.Actions) (all []semel.WorkflowDefinition, lost []string, err error) {
	newest := map[string]int{}
	for _, d := range files {
		newest[d.Name] = max(newest[d.Name], d.Version)
	}
	have := map[string]bool{}
	for _, d := range files {
		have[d.Digest] = true
	}
	for _, d := range files {
		if newest[d.Name] != d.Version {
			continue // once for each name
		}
		registered, err := runs.Definitions(ctx, d.Name)
		if err != nil {
			return nil, nil, fmt.Errorf("read the earlier definitions of %s: %w", d.Name, err)
		}
		for _, r := range registered {
			if r.Version >= d.Version || have[r.Digest] {
				continue
			}
			old, problems := workflowfile.Restore(fmt.Sprintf("%s@%d", r.Name, r.Version), r.Text, checks)
			switch {
			case old == nil:
				lost = append(lost, fmt.Sprintf("runs that began with %s (registered earlier) cannot go on here: %s", r.WorkflowRef, problems[0]))
			case old.Digest != r.Digest:
				lost = append(lost, fmt.Sprintf("runs that began with %s (registered earlier) cannot go on here: its text reads as another definition", r.WorkflowRef))
			default:
				all = append(all, old.Workflow(a))
			}
		}
	}
	return all, lost, nil
}

// stranded counts runs that are due or wait for workflows that a worker does
// not have. It looks at so many of each state.
const lookedAt = 1000

func stranded(ctx context.Context, runs semel.Runs, have []semel.WorkflowDefinition) (counts map[semel.WorkflowRef]int, err error) {
	counts = map[semel.WorkflowRef]int{}
	for _, state := range []semel.RunState{semel.RunRunning, semel.RunWaiting} {
		for r, err := range runs.ListRuns(ctx, semel.RunFilter{State: state, Limit: lookedAt}) {
			if err != nil {
				return nil, err
			}
			ref := semel.WorkflowRef{Name: r.Workflow, Version: r.Version}
			if !slices.ContainsFunc(have, func(d semel.WorkflowDefinition) bool { return d.Ref() == ref }) {
				counts[ref]++
			}
		}
	}
	return counts, nil
}
