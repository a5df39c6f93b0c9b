package docs_test

import (
	"context"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/semeltest"
)

// Paid notes a charge in the books.
type Paid struct{ Invoice, Charge string }

var (
	charge = semel.Action[Invoice, Charge]{
		Name: "charge", Owner: "billing-ops",
		Key:  func(i Invoice) string { return "invoice-" + i.ID + "-charge" },
		Send: semel.Perform(semel.Contract{Protection: semel.Keyed, Window: 24 * time.Hour, Timeout: 10 * time.Second}, chargeCard),
	}
	markPaid = semel.Action[Paid, struct{}]{
		Name: "mark_paid", Owner: "billing-ops",
		Key: func(p Paid) string { return "invoice-" + p.Invoice + "-paid" },
		Send: semel.Perform(semel.Contract{Protection: semel.Absolute}, func(context.Context, *semel.Send, Paid) (struct{}, error) {
			return struct{}{}, nil
		}),
	}
)

// Bill is the workflow of the README.
func Bill(ctx semel.Context, i Invoice) error {
	ch, err := semel.Do(ctx, charge, i)
	if err != nil { // known: nothing was charged
		return err
	}
	_, err = semel.Do(ctx, markPaid, Paid{i.ID, ch.ID})
	return err
}

func TestBillChargesOnceWhenItsAnswerIsLost(t *testing.T) {
	billing := semel.Workflow[Invoice]{Name: "bill", Func: Bill, Actions: []semel.Definition{charge.Definition(), markPaid.Definition()}}
	w := semeltest.New(t, billing.Definition())
	w.On("charge", semeltest.LostAfter(Charge{ID: "ch_1"}), semeltest.Completed(nil))
	run := w.Run(billing.New("4417", Invoice{ID: "4417"}))
	if run.State != semel.RunCompleted || len(w.Effects("charge")) != 1 || len(w.Requests("charge")) != 2 {
		t.Errorf("%s (%s): %d requests, %d effects", run.State, run.Reason, len(w.Requests("charge")), len(w.Effects("charge")))
	}
}
