package cases

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
	"github.com/semel-dev/semel/engine"
	"github.com/semel-dev/semel/store/postgres"
	"github.com/semel-dev/semel/store/postgres/postgrestest"
	"github.com/semel-dev/semel/store/sqlite"
)

// runStore is a store that keeps runs, and whose clock a test may move.
type runStore interface {
	shifted
	semel.Runs
}

// order is what the workflows of the cases work on.
type order struct {
	ID     string        `json:"id"`
	Amount int           `json:"amount,omitzero"`
	Rest   time.Duration `json:"rest,omitzero"`
}

type receipt struct {
	ID string `json:"id"`
}

// place is where the workflows of a case have their effects.
type place struct {
	dest semel.Destination
	url  string
}

// action posts an order to the path of its name; its key is the order's.
func (p place) action(name string, c semel.Contract) semel.Action[order, receipt] {
	if c.Timeout == 0 {
		c.Timeout = time.Minute
	}
	return semel.Action[order, receipt]{
		Name: name, Key: func(o order) string { return name + " " + o.ID },
		Send: semel.Effect[order, receipt]{
			Connection: "dest", Contract: c, Destination: p.dest,
			Request: func(o order) (semel.Request, error) {
				body, err := json.Marshal(order{ID: o.ID, Amount: o.Amount})
				if err != nil {
					return semel.Request{}, err
				}
				req, _, err := httpdest.NewRequest(http.MethodPost, p.url+"/"+name, nil, body)
				return req, err
			},
		},
	}
}

// none is the contract of a destination that honours nothing.
func none() semel.Contract { return semel.Contract{Protection: semel.Unprotected} }

// keyed is the contract of one that honours keys.
func keyed() semel.Contract {
	return semel.Contract{Protection: semel.Keyed, Window: 24 * time.Hour, KeyHeader: keyHeader, Backoff: 50 * time.Millisecond}
}

const keyHeader = "Idempotency-Key"

// flows makes the workflows of a case for a place.
type flows func(p place) []semel.WorkflowDefinition

// eachRunStore runs a case on both stores at the same time, with a database
// that worker processes can open.
func eachRunStore(t *testing.T, run func(r *rig, database string)) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		r, database := onSQLite(t)
		run(r, database)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		r, database := onPostgres(t)
		run(r, database)
	})
}

func onSQLite(t *testing.T) (*rig, string) {
	path := filepath.Join(t.TempDir(), "semel.db")
	return &rig{T: t, dest: newDest(t), open: func() shifted {
		s, err := sqlite.Open(t.Context(), path, sqlite.Options{Create: true})
		return opened(t, s, err)
	}}, "sqlite:" + path
}

func onPostgres(t *testing.T) (*rig, string) {
	url := postgrestest.Shared(t).Database(t)
	return &rig{T: t, dest: newDest(t), open: func() shifted {
		s, err := postgres.Open(t.Context(), url, postgres.Options{Create: true})
		return opened(t, s, err)
	}}, url
}

// hand is a worker in this process, with a handle on the database of its own.
type hand struct {
	*node
	runs   semel.Runs
	worker *engine.Worker
}

// hand makes a worker for some workflows, which executes nothing yet.
func (r *rig) hand(o engine.Options, f flows) *hand {
	r.Helper()
	return r.handOn(r.open(), o, f)
}

func (r *rig) handOn(store shifted, o engine.Options, f flows) *hand {
	r.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	h := &hand{node: r.nodeOn(store, o), runs: store.(semel.Runs)}
	var err error
	h.worker, err = engine.NewWorker(r.Context(), h.engine, engine.WorkerOptions{Workflows: f(place{h.http, r.dest.URL})})
	if err != nil {
		r.Fatal(err)
	}
	return h
}

// work has the worker work until the case ends, or until stop.
func (h *hand) work() (stop func()) {
	ctx, cancel := context.WithCancel(h.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := h.worker.Run(ctx); !errors.Is(err, context.Canceled) {
			h.Errorf("the worker ended: %v", err)
		}
	}()
	stop = func() { cancel(); <-done }
	h.Cleanup(stop)
	return stop
}

// pass executes what is due now, and returns a run as it is then.
func (h *hand) pass(id semel.ID) semel.Run {
	h.Helper()
	if _, err := h.worker.Pass(h.Context()); err != nil {
		h.Fatal(err)
	}
	return h.load(id)
}

func (h *hand) load(id semel.ID) semel.Run {
	h.Helper()
	run, err := h.runs.LoadRun(h.Context(), id)
	if err != nil {
		h.Fatal(err)
	}
	return run
}

// start makes a run of a workflow durable; some worker executes it.
func (h *hand) start(workflow string, version int, key string, input any) (semel.Run, bool) {
	h.Helper()
	data, err := json.Marshal(input)
	if err != nil {
		h.Fatal(err)
	}
	run, existing, err := h.engine.Start(h.Context(), semel.NewRun{Workflow: workflow, Version: version, Key: semel.Key(key), Input: data})
	if err != nil {
		h.Fatal(err)
	}
	return run, existing
}

