package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-dev/semel"
)

// WorkerOptions of a Worker. Zero values are useful.
type WorkerOptions struct {
	// Workflows that it executes. Runs of others are left to other workers.
	Workflows []semel.WorkflowDefinition
	// Earlier are definitions that runs may have begun with, and that are not
	// to be registered again: those runs go on with them.
	Earlier []semel.WorkflowDefinition
	// AtOnce is how many runs it executes at a time; 0 means 256.
	AtOnce int
	// Drain is how long Run waits, when it must end, for runs to reach a point
	// at which another worker can go on; 0 means 30 s.
	Drain time.Duration
	// Strict also detects a step that is called from a goroutine the workflow
	// started itself, even where no two calls overlap. It costs a little with
	// every step, and is meant for tests.
	Strict bool
}

// Worker executes runs. All its methods may be called concurrently; any number
// of workers, in any number of processes, may share one store.
type Worker struct {
	e    *Engine
	runs semel.Runs
	opt  WorkerOptions
	defs map[semel.WorkflowRef]*semel.WorkflowDefinition
	// earlier are definitions by their digest.
	earlier map[string]*semel.WorkflowDefinition
	refs    []semel.WorkflowRef

	kick     chan struct{} // something is due
	more     atomic.Bool   // more may be due than the last claim took
	draining atomic.Bool
	group    sync.WaitGroup // executions

	mu   sync.Mutex
	held map[semel.ID]*execution
}

// NewWorker makes a worker and registers its workflows in the store, so that
// their schedules and events start runs. It fails where the engine's store
// keeps no runs.
func NewWorker(ctx context.Context, e *Engine, o WorkerOptions) (*Worker, error) {
	runs, ok := e.store.(semel.Runs)
	if !ok {
		return nil, errors.New("this store keeps no runs")
	}
	if o.AtOnce == 0 {
		o.AtOnce = 256
	}
	if o.Drain == 0 {
		o.Drain = 30 * time.Second
	}
	w := &Worker{
		e: e, runs: runs, opt: o, kick: make(chan struct{}, 1),
		defs: map[semel.WorkflowRef]*semel.WorkflowDefinition{}, earlier: map[string]*semel.WorkflowDefinition{}, held: map[semel.ID]*execution{},
	}
	for i := range o.Workflows {
		d := &o.Workflows[i]
		if err := checkDefinition(d); err != nil {
			return nil, err
		}
		if _, twice := w.defs[d.Ref()]; twice {
			return nil, &semel.InputError{Field: "workflow", Problem: d.Ref().String() + " is given twice", Hint: "one worker has one definition of each version"}
		}
		w.defs[d.Ref()] = d
		w.refs = append(w.refs, d.Ref())
		e.know(d.Actions)
	}
	for i := range o.Earlier {
		d := &o.Earlier[i]
		w.earlier[d.Digest] = d
		if _, known := w.defs[d.Ref()]; !known && !slices.Contains(w.refs, d.Ref()) {
			w.refs = append(w.refs, d.Ref())
		}
	}
	if err := runs.Register(ctx, o.Workflows); err != nil {
		return nil, fmt.Errorf("register workflows: %w", err)
	}
	return w, nil
}

// definition is what a run is executed with: the one that it began with, where
// this worker has it, and else that of its version; nil for none.
func (w *Worker) definition(r *semel.Run) *semel.WorkflowDefinition {
	now := w.defs[semel.WorkflowRef{Name: r.Workflow, Version: r.Version}]
	if now != nil && now.Digest == r.Definition {
		return now
	}
	if d, ok := w.earlier[r.Definition]; ok && d.Name == r.Workflow && r.Definition != "" {
		return d
	}
	return now
}

func checkDefinition(d *semel.WorkflowDefinition) error {
	if err := semel.ValidateStepName(d.Name); err != nil {
		return fmt.Errorf("workflow %q: %w", d.Name, err)
	}
	if d.Run == nil {
		return &semel.InputError{Field: "workflow " + d.Name, Problem: "has no function", Hint: "set Func"}
	}
	for _, s := range d.Schedules {
		if _, err := parseSchedule(s); err != nil {
			return fmt.Errorf("schedule of workflow %s: %w", d.Name, err)
		}
	}
	return nil
}

// Run executes runs, fires schedules, delivers events and recovers operations
// until ctx ends. Then it claims nothing more and waits, as long as Drain, for
// its runs to reach a step at which another worker can go on. The error is
// ctx's, or says which runs were left to the end of their lease.
func (w *Worker) Run(ctx context.Context) error {
	var own sync.WaitGroup
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer own.Wait()
	defer stop()
	own.Go(func() { w.keep(inner) })
	own.Go(func() { _ = w.e.Run(inner) })
	own.Go(func() { w.fire(ctx) })
	w.claim(ctx)
	w.draining.Store(true)
	done := make(chan struct{})
	go func() {
		w.group.Wait()
		close(done)
	}()
	timer := time.NewTimer(w.opt.Drain)
	defer timer.Stop()
	select {
	case <-done:
		return ctx.Err()
	case <-timer.C:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.held) == 0 {
		return ctx.Err()
	}
	return fmt.Errorf("%d runs did not come to a step within %v; another worker goes on when their lease ends", len(w.held), w.opt.Drain)
}

