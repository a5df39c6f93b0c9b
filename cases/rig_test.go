// Package cases holds public failures of other systems as tests: each ends
// with the outcome that was right. Effects are counted at the destination.
package cases

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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

// shifted is a store whose clock a test may move.
type shifted interface {
	semel.Store
	Shift(time.Duration)
}

// rig is one database, one destination, and engines between them.
type rig struct {
	*testing.T
	dest *dest
	open func() shifted
}

// eachStore runs a case on SQLite and on PostgreSQL.
func eachStore(t *testing.T, run func(r *rig)) {
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "semel.db")
		run(&rig{T: t, dest: newDest(t), open: func() shifted {
			s, err := sqlite.Open(t.Context(), path, sqlite.Options{Create: true})
			return opened(t, s, err)
		}})
	})
	t.Run("postgres", func(t *testing.T) {
		url := postgrestest.Shared(t).Database(t)
		run(&rig{T: t, dest: newDest(t), open: func() shifted {
			s, err := postgres.Open(t.Context(), url, postgres.Options{Create: true})
			return opened(t, s, err)
		}})
	})
}

func opened(t *testing.T, s shifted, err error) shifted {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// node is one process: a handle on the database, a connection pool, an engine.
type node struct {
	*rig
	store  shifted
	http   *httpdest.Destination
	engine *engine.Engine
}

func (r *rig) node(o engine.Options) *node {
	r.Helper()
	return r.nodeOn(r.open(), o)
}

func (r *rig) nodeOn(store shifted, o engine.Options) *node {
	r.Helper()
	d, err := httpdest.New(httpdest.Options{})
	if err != nil {
		r.Fatal(err)
	}
	n := &node{rig: r, store: store, http: d}
	if o.Resolve == nil {
		o.Resolve = func(op *semel.Operation) (semel.Destination, semel.Contract, error) { return d, op.Contract, nil }
	}
	n.engine, err = engine.New(r.Context(), store, o)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := n.engine.Close(ctx); err != nil {
			r.Error(err)
		}
		if err := d.Close(ctx); err != nil {
			r.Error(err)
		}
	})
	return n
}

// request is what a case submits; scope and path have defaults.
type request struct {
	scope, key, path, body string
	contract               semel.Contract
	volatile               []string
	wait                   time.Duration
}

func (n *node) call(q request) semel.Call {
	n.Helper()
	if q.scope == "" {
		q.scope = "acct-1"
	}
	if q.contract.Protection == "" {
		q.contract.Protection = semel.Unprotected
	}
	if q.contract.Timeout == 0 {
		q.contract.Timeout = 10 * time.Second
	}
	req, _, err := httpdest.NewRequest(http.MethodPost, n.dest.URL+q.path, nil, []byte(q.body))
	if err != nil {
		n.Fatal(err)
	}
	req.Volatile = q.volatile
	return semel.Call{
		Scope: semel.Scope(q.scope), Key: semel.Key(q.key), Request: req, Contract: q.contract,
		Destination: n.http, Wait: q.wait, Source: "case",
	}
}

func (n *node) submit(q request) semel.Outcome {
	n.Helper()
	out, err := n.engine.Do(n.Context(), n.call(q))
	if err != nil {
		n.Fatalf("submit %q: %v", q.key, err)
	}
	return out
}

// want checks the status of an outcome.
func (n *node) want(out semel.Outcome, status semel.Status) {
	n.Helper()
	if out.Status != status {
		n.Errorf("key %q: %s (%s; next %s: %s), want %s", out.Operation.Key, out.Status, out.Operation.Reason, out.Next.Kind, out.Next.Reason, status)
	}
}

// arrival is one request as the destination saw it.
type arrival struct {
	path, query string
	header      http.Header
	body        []byte
	nth         int // for its body
}

// dest is an HTTP destination that a case scripts. By default it acts and
// answers 201.
type dest struct {
	*httptest.Server
	mu       sync.Mutex
	arrivals []arrival
	effects  map[string]int // per path and reference
	script   func(a arrival, act func(ref string), w http.ResponseWriter)
}

func newDest(t *testing.T) *dest {
	d := &dest{effects: map[string]int{}}
	d.Server = httptest.NewServer(d)
	t.Cleanup(d.Close)
	return d
}

func (d *dest) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	a := arrival{path: r.URL.Path, query: r.URL.RawQuery, header: r.Header, body: body, nth: 1}
	d.mu.Lock()
	for _, before := range d.arrivals {
		if bytes.Equal(before.body, body) && before.path == a.path {
			a.nth++
		}
	}
	if r.Method != http.MethodGet {
		d.arrivals = append(d.arrivals, a)
	}
	script := d.script
	d.mu.Unlock()
	act := func(ref string) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.effects[ref]++
	}
	if script != nil {
		script(a, act, w)
		return
	}
	act(a.path + " " + string(body))
	answer(w, http.StatusCreated, fmt.Sprintf(`{"id":"ch_%d"}`, d.count()))
}

// ready publishes the script to requests that come from another process.
func (d *dest) ready() {
	d.mu.Lock()
	defer d.mu.Unlock()
}

// count is how many effects there are, in total or of some references.
func (d *dest) count(refs ...string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for ref, times := range d.effects {
		for _, want := range refs {
			if want == ref {
				n += times
			}
		}
		if len(refs) == 0 {
			n += times
		}
	}
	return n
}

func (d *dest) seen() []arrival {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]arrival(nil), d.arrivals...)
}

// wantEffects checks what happened in the world: effects, and requests on the
// wire (I1 and I6 of the cases).
func (n *node) wantEffects(effects, requests int) {
	n.Helper()
	if e, r := n.dest.count(), len(n.dest.seen()); e != effects || r != requests {
		n.Errorf("the destination saw %d effects in %d requests, want %d in %d", e, r, effects, requests)
	}
}

// wantHonest checks what must hold at the end of every case: nothing is in
// progress without an owner, nothing completed without proof, and the attempts
// on record are the requests on the wire.
func (n *node) wantHonest() {
	n.Helper()
	attempts := 0
	for o, err := range n.store.List(n.Context(), semel.Filter{}) {
		if err != nil {
			n.Fatal(err)
		}
		attempts += len(o.Attempts)
		if o.State == semel.Completed && o.Result == nil {
			n.Errorf("operation %q is completed without an answer", o.Key)
		}
		events, err := n.store.Events(n.Context(), o.ID)
		if err != nil {
			n.Fatal(err)
		}
		for _, ev := range events {
			if ev.At.IsZero() || ev.By == "" {
				n.Errorf("operation %q: evidence %q has no time or no author", o.Key, ev.Kind)
			}
		}
	}
	if seen := len(n.dest.seen()); seen > attempts {
		n.Errorf("%d requests on the wire, %d attempts on record", seen, attempts)
	}
}

func answer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// drop closes the connection without an answer.
func drop() { panic(http.ErrAbortHandler) }

func reference(body []byte) string {
	_, rest, _ := strings.Cut(string(body), `"ref":"`)
	ref, _, _ := strings.Cut(rest, `"`)
	return ref
}
