package demo

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-dev/semel"
)

// RunReport is what became of the run of the night.
type RunReport struct {
	ID    string         `json:"id"`
	State semel.RunState `json:"state"`
	Done  int            `json:"done"` // invoices
	// WentOn is how often another worker took it up after one had died.
	WentOn int `json:"went_on"`
}

// readRun finds the run of the night.
func readRun(ctx context.Context, runs semel.Runs, n *night, due string) (RunReport, error) {
	r, err := runs.FindRun(ctx, n.workflow(), semel.Key(due))
	if errors.Is(err, semel.ErrNotFound) {
		return RunReport{}, fmt.Errorf("the run of the night is not in the database: %w", err)
	}
	if err != nil {
		return RunReport{}, fmt.Errorf("read the run of the night: %w", err)
	}
	notes, err := runs.Notes(ctx, r.ID)
	if err != nil {
		return RunReport{}, fmt.Errorf("read what was done to the run: %w", err)
	}
	out := RunReport{ID: r.ID.String(), State: r.State, Done: r.Done}
	for _, note := range notes {
		if note.Kind == "lapsed" {
			out.WentOn++
		}
	}
	return out, nil
}
