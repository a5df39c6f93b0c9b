package engine_test

import (
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

// TestAnIncidentHoldsTheRun: an operation that happened twice is no answer, not
// to another run either.
func TestAnIncidentHoldsTheRun(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		var late func(semel.Event)
		w := &world{answer: func(n int, s *semel.Send) (semel.Event, bool) {
			late = s.Late
			return confirmed(n), true
		}}
		charge := act("charge", w, semel.Contract{Protection: semel.Unprotected})
		bill := semel.Workflow[invoice]{Name: "bill", Func: func(ctx semel.Context, i invoice) error {
			_, err := semel.Do(ctx, charge, i)
			return err
		}}
		store := open()
		r := newRig(t, store, bill.Definition())
		r.e = newEngine(t, store, engine.Options{Late: true})
		var err error
		if r.w, err = engine.NewWorker(t.Context(), r.e, engine.WorkerOptions{Workflows: []semel.WorkflowDefinition{bill.Definition()}}); err != nil {
			t.Fatal(err)
		}
		r.want(r.pass(r.start(bill.New("b-1", invoice{ID: "i-1"})).ID), semel.RunCompleted, "")
		late(confirmed(2))
		run := r.pass(r.start(bill.New("b-2", invoice{ID: "i-1"})).ID)
		r.want(run, semel.RunHeld, "a person must close the incident")
		wantEffects(t, w, 1, 1)
	})
}
