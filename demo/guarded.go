package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

// guarded works with Semel: on the run of the night, until it has ended or only
// a person can take it further. Whoever comes first starts it; each worker that
// dies over it is followed by another.
func (a *assignment) guarded(ctx context.Context, due []invoice, said *announcer, log *slog.Logger) (err error) {
	store, err := openStore(ctx, a.DB)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	b, err := newBilling(&night{ID: a.Night, dir: a.Dir}, a.Base, said)
	if err != nil {
		return err
	}
	e, err := engine.New(ctx, store, engine.Options{
		Name:   fmt.Sprintf("demo worker %d (process %d)", a.Part, os.Getpid()),
		Tenant: b.config.Tenant, Lease: lease, Late: true, Resolve: b.resolve, Logger: log,
	})
	if err != nil {
		return err
	}
	defer func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell/2)
		defer cancel()
		err = errors.Join(err, e.Close(last), b.config.Close(last))
	}()
	worker, err := engine.NewWorker(ctx, e, engine.WorkerOptions{Workflows: []semel.WorkflowDefinition{b.definition}, Drain: farewell / 2})
	if err != nil {
		return err
	}
	asked, err := b.run(due[0].Due)
	if err != nil {
		return err
	}
	run, _, err := worker.Start(ctx, asked)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	working, stop := context.WithCancel(ctx)
	defer stop()
	wg.Go(func() { _ = worker.Run(working) }) // what it leaves, another worker takes up
	_, err = e.Await(ctx, run.ID)
	return err
}
