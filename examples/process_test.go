package examples_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

// process is a worker that dies at one of its calls of a port: from then on
// nothing that it does reaches its store or its destinations.
type process struct {
	keeper
	worker *engine.Worker
	engine *engine.Engine

	mu     sync.Mutex
	points int // passed so far: two for each call, before and after
	diesAt int // 0 for never
	dead   bool
}

// newProcess begins one that dies at a point, counted from 1.
func (w *world) newProcess(diesAt int, d semel.WorkflowDefinition) *process {
	w.Helper()
	p := &process{keeper: w.store, diesAt: diesAt}
	patience := 30 * time.Second
	if diesAt > 0 {
		patience = 100 * time.Millisecond // the dead wait for nothing
	}
	var err error
	p.engine, err = engine.New(w.Context(), p, engine.Options{Patience: patience, Resolve: p.resolver(w.resolve), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.Fatal(err)
	}
	p.worker, err = engine.NewWorker(w.Context(), p.engine, engine.WorkerOptions{Workflows: []semel.WorkflowDefinition{p.watch(d)}, Strict: true})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = p.engine.Close(w.Context()) })
	return p
}

// point passes one, and reports whether the process lives.
func (p *process) point() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.dead {
		p.points++
		p.dead = p.points == p.diesAt
	}
	return !p.dead
}

// call makes a call of a port, unless the process is dead by then.
func (p *process) call(do func() error) error {
	if !p.point() {
		return semel.ErrUnavailable
	}
	err := do()
	if !p.point() {
		return semel.ErrUnavailable // nobody is there to hear the answer
	}
	return err
}

func (p *process) Commit(ctx context.Context, c semel.Change) (o semel.Operation, err error) {
	err = p.call(func() (err error) { o, err = p.keeper.Commit(ctx, c); return err })
	return o, err
}

func (p *process) CommitRun(ctx context.Context, c semel.RunCommit) (done semel.RunCommitted) {
	if err := p.call(func() error { done = p.keeper.CommitRun(ctx, c); return nil }); err != nil {
		return semel.RunCommitted{OutcomeErr: err, ClaimErr: err, RunErr: err}
	}
	return done
}

func (p *process) Claim(ctx context.Context, c semel.RunClaim, of []semel.WorkflowRef, limit int) (runs []semel.Run, err error) {
	err = p.call(func() (err error) { runs, err = p.keeper.Claim(ctx, c, of, limit); return err })
	if err != nil {
		return nil, err
	}
	return runs, nil
}

func (p *process) TakeEvent(ctx context.Context, c semel.EventClaim) (r semel.StepRecord, err error) {
	err = p.call(func() (err error) { r, err = p.keeper.TakeEvent(ctx, c); return err })
	return r, err
}

// Renew and RenewRuns happen in the background, at any time: they are no points,
// but a dead process makes none.
func (p *process) Renew(ctx context.Context, id semel.ID, attempt int, lease time.Duration) (semel.Renewal, error) {
	if p.died() {
		return semel.Renewal{}, semel.ErrUnavailable
	}
	return p.keeper.Renew(ctx, id, attempt, lease)
}

func (p *process) RenewRuns(ctx context.Context, held []semel.RunFence, lease time.Duration) ([]semel.Run, error) {
	if p.died() {
		return nil, semel.ErrUnavailable
	}
	return p.keeper.RenewRuns(ctx, held, lease)
}

func (p *process) died() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// watch makes every call of the workflow's destinations a point.
func (p *process) watch(d semel.WorkflowDefinition) semel.WorkflowDefinition {
	run := d.Run
	d.Run = func(ctx semel.Context) error { return run(ctx.Through(p.through)) }
	d.Actions = slices.Clone(d.Actions)
	for i := range d.Actions {
		d.Actions[i].Destination = port{p, d.Actions[i].Destination}
	}
	return d
}

// resolver makes what a resolver finds a point, too.
func (p *process) resolver(find engine.Resolver) engine.Resolver {
	if find == nil {
		return nil
	}
	return func(o *semel.Operation) (semel.Destination, semel.Contract, error) {
		d, c, err := find(o)
		return port{p, d}, c, err
	}
}

func (p *process) through(e semel.Executor) semel.Executor { return steps{e, p} }

type steps struct {
	semel.Executor
	p *process
}

func (s steps) Step(ctx semel.Context, path string, step semel.Step) (semel.StepRecord, error) {
	switch given := step.(type) {
	case *semel.DoStep:
		watched := *given
		watched.Call.Destination = port{s.p, given.Call.Destination}
		step = &watched
	case *semel.EachStep:
		watched := *given
		watched.Body = func(ctx semel.Context, item []byte) error { return given.Body(ctx.Through(s.p.through), item) }
		step = &watched
	}
	return s.Executor.Step(ctx, path, step)
}

// port is a destination as a process that may die reaches it.
type port struct {
	p *process
	semel.Destination
}

func (d port) Send(ctx context.Context, s *semel.Send) (ev semel.Event) {
	if err := d.p.call(func() error { ev = d.Destination.Send(ctx, s); return nil }); err != nil {
		return semel.Event{Kind: semel.EvLost, Reason: err.Error()}
	}
	return ev
}

func (d port) Look(ctx context.Context, s *semel.Send) (ev semel.Event) {
	if err := d.p.call(func() error { ev = d.Destination.(semel.Looker).Look(ctx, s); return nil }); err != nil {
		return semel.Event{Kind: semel.EvNoAnswer, Reason: err.Error()}
	}
	return ev
}
