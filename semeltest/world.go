package semeltest

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
	"github.com/semel-dev/semel/store/sqlite"
)

// begin is when the time of every World begins: a Sunday.
var begin = time.Date(2040, time.January, 1, 0, 0, 0, 0, time.UTC)

// lease is long enough for a machine that is busy with other tests.
const lease = time.Minute

// World is a worker with its store, the destinations that its workflows reach,
// and their time. Its methods fail the test where something is not as it must
// be; they are for the goroutine of the test.
type World struct {
	t         testing.TB
	store     *sqlite.Store
	engine    *engine.Engine
	worker    *engine.Worker
	workflows []semel.WorkflowDefinition

	mu      sync.Mutex
	actions map[actionName]semel.Definition // that were declared, or seen in a step
	scripts map[scriptName]*script
	sent    []Sent
	events  int
}

type actionName struct{ connection, action string }

// New makes a world in which the given workflows are known, at midnight (UTC)
// of 1 January 2040. It ends with the test.
func New(t testing.TB, workflows ...semel.WorkflowDefinition) *World {
	t.Helper()
	w := &World{
		t: t, workflows: workflows,
		actions: map[actionName]semel.Definition{}, scripts: map[scriptName]*script{},
	}
	store, err := sqlite.Open(context.Background(), filepath.Join(t.TempDir(), "semel.db"), sqlite.Options{Create: true})
	if err != nil {
		t.Fatalf("semeltest: %v", err)
		return w
	}
	w.store = store
	t.Cleanup(w.end)
	w.moveTo(begin)
	w.work()
	return w
}

// work begins an engine and a worker over the store.
func (w *World) work() {
	w.t.Helper()
	ctx := context.Background()
	e, err := engine.New(ctx, w.store, engine.Options{
		Name: "semeltest", Lease: lease, Resolve: w.resolve,
		Logger: slog.New(slog.NewTextHandler(w.t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		w.t.Fatalf("semeltest: %v", err)
		return
	}
	w.engine = e
	simulated := make([]semel.WorkflowDefinition, len(w.workflows))
	for i, d := range w.workflows {
		simulated[i] = w.simulate(d)
	}
	w.worker, err = engine.NewWorker(ctx, e, engine.WorkerOptions{Workflows: simulated, Strict: true})
	if err != nil {
		w.t.Fatalf("semeltest: %v", err)
	}
}

// Restart goes on with a new worker over the same store, as a deployment does.
// It knows the given workflows; without any, the same as before.
func (w *World) Restart(workflows ...semel.WorkflowDefinition) {
	w.t.Helper()
	if err := w.engine.Close(context.Background()); err != nil {
		w.t.Fatalf("semeltest: %v", err)
	}
	if len(workflows) > 0 {
		w.workflows = workflows
	}
	w.work()
}

// Store is the store of the world, for what World itself does not offer.
func (w *World) Store() *sqlite.Store { return w.store }

// Engine is the engine of the world; Restart replaces it.
func (w *World) Engine() *engine.Engine { return w.engine }

// end closes the world and reports what must not be.
func (w *World) end() {
	w.t.Helper()
	if w.engine != nil {
		if err := w.engine.Close(context.Background()); err != nil {
			w.t.Errorf("semeltest: %v", err)
		}
	}
	if err := w.store.Close(); err != nil {
		w.t.Errorf("semeltest: %v", err)
	}
	w.checkScripts()
	w.checkEffects()
}

// known reports whether a workflow has an action of this name.
func (w *World) known(action string) bool {
	for name := range w.actions {
		if name.action == action {
			return true
		}
	}
	return false
}

// has reports whether the world's worker executes a workflow.
func (w *World) has(ref semel.WorkflowRef) bool {
	return slices.ContainsFunc(w.workflows, func(d semel.WorkflowDefinition) bool { return d.Ref() == ref })
}
