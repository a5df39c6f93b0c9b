package main

import (
	"context"
	"errors"
	"iter"

	"github.com/semel-dev/semel"
)

// keeper is the store of a command that works on runs.
type keeper struct {
	*patientStore
	patientRuns
}

// patientRuns asks each question about runs for a limited time.
type patientRuns struct{ semel.Runs }

// openKeeper opens the database of runs; see open.
func (sh *shell) openKeeper(ctx context.Context) (*keeper, error) {
	store, _, err := sh.open(ctx)
	if err != nil {
		return nil, err
	}
	return sh.keeper(store)
}

// lookKeeper opens the database of runs and never makes one: looking changes
// nothing.
func (sh *shell) lookKeeper(ctx context.Context) (*keeper, error) {
	store, _, err := sh.openToLook(ctx)
	if err != nil {
		return nil, err
	}
	return sh.keeper(store)
}

func (sh *shell) keeper(store *patientStore) (*keeper, error) {
	runs, ok := store.Store.(semel.Runs)
	if !ok {
		sh.shut("the database", store.Close)
		return nil, errors.New("this store keeps no runs")
	}
	return &keeper{store, patientRuns{runs}}, nil
}

// Start makes a run durable.
func (p patientRuns) Start(ctx context.Context, n semel.NewRun, claim *semel.RunClaim) (r semel.Run, existing bool, err error) {
	r, err = within(ctx, func(ctx context.Context) (r semel.Run, err error) {
		r, existing, err = p.Runs.Start(ctx, n, claim)
		return r, err
	})
	return r, existing, err
}

// LoadRun reads one run.
func (p patientRuns) LoadRun(ctx context.Context, id semel.ID) (semel.Run, error) {
	return within(ctx, func(ctx context.Context) (semel.Run, error) { return p.Runs.LoadRun(ctx, id) })
}

// FindRun finds a run by its key.
func (p patientRuns) FindRun(ctx context.Context, workflow string, key semel.Key) (semel.Run, error) {
	return within(ctx, func(ctx context.Context) (semel.Run, error) { return p.Runs.FindRun(ctx, workflow, key) })
}

// History reads what earlier executions of a run left behind.
func (p patientRuns) History(ctx context.Context, run semel.ID) (semel.RunHistory, error) {
	return within(ctx, func(ctx context.Context) (semel.RunHistory, error) { return p.Runs.History(ctx, run) })
}

// Steps reads the records of a run.
func (p patientRuns) Steps(ctx context.Context, run semel.ID) ([]semel.StepRecord, error) {
	return within(ctx, func(ctx context.Context) ([]semel.StepRecord, error) { return p.Runs.Steps(ctx, run) })
}

// Waits reads what a run waits for.
func (p patientRuns) Waits(ctx context.Context, run semel.ID) ([]semel.RunWait, error) {
	return within(ctx, func(ctx context.Context) ([]semel.RunWait, error) { return p.Runs.Waits(ctx, run) })
}

// Notes reads what people and workers did to a run.
func (p patientRuns) Notes(ctx context.Context, run semel.ID) ([]semel.RunNote, error) {
	return within(ctx, func(ctx context.Context) ([]semel.RunNote, error) { return p.Runs.Notes(ctx, run) })
}

// ListRuns lists runs.
func (p patientRuns) ListRuns(ctx context.Context, f semel.RunFilter) iter.Seq2[semel.Run, error] {
	return each(ctx, func(ctx context.Context) iter.Seq2[semel.Run, error] { return p.Runs.ListRuns(ctx, f) })
}

// ChangeRun does what a person asks.
func (p patientRuns) ChangeRun(ctx context.Context, id semel.ID, c semel.RunCommand) (semel.Run, error) {
	return within(ctx, func(ctx context.Context) (semel.Run, error) { return p.Runs.ChangeRun(ctx, id, c) })
}

// Send makes an event durable.
func (p patientRuns) Send(ctx context.Context, e semel.InboxEvent) (existing bool, err error) {
	return within(ctx, func(ctx context.Context) (bool, error) { return p.Runs.Send(ctx, e) })
}

// Inbox lists events.
func (p patientRuns) Inbox(ctx context.Context, f semel.EventFilter) iter.Seq2[semel.InboxEntry, error] {
	return each(ctx, func(ctx context.Context) iter.Seq2[semel.InboxEntry, error] { return p.Runs.Inbox(ctx, f) })
}

// Approval reads one.
func (p patientRuns) Approval(ctx context.Context, id semel.ID) (semel.Approval, error) {
	return within(ctx, func(ctx context.Context) (semel.Approval, error) { return p.Runs.Approval(ctx, id) })
}

// Approvals lists approvals.
func (p patientRuns) Approvals(ctx context.Context, run semel.ID, state semel.ApprovalState) iter.Seq2[semel.Approval, error] {
	return each(ctx, func(ctx context.Context) iter.Seq2[semel.Approval, error] { return p.Runs.Approvals(ctx, run, state) })
}

// Decide records a decision.
func (p patientRuns) Decide(ctx context.Context, id semel.ID, d semel.Decision) (semel.Approval, error) {
	return within(ctx, func(ctx context.Context) (semel.Approval, error) { return p.Runs.Decide(ctx, id, d) })
}

// Workflows lists what workers registered.
func (p patientRuns) Workflows(ctx context.Context) ([]semel.RegisteredWorkflow, error) {
	return within(ctx, p.Runs.Workflows)
}

// Schedules lists all schedules.
func (p patientRuns) Schedules(ctx context.Context) ([]semel.ScheduleState, error) {
	return within(ctx, p.Runs.Schedules)
}

// PauseSchedule stops a schedule, or lets it go on.
func (p patientRuns) PauseSchedule(ctx context.Context, workflow, name string, paused bool, by string) error {
	_, err := within(ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, p.Runs.PauseSchedule(ctx, workflow, name, paused, by)
	})
	return err
}
