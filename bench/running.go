package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

// running starts runs whose steps confirm at once, each with a claim before
// and an outcome after. It is a workload and a backlog.
type running struct {
	store  semel.Store
	engine *engine.Engine
	worker *engine.Worker
	steps  int
	stop   context.CancelFunc // of the worker's loop
	ended  chan error
	made   atomic.Int64 // runs of a backlog whose function has returned
}

// order is what a run is about.
type order struct {
	Invoice  string `json:"invoice"`
	Line     int    `json:"line"` // a step for each: the same request twice would be reported
	Customer string `json:"customer"`
	Amount   int    `json:"amount"`
	Currency string `json:"currency"`
}

type receipt struct {
	ID string `json:"id"`
}

var charge = semel.Action[order, receipt]{
	Name: "charge",
	Send: semel.Effect[order, receipt]{Connection: "payments", Contract: semel.Contract{Protection: semel.Unprotected}, Destination: nowhere{}},
}

func openRunning(ctx context.Context, store, at string, steps int) (*running, error) {
	w := &running{steps: steps}
	names := make([]string, steps)
	for i := range names {
		names[i] = "charge-" + strconv.Itoa(i+1)
	}
	billing := semel.Workflow[order]{Name: "billing", Func: func(ctx semel.Context, in order) error {
		for i, name := range names {
			in.Line = i + 1
			if _, err := semel.Do(ctx.Named(name), charge, in); err != nil {
				return err
			}
		}
		w.made.Add(1)
		return nil
	}}
	billing.Actions = []semel.Definition{charge.Definition()}
	var err error
	w.store, w.engine, w.worker, err = openWorker(ctx, store, at, billing.Definition())
	return w, err
}

// openWorker opens a store with an engine and a worker that executes one
// workflow.
func openWorker(ctx context.Context, store, at string, d semel.WorkflowDefinition) (semel.Store, *engine.Engine, *engine.Worker, error) {
	s, err := openStore(ctx, store, at)
	if err != nil {
		return nil, nil, nil, err
	}
	e, err := engine.New(ctx, s, engine.Options{Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return nil, nil, nil, errors.Join(err, s.Close())
	}
	w, err := engine.NewWorker(ctx, e, engine.WorkerOptions{Workflows: []semel.WorkflowDefinition{d}})
	if err != nil {
		return nil, nil, nil, errors.Join(err, e.Close(ctx), s.Close())
	}
	return s, e, w, nil
}

// follow lets the worker claim runs, renew leases and recover operations, as
// it does in production.
func (w *running) follow() {
	ctx, stop := context.WithCancel(context.Background())
	w.stop, w.ended = stop, make(chan error, 1)
	go func() { w.ended <- w.worker.Run(ctx) }()
}

func newOrder() (semel.NewRun, error) {
	key := semel.MintKey(time.Now(), tenBytes())
	return semel.Workflow[order]{Name: "billing"}.New(key, order{Invoice: string(key), Customer: "cus_81712", Amount: 12900, Currency: "eur"})
}

func tenBytes() (b [10]byte) {
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	return b
}

func (w *running) effect(int) error {
	n, err := newOrder()
	if err != nil {
		return err
	}
	ctx := context.Background()
	r, _, err := w.worker.Start(ctx, n)
	if err != nil {
		return err
	}
	r, err = w.engine.Await(ctx, r.ID)
	if err == nil && r.State != semel.RunCompleted {
		err = fmt.Errorf("run %s is %s: %s", r.ID, r.State, r.Reason)
	}
	return err
}

func (w *running) start(n, callers int) error {
	var all sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(n))
	failed := make([]error, callers)
	for i := range callers {
		all.Go(func() {
			for left.Add(-1) >= 0 && failed[i] == nil {
				var order semel.NewRun
				if order, failed[i] = newOrder(); failed[i] == nil {
					_, _, failed[i] = w.engine.Start(context.Background(), order)
				}
			}
		})
	}
	all.Wait()
	w.made.Store(-int64(n))
	return errors.Join(failed...)
}

func (w *running) drain() error {
	w.follow()
	for w.made.Load() < 0 {
		time.Sleep(time.Millisecond)
	}
	_, err := nothingBefore(w.store, "billing", time.Time{})
	return err
}

// nothingBefore waits until no run of the workflow is executed, and none is due
// before a time, or at all if that is zero.
func nothingBefore(store semel.Store, workflow string, t time.Time) (time.Time, error) {
	for {
		due, err := store.(semel.Runs).NextDue(context.Background(), []semel.WorkflowRef{{Name: workflow, Version: 1}})
		if err != nil || due.IsZero() || !t.IsZero() && !due.Before(t) {
			return due, err
		}
		time.Sleep(time.Millisecond)
	}
}

func (w *running) close() error {
	if w.stop != nil {
		w.stop()
		if err := <-w.ended; !errors.Is(err, context.Canceled) {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return errors.Join(w.engine.Close(ctx), w.store.Close())
}