// How many runs a worker takes in one claim, and how long it rests when none
// is due. Work that this process makes due wakes it at once.
const (
	claimBatch = 100
	claimRest  = 200 * time.Millisecond
)

// claim takes due runs and executes them, until ctx ends.
func (w *Worker) claim(ctx context.Context) {
	for ctx.Err() == nil && w.e.ctx.Err() == nil {
		n, err := w.take(ctx)
		if err != nil && ctx.Err() == nil {
			w.e.log.Warn("claim runs", "err", err)
		}
		if n == claimBatch {
			continue
		}
		timer := time.NewTimer(claimRest)
		select {
		case <-timer.C:
		case <-w.kick:
		case <-ctx.Done():
		case <-w.e.ctx.Done():
		}
		timer.Stop()
	}
}

// take claims what is due and begins to execute it.
func (w *Worker) take(ctx context.Context) (int, error) {
	w.mu.Lock()
	free := min(claimBatch, w.opt.AtOnce-len(w.held))
	w.mu.Unlock()
	if free <= 0 || len(w.refs) == 0 {
		w.more.Store(len(w.refs) > 0)
		return 0, nil
	}
	from := w.e.clock()
	// A worker that must end does not leave behind what it is about to get.
	patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.e.opt.Lease)
	defer cancel()
	runs, err := w.runs.Claim(patient, w.claimant(), w.refs, free)
	w.more.Store(len(runs) == free)
	for _, r := range runs {
		w.begin(r, from)
	}
	return len(runs), err
}

func (w *Worker) claimant() semel.RunClaim {
	return semel.RunClaim{By: w.e.opt.Name, Lease: w.e.opt.Lease}
}

// begin executes a run that this worker claimed; from is before it asked. It
// reports false where the worker executes this claim already.
func (w *Worker) begin(r semel.Run, from time.Time) bool {
	x := newExecution(w, r, from)
	w.mu.Lock()
	if other := w.held[r.ID]; other != nil && other.run.Attempt == r.Attempt {
		w.mu.Unlock()
		x.stop()
		return false
	}
	w.held[r.ID] = x
	w.mu.Unlock()
	x.arrival = w.e.arrivals.expect(r.ID)
	w.group.Go(func() {
		defer w.e.arrivals.arrive(r.ID, x.arrival)
		defer func() {
			w.mu.Lock()
			if w.held[r.ID] == x { // and not a later claim of a run that was lost
				delete(w.held, r.ID)
			}
			room := w.opt.AtOnce - len(w.held)
			w.mu.Unlock()
			if x.dueNow || w.more.Load() && room >= min(claimBatch, max(1, w.opt.AtOnce/4)) {
				w.Kick()
			}
		}()
		x.execute()
	})
	return true
}

// Kick makes the worker look for due runs now.
func (w *Worker) Kick() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// Start makes a run durable and executes it here, if this worker has its
// workflow and is not full. existing: a run had its key, and its input is the
// same; another input is a *semel.RunConflictError.
func (w *Worker) Start(ctx context.Context, n semel.NewRun) (r semel.Run, existing bool, err error) {
	w.mu.Lock()
	_, known := w.defs[semel.WorkflowRef{Name: n.Workflow, Version: n.Version}]
	here := known && len(w.held) < w.opt.AtOnce && !w.draining.Load() && n.At.IsZero()
	w.mu.Unlock()
	if !here {
		return w.e.Start(ctx, n)
	}
	claim := w.claimant()
	from := w.e.clock()
	r, existing, err = w.e.start(ctx, n, &claim)
	if err == nil && !existing {
		existing = !w.begin(r, from)
	}
	return r, existing, err
}

// Pass executes everything that is due now, with what that makes due, and
// returns when the next run or schedule is due; zero for none. It is for tests
// and for programs that run now and then; use either Pass or Run.
func (w *Worker) Pass(ctx context.Context) (time.Time, error) {
	inner, stop := context.WithCancel(ctx)
	var keeping sync.WaitGroup
	keeping.Go(func() { w.keep(inner) })
	defer keeping.Wait()
	defer stop()
	for idle := 0; ; {
		worked, err := w.fireOnce(ctx)
		if err != nil {
			return time.Time{}, err
		}
		recovered, err := w.e.Recover(ctx)
		if err != nil {
			return time.Time{}, err
		}
		n, err := w.take(ctx)
		if err != nil {
			return time.Time{}, err
		}
		w.group.Wait()
		if idle++; worked+n > 0 {
			idle = 0
		}
		// An operation that nobody here can settle stays due.
		if worked+recovered+n == 0 || idle > 3 {
			return w.runs.NextDue(ctx, w.refs)
		}
		if err := ctx.Err(); err != nil {
			return time.Time{}, err
		}
	}
}
