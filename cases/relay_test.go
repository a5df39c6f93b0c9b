package cases

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
	"github.com/semel-dev/semel/store/postgres"
)

// tellFlows: each event "posted" starts a run that tells R, which honours keys,
// and one that tells N, which does not. Semel has no relay of its own: Deliver
// and runs are the relay.
func tellFlows(p place) []semel.WorkflowDefinition {
	var all []semel.WorkflowDefinition
	for name, contract := range map[string]semel.Contract{"r": keyed(), "n": none()} {
		tell := p.action(name, contract)
		all = append(all, semel.Workflow[order]{
			Name: "tell-" + name, Events: []string{"posted"}, Actions: []semel.Definition{tell.Definition()},
			Func: func(ctx semel.Context, o order) error {
				_, err := semel.Do(ctx, tell, o)
				return err
			},
		}.Definition())
	}
	return all
}

// C27, step 1: the relay is killed with SIGKILL between the 200 of a recipient
// and its mark. R gets the same bytes under the same key again, and has one
// effect; the attempts are counted on record. By documented rule N, which offers
// neither key nor lookup, is not told again by machine: its operation is
// unknown and waits for a person.
func TestC27RelayDiesBeforeItsMark(t *testing.T) {
	eachRunStore(t, func(r *rig, database string) {
		honour := r.dest.honouring()
		r.dest.script = func(a arrival, act func(string), w http.ResponseWriter) {
			honour(a, act)
			answer(w, http.StatusOK, `{"id":"ok"}`)
		}
		h := r.hand(engine.Options{}, tellFlows)
		if _, err := h.runs.Send(r.Context(), posted(1)); err != nil {
			r.Fatal(err)
		}
		p := r.process(job{Database: database, Name: "relay", Flows: "tell", Point: beforeRecord})
		p.says("stopped")
		p.says("stopped")
		p.kill()
		r.wantAt("/r", 1, 1)
		r.wantAt("/n", 1, 1)
		h.store.Shift(time.Minute)
		r.process(job{Database: database, Name: "another relay", Flows: "tell", Shift: time.Minute})
		told := h.startedBy("m-1", "tell-r")
		h.await(told, semel.RunCompleted)
		unsure := h.startedBy("m-1", "tell-n")
		r.wantRun(h.await(unsure, semel.RunHeld), semel.RunHeld, "outcome unknown")
		r.wantAt("/r", 1, 2)
		r.wantAt("/n", 1, 1)
		if op := h.operation(told, "r"); len(op.Attempts) != 2 {
			r.Errorf("%d attempts on record, want 2", len(op.Attempts))
		}
		r.wantSameRepeats()
		h.wantQuiet()
	})
}

// sendPosted sends message i in a transaction of its own.
func sendPosted(ctx context.Context, app *pgxpool.Pool, i int) error {
	return pgx.BeginFunc(ctx, app, func(tx pgx.Tx) error { return postgres.SendTx(ctx, tx, posted(i)) })
}

// startedBy is the run of a workflow that an event started.
func (h *hand) startedBy(event, workflow string) semel.ID {
	h.Helper()
	for _, id := range h.inbox(event).Started {
		if h.load(id).Workflow == workflow {
			return id
		}
	}
	h.Fatalf("event %s started no run of %s", event, workflow)
	return semel.ID{}
}

// wantSameRepeats checks that requests with one body have one key.
func (r *rig) wantSameRepeats() {
	r.Helper()
	keys := map[string]string{}
	for _, a := range r.dest.seen() {
		what := a.path + " " + string(a.body)
		if key, again := keys[what]; again && key != a.header.Get(keyHeader) {
			r.Errorf("%s came again under another key", what)
		}
		keys[what] = a.header.Get(keyHeader)
	}
}

// C27, step 2: the recipient acts and its 200 is lost.
func TestC27AnswerIsLost(t *testing.T) {
	eachRunStore(t, func(r *rig, _ string) {
		honour := r.dest.honouring()
		r.dest.script = func(a arrival, act func(string), w http.ResponseWriter) {
			honour(a, act)
			if a.nth == 1 {
				drop()
			}
			answer(w, http.StatusOK, `{"id":"ok"}`)
		}
		h := r.hand(engine.Options{}, tellFlows)
		if _, err := h.runs.Send(r.Context(), posted(2)); err != nil {
			r.Fatal(err)
		}
		h.work()
		h.await(h.startedBy("m-2", "tell-r"), semel.RunCompleted)
		h.await(h.startedBy("m-2", "tell-n"), semel.RunHeld)
		r.wantAt("/r", 1, 2)
		r.wantAt("/n", 1, 1)
		r.wantSameRepeats()
		h.wantQuiet()
	})
}

// C27, steps 3 and 4: three worker processes deliver at once what transactions
// of the application sent; every event starts one run of each workflow, and no
// recipient hears anything twice. Events that are sent again under their IDs
// after everything was delivered start nothing.
func TestC27ThreeRelays(t *testing.T) {
	t.Parallel()
	r, url := onPostgres(t)
	const messages = 300
	h := r.hand(engine.Options{}, tellFlows)
	app := pool(t, url, 4)
	for i := range messages {
		if err := sendPosted(t.Context(), app, i); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		r.process(job{Database: url, Name: fmt.Sprint("relay ", i), Flows: "tell"})
	}
	all := func() {
		r.until("all runs to be completed", func() bool {
			done := 0
			for run, err := range h.runs.ListRuns(t.Context(), semel.RunFilter{State: semel.RunCompleted}) {
				if err != nil || run.State != semel.RunCompleted {
					t.Fatal(run.State, err)
				}
				done++
			}
			return done == 2*messages
		})
	}
	all()
	r.wantAt("/r", messages, messages)
	r.wantAt("/n", messages, messages)
	for i := range messages {
		if i%2 == 0 {
			if err := sendPosted(t.Context(), app, i); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if existing, err := h.runs.Send(t.Context(), posted(i)); err != nil || !existing {
			t.Fatalf("sent again: existing %v, error %v", existing, err)
		}
	}
	time.Sleep(time.Second) // four looks of every relay
	all()
	r.wantAt("/r", messages, messages)
	r.wantAt("/n", messages, messages)
	h.wantQuiet()
}
