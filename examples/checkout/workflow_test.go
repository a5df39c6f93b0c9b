package checkout_test

import (
	"testing"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
	"github.com/semel-dev/semel/examples/checkout"
	"github.com/semel-dev/semel/semeltest"
)

var order = checkout.Order{Item: "notebook", Cents: 1200, Customer: "ann@example.com"}

// workflow reaches nothing: semeltest answers in the place of its destination.
func workflow(t *testing.T) semel.Workflow[checkout.Order] {
	t.Helper()
	payments, err := httpdest.New(httpdest.Options{Name: "payments", Base: "https://payments.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	return checkout.New(checkout.Destinations{Payments: payments})
}

func TestLostAnswerChargesOnce(t *testing.T) {
	wf := workflow(t)
	w := semeltest.New(t, wf.Definition())
	w.On("charge", semeltest.LostAfter(checkout.Charge{ID: "ch_1"}), semeltest.Completed(nil))
	run := w.Run(wf.New("form-1", order))
	if run.State != semel.RunCompleted || string(run.Result) != `{"id":"ch_1"}` {
		t.Errorf("%s (%s) with %s, want the charge", run.State, run.Reason, run.Result)
	}
	if n := len(w.Effects("charge")); n != 1 {
		t.Errorf("charged %d times, want once", n)
	}
}

func TestOneFormIsOneCharge(t *testing.T) {
	wf := workflow(t)
	w := semeltest.New(t, wf.Definition())
	first, second := w.Start(wf.New("form-1", order)), w.Start(wf.New("form-1", order))
	w.Advance(0)
	if first.ID != second.ID || len(w.Effects("charge")) != 1 {
		t.Errorf("runs %s and %s charged %d times, want one run and one charge", first.ID, second.ID, len(w.Effects("charge")))
	}
}

func TestRefusedCardIsNotCharged(t *testing.T) {
	wf := workflow(t)
	w := semeltest.New(t, wf.Definition())
	w.On("charge", semeltest.Refused("the card was declined"))
	if run := w.Run(wf.New("form-1", order)); run.State != semel.RunFailed || len(w.Effects("charge")) != 0 {
		t.Errorf("%s (%s), charged %d times; want a failed run and nothing", run.State, run.Reason, len(w.Effects("charge")))
	}
}
