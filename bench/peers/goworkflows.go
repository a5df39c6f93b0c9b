package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cschleiden/go-workflows/backend"
	"github.com/cschleiden/go-workflows/backend/monoprocess"
	"github.com/cschleiden/go-workflows/backend/sqlite"
	"github.com/cschleiden/go-workflows/client"
	"github.com/cschleiden/go-workflows/registry"
	"github.com/cschleiden/go-workflows/worker"
	"github.com/cschleiden/go-workflows/workflow"
)

// goWorkflowsLoop waits until the workflow function has returned, a moment
// before the last commit, which favours it a little: a client would have to
// poll for it. It wakes itself within the process; tuned, it also polls every
// 5 ms with eight pollers.
type goWorkflowsLoop struct {
	backend backend.Backend
	client  *client.Client
	worker  *worker.Worker
	stop    context.CancelFunc
	steps   int
	made    atomic.Int64
	waiting sync.Map // by run, a chan struct{}
}

type goWorkflowsInput struct {
	Run   int64
	Steps int
}

func openGoWorkflows(ctx context.Context, o options) (workload, error) {
	if o.store != onSQLite {
		return nil, errors.New("the published go-workflows keeps nothing in PostgreSQL")
	}
	quiet := backend.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))
	b := monoprocess.NewMonoprocessBackend(sqlite.NewSqliteBackend(o.at, sqlite.WithBackendOptions(quiet)))
	settings := worker.DefaultOptions
	settings.WorkflowExecutorCacheSize = 1024
	if o.tuned {
		settings.WorkflowPollingInterval, settings.ActivityPollingInterval = 5*time.Millisecond, 5*time.Millisecond
		settings.WorkflowPollers, settings.ActivityPollers = 8, 8
	}
	w := &goWorkflowsLoop{backend: b, client: client.New(b), worker: worker.New(b, &settings), steps: o.steps}
	if err := errors.Join(w.worker.RegisterWorkflow(w.workflow, registry.WithName(flow)), w.worker.RegisterActivity(noEffect)); err != nil {
		return nil, err
	}
	ctx, w.stop = context.WithCancel(ctx)
	return w, w.worker.Start(ctx)
}

const flow = "bench"

func (w *goWorkflowsLoop) workflow(ctx workflow.Context, in goWorkflowsInput) (int, error) {
	for range in.Steps {
		if _, err := workflow.ExecuteActivity[string](ctx, workflow.DefaultActivityOptions, noEffect).Get(ctx); err != nil {
			return 0, err
		}
	}
	if done, ok := w.waiting.LoadAndDelete(in.Run); ok {
		close(done.(chan struct{}))
	}
	return in.Steps, nil
}

func (w *goWorkflowsLoop) effect(int) error {
	in, done := goWorkflowsInput{w.made.Add(1), w.steps}, make(chan struct{})
	w.waiting.Store(in.Run, done)
	_, err := w.client.CreateWorkflowInstance(context.Background(), client.WorkflowInstanceOptions{InstanceID: "run-" + strconv.FormatInt(in.Run, 10)}, flow, in)
	if err != nil {
		return fmt.Errorf("start run %d: %w", in.Run, err)
	}
	<-done
	return nil
}

func (w *goWorkflowsLoop) close() error {
	w.stop()
	return errors.Join(w.worker.WaitForCompletion(), w.backend.Close())
}
