package workflowfile_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
	"github.com/semel-dev/semel/store/postgres"
	"github.com/semel-dev/semel/store/postgres/postgrestest"
	"github.com/semel-dev/semel/store/sqlite"
	"github.com/semel-dev/semel/workflowfile"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

// shifted is a store whose clock a test may move.
type shifted interface {
	semel.Store
	semel.Runs
	Shift(time.Duration)
}

// eachStore runs a test on SQLite and on PostgreSQL. open gives another handle
// on the same database, as another process has it.
func eachStore(t *testing.T, test func(t *testing.T, open func() shifted)) {
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "semel.db")
		test(t, func() shifted {
			s, err := sqlite.Open(t.Context(), path, sqlite.Options{Create: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			return s
		})
	})
	t.Run("postgres", func(t *testing.T) {
		url := postgrestest.Shared(t).Database(t)
		test(t, func() shifted {
			s, err := postgres.Open(t.Context(), url, postgres.Options{Create: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			return s
		})
	})
}

// town is where the actions of a test act. Every action has a contract by its
// connection, and an answer by its name; without one it confirms with {}.
type town struct {
	mu       sync.Mutex
	requests []request
	effects  map[string][]string // bodies by action, once for each key
	keys     map[string]bool
	answers  map[string]answer
	contract map[string]semel.Contract
	// after is called when the nth request has had its effect, before anybody
	// learns of it.
	after func(n int)
}

type request struct{ action, key, body string }

// answer says what the nth request of an action brings, and whether the effect
// happens.
type answer func(n int, body string) (ev semel.Event, happens bool)

func says(body string) answer {
	return func(int, string) (semel.Event, bool) { return confirmed("application/json", body), true }
}

func confirmed(mediaType, body string) semel.Event {
	return semel.Event{Kind: semel.EvConfirmed, Result: &semel.Result{MediaType: mediaType, Body: []byte(body)}}
}

func refuses(reason string) answer {
	return func(int, string) (semel.Event, bool) {
		return semel.Event{Kind: semel.EvRefused, Reason: reason}, false
	}
}

// loses the answer of the first n requests, whose effect happens.
func loses(n int, then answer) answer {
	return func(i int, body string) (semel.Event, bool) {
		if i <= n {
			return semel.Event{Kind: semel.EvLost, Reason: "connection reset", Closed: true}, true
		}
		return then(i, body)
	}
}

func newTown() *town {
	return &town{
		effects: map[string][]string{}, keys: map[string]bool{}, answers: map[string]answer{},
		contract: map[string]semel.Contract{
			"payments": {Protection: semel.Keyed, Window: 24 * time.Hour},
			"mail":     {},
			"stock":    {Protection: semel.Lookup, CanLookUp: true},
			"sql":      {Protection: semel.Transactional},
		},
	}
}

func (w *town) Call(connection, action string, with map[string]any) (semel.Call, error) {
	body, err := json.Marshal(with)
	if err != nil {
		return semel.Call{}, err
	}
	if bytes.Contains(body, []byte(`"refused"`)) {
		return semel.Call{}, &semel.InputError{Field: "with", Problem: "is refused", Hint: "give something else"}
	}
	name := connection + "." + action
	return semel.Call{
		Action: name, Contract: w.contract[connection], Destination: house{w, name},
		Request: semel.Request{Connection: connection, Action: name, Kind: "call", MediaType: "application/json", Body: body},
	}, nil
}

func (w *town) resolve(o *semel.Operation) (semel.Destination, semel.Contract, error) {
	return house{w, o.Request.Action}, o.Contract, nil
}

// seen are the bodies of the effects of an action, sorted.
func (w *town) seen(action string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(slices.Values(w.effects[action]))
}

// asked is how many requests reached an action.
func (w *town) asked(action string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count(action)
}

func (w *town) count(action string) (n int) {
	for _, r := range w.requests {
		if r.action == action {
			n++
		}
	}
	return n
}

func (w *town) say(action string, a answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers[action] = a
}

// house is one action of a town. It honours keys.
type house struct {
	w    *town
	name string
}

func (h house) Send(_ context.Context, s *semel.Send) semel.Event {
	if err := s.Begin(); err != nil {
		return semel.Event{Kind: semel.EvRefused, Reason: err.Error()}
	}
	h.w.mu.Lock()
	body := string(s.Operation.Request.Body)
	h.w.requests = append(h.w.requests, request{h.name, s.DestinationKey, body})
	total, n, a := len(h.w.requests), h.w.count(h.name), h.w.answers[h.name]
	h.w.mu.Unlock()
	if a == nil {
		a = says(`{}`)
	}
	ev, happens := a(n, body)
	h.w.mu.Lock()
	if happens && !h.w.keys[s.DestinationKey] {
		h.w.keys[s.DestinationKey] = true
		h.w.effects[h.name] = append(h.w.effects[h.name], body)
	}
	after := h.w.after
	h.w.mu.Unlock()
	if after != nil {
		after(total)
	}
	return ev
}

func (h house) Look(_ context.Context, s *semel.Send) semel.Event {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	if h.w.keys[s.DestinationKey] {
		return semel.Event{Kind: semel.EvFound, Result: &semel.Result{MediaType: "application/json", Body: []byte(`{"id":"found"}`)}}
	}
	return semel.Event{Kind: semel.EvNoAnswer, Reason: "not found"}
}

// rig is a worker over a store that executes files.
type rig struct {
	*testing.T
	store shifted
	e     *engine.Engine
	w     *engine.Worker
	d     *workflowfile.Definition
}

func newRig(t *testing.T, store shifted, w *town, d *workflowfile.Definition) *rig {
	t.Helper()
	e, err := engine.New(t.Context(), store, engine.Options{Resolve: w.resolve, Name: "worker"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	worker, err := engine.NewWorker(t.Context(), e, engine.WorkerOptions{Workflows: []semel.WorkflowDefinition{d.Workflow(w)}, Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	return &rig{T: t, store: store, e: e, w: worker, d: d}
}

// start starts a run and executes it as far as it goes.
func (r *rig) start(key semel.Key, inputs string) semel.Run {
	r.Helper()
	n, err := r.d.New(key, []byte(inputs))
	if err != nil {
		r.Fatal(err)
	}
	run, _, err := r.e.Start(r.Context(), n)
	if err != nil {
		r.Fatal(err)
	}
	return r.pass(run.ID)
}

// pass executes what is due and returns the run as it is then.
func (r *rig) pass(id semel.ID) semel.Run {
	r.Helper()
	if _, err := r.w.Pass(r.Context()); err != nil {
		r.Fatal(err)
	}
	run, err := r.store.LoadRun(r.Context(), id)
	if err != nil {
		r.Fatal(err)
	}
	return run
}

func (r *rig) retry(id semel.ID) semel.Run {
	r.Helper()
	if _, err := r.store.ChangeRun(r.Context(), id, semel.RunCommand{Verb: semel.RetryRun, By: "ann", Reason: "mended"}); err != nil {
		r.Fatal(err)
	}
	return r.pass(id)
}

func (r *rig) send(id, name, match, data string) {
	r.Helper()
	if _, err := r.store.Send(r.Context(), semel.InboxEvent{ID: id, Name: name, Match: match, Data: []byte(data)}); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) want(run semel.Run, state semel.RunState, reasons ...string) {
	r.Helper()
	for _, reason := range append(reasons, "") {
		if run.State != state || !strings.Contains(run.Reason, reason) {
			r.Fatalf("run is %s (%s), want %s (%s)", run.State, run.Reason, state, reason)
		}
	}
}

// operation is the one of a step.
func (r *rig) operation(run semel.ID, path string) semel.Operation {
	r.Helper()
	steps, err := r.store.Steps(r.Context(), run)
	if err != nil {
		r.Fatal(err)
	}
	for _, s := range steps {
		if s.Path == path && s.Effect != nil {
			return *s.Effect
		}
	}
	r.Fatalf("no operation of step %s in %v", path, steps)
	return semel.Operation{}
}

// wants compares what an action did.
func (w *town) wants(t *testing.T, action string, bodies ...string) {
	t.Helper()
	if got := w.seen(action); !slices.Equal(got, bodies) {
		t.Errorf("%s did\n%s\nwant\n%s", action, strings.Join(got, "\n"), strings.Join(bodies, "\n"))
	}
}

// workflow parses a workflow named w, version 1, from its steps and what else.
func workflow(t testing.TB, text string) *workflowfile.Definition {
	t.Helper()
	d, problems := workflowfile.Parse("w.yaml", []byte("name: w\nversion: 1"+text), actionsOf)
	if d == nil {
		t.Fatalf("%s\n%s", text, lines(problems))
	}
	return d
}

// actionsOf are checks that know which actions of stock read.
var actionsOf = workflowfile.Checks{
	Cron: checks.Cron,
	Connection: func(name string) (workflowfile.ConnectionInfo, bool) {
		if name == "stock" {
			return workflowfile.ConnectionInfo{Contract: &semel.Contract{}, Actions: map[string]workflowfile.ActionInfo{"list": {Read: true}, "reserve": {}}}, true
		}
		return workflowfile.ConnectionInfo{Contract: &semel.Contract{}}, true
	},
	File: func(name string) ([]byte, error) { return nil, fmt.Errorf("no file %s", name) },
}
