package cases

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

// billFlows: one charge, under a key that the destination honours.
func billFlows(p place) []semel.WorkflowDefinition {
	charge := p.action("charge", keyed())
	bill := semel.Workflow[order]{
		Name: "bill", Key: func(o order) string { return o.ID }, Actions: []semel.Definition{charge.Definition()},
		Func: func(ctx semel.Context, o order) error {
			_, err := semel.Do(ctx, charge, o)
			return err
		},
	}
	return []semel.WorkflowDefinition{bill.Definition()}
}

// C08: the key at the destination is a function of the operation's scope and
// key, so it is the same from every process, on every node, at every time. Four
// workers in a row apply the effect or meet it again and are killed before they
// hear of it; the one after them learns the answer.
//
// By documented rule a repeated start under one run key joins the run that has
// it (law 9: with the same input; another is a conflict).
func TestC08KeyDerivesFromTheOperation(t *testing.T) {
	eachRunStore(t, func(r *rig, database string) {
		const deaths = 3
		arrived, held := make(chan struct{}, deaths+1), make(chan struct{})
		defer close(held)
		honour := r.dest.honouring()
		r.dest.script = func(a arrival, act func(string), w http.ResponseWriter) {
			honour(a, act)
			arrived <- struct{}{}
			if a.nth <= deaths {
				<-held
				drop()
			}
			answer(w, http.StatusCreated, `{"id":"ch_1"}`)
		}
		h := r.hand(engine.Options{}, billFlows)
		id := h.started("bill", "o-7", order{ID: "o-7", Amount: 100})
		for n := range deaths {
			p := r.process(job{Database: database, Name: fmt.Sprint("node-", n%2), Flows: "bill", Shift: time.Duration(n) * time.Minute})
			<-arrived
			p.kill()
		}
		h.store.Shift(deaths * time.Minute)
		r.process(job{Database: database, Name: "another node", Flows: "bill", Shift: deaths * time.Minute})
		h.await(id, semel.RunCompleted)

		op := h.operation(id, "charge")
		want := semel.DestinationKey(semel.ActionScope("default", "dest", "charge"), "charge o-7", 0)
		for i, a := range r.dest.seen() {
			if got := a.header.Get(keyHeader); got != want {
				r.Errorf("request %d came under key %q, want %q", i+1, got, want)
			}
			if string(a.body) != string(op.Request.Body) {
				r.Errorf("request %d had the body %s, want %s", i+1, a.body, op.Request.Body)
			}
		}
		if len(op.Attempts) != deaths+1 {
			r.Errorf("%d attempts on record, want %d", len(op.Attempts), deaths+1)
		}
		again, existing := h.start("bill", 1, "o-7", order{ID: "o-7", Amount: 100})
		if !existing || again.ID != id {
			r.Errorf("the second start is run %s, want to join %s", again.ID, id)
		}
		r.wantAt("/charge", 1, deaths+1)
		h.wantQuiet()
	})
}