// started is start for a run that must be new.
func (h *hand) started(workflow, key string, input any) semel.ID {
	h.Helper()
	run, existing := h.start(workflow, 1, key, input)
	if existing {
		h.Fatalf("run %q of %s exists", key, workflow)
	}
	return run.ID
}

// await waits until the run is in a state.
func (h *hand) await(id semel.ID, state semel.RunState) semel.Run {
	h.Helper()
	var run semel.Run
	h.until("run "+id.String()+" to be "+string(state), func() bool {
		run = h.load(id)
		if run.State.Ended() && run.State != state {
			h.Fatalf("run %q is %s (%s), want %s", run.Key, run.State, run.Reason, state)
		}
		return run.State == state
	})
	return run
}

func (r *rig) wantRun(run semel.Run, state semel.RunState, reason string) {
	r.Helper()
	if run.State != state || !strings.Contains(run.Reason, reason) {
		r.Fatalf("run %q is %s (%s), want %s (%s)", run.Key, run.State, run.Reason, state, reason)
	}
}

// patience is as long as a very slow machine may need for anything.
const patience = time.Minute

// until waits for something.
func (r *rig) until(what string, holds func() bool) {
	r.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if holds() {
			return
		}
		if time.Now().After(end) {
			r.Fatalf("waited in vain for %s", what)
		}
	}
}

// change is what a person asks of a run.
func (h *hand) change(id semel.ID, verb semel.RunVerb) error {
	_, err := h.runs.ChangeRun(h.Context(), id, semel.RunCommand{Verb: verb, By: "ann", Reason: "the case says so"})
	return err
}

// operation is that of one step of a run.
func (h *hand) operation(run semel.ID, path string) *semel.Operation {
	h.Helper()
	steps, err := h.runs.Steps(h.Context(), run)
	if err != nil {
		h.Fatal(err)
	}
	for _, s := range steps {
		if s.Path == path {
			return s.Effect
		}
	}
	return nil
}

// step is the record of one step of a run.
func (h *hand) step(run semel.ID, path string) (semel.StepRecord, bool) {
	h.Helper()
	steps, err := h.runs.Steps(h.Context(), run)
	if err != nil {
		h.Fatal(err)
	}
	for _, s := range steps {
		if s.Path == path {
			return s, true
		}
	}
	return semel.StepRecord{}, false
}

// inbox is one event with what became of it.
func (h *hand) inbox(id string) semel.InboxEntry {
	h.Helper()
	for e, err := range h.runs.Inbox(h.Context(), semel.EventFilter{ID: id}) {
		if err != nil {
			h.Fatal(err)
		}
		return e
	}
	h.Fatalf("there is no event %q", id)
	return semel.InboxEntry{}
}

// wantQuiet checks what must hold at the end of every case with runs: the
// invariants of operations, and that no run is held by a worker, that each has
// a state, and that its notes say who and when.
func (h *hand) wantQuiet() {
	h.Helper()
	h.wantHonest()
	for o, err := range h.store.List(h.Context(), semel.Filter{}) {
		if err != nil {
			h.Fatal(err)
		}
		if o.State == semel.InProgress {
			h.Errorf("operation %q is left in progress", o.Key)
		}
	}
	for run, err := range h.runs.ListRuns(h.Context(), semel.RunFilter{}) {
		if err != nil {
			h.Fatal(err)
		}
		if run.State == semel.RunRunning || !run.LeaseUntil.IsZero() {
			h.Errorf("run %q is left %s, held until %v", run.Key, run.State, run.LeaseUntil)
		}
		notes, err := h.runs.Notes(h.Context(), run.ID)
		if err != nil {
			h.Fatal(err)
		}
		for _, note := range notes {
			if note.At.IsZero() || note.By == "" {
				h.Errorf("a note %q of run %q has no time or no author", note.Kind, run.Key)
			}
		}
	}
}

// at counts the effects and the requests of one path.
func (d *dest) at(path string) (effects, requests int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for ref, n := range d.effects {
		if p, _, _ := strings.Cut(ref, " "); p == path {
			effects += n
		}
	}
	for _, a := range d.arrivals {
		if a.path == path {
			requests++
		}
	}
	return effects, requests
}

// wantAt checks what happened at one path.
func (r *rig) wantAt(path string, effects, requests int) {
	r.Helper()
	if e, n := r.dest.at(path); e != effects || n != requests {
		r.Errorf("%s saw %d effects in %d requests, want %d in %d", path, e, n, effects, requests)
	}
}

// honouring makes the destination one that honours keys: the first request
// under a key has the effect.
func (d *dest) honouring() func(a arrival, act func(string)) {
	var mu sync.Mutex
	seen := map[string]bool{}
	return func(a arrival, act func(string)) {
		mu.Lock()
		defer mu.Unlock()
		if key := a.header.Get(keyHeader); key == "" || !seen[key] {
			seen[key] = true
			act(a.path + " " + string(a.body))
		}
	}
}
