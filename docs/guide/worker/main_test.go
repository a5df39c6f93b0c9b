package main

import (
	"testing"
	"time"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
	"github.com/semel-dev/semel/semeltest"
)

// scripted are the actions; semeltest answers in the provider's place.
func scripted(t *testing.T) actions {
	t.Helper()
	provider, err := httpdest.New(httpdest.Options{Name: "provider", Base: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	return newActions(provider)
}

func TestALostAnswerChargesOnce(t *testing.T) {
	billing := bill(scripted(t))
	w := semeltest.New(t, billing.Definition())
	w.On("charge", semeltest.LostAfter(Charge{ID: "ch_1"}), semeltest.Completed(nil))
	run := w.Run(billing.New("4417", Invoice{ID: "4417", Amount: 4200}))
	if n := len(w.Effects("charge")); run.State != semel.RunCompleted || n != 1 {
		t.Errorf("%s (%s), charged %d times", run.State, run.Reason, n)
	}
	if n := len(w.Requests("charge")); n != 2 {
		t.Errorf("%d requests, want the second under the same key", n)
	}
}

func TestALateOrderIsNotCharged(t *testing.T) {
	orders := order(scripted(t))
	w := semeltest.New(t, orders.Definition())
	run := w.Start(orders.New("4418", Invoice{ID: "4418", Amount: 100}))
	w.Advance(15 * 24 * time.Hour)
	run = w.Await(run)
	if run.State != semel.RunCompleted || len(w.Effects("mail")) != 1 || len(w.Requests("charge")) != 0 {
		t.Errorf("%s (%s): %d mails, %d requests for a charge", run.State, run.Reason, len(w.Effects("mail")), len(w.Requests("charge")))
	}
}

func TestNothingIsChargedBeforeItIsApproved(t *testing.T) {
	orders := order(scripted(t))
	w := semeltest.New(t, orders.Definition())
	w.Send("order.delivered", "4418", nil) // it may come before the run
	run := w.Run(orders.New("4418", Invoice{ID: "4418", Amount: 100}))
	if run.State != semel.RunWaiting || len(w.Requests("charge")) != 0 {
		t.Fatalf("%s (%s)", run.State, run.Reason)
	}
	w.Approve(run)
	if run = w.Await(run); run.State != semel.RunCompleted || len(w.Effects("charge")) != 1 {
		t.Errorf("%s (%s)", run.State, run.Reason)
	}
}

func TestOneBadItemStopsNoOther(t *testing.T) {
	workflow := nightly(scripted(t))
	w := semeltest.New(t, workflow.Definition())
	w.OnKey("charge", "invoice-b-charge", semeltest.Refused("card declined"))
	run := w.Run(workflow.New("2026-11-29", night{Invoices: []Invoice{{ID: "a"}, {ID: "b"}, {ID: "c"}}}))
	if run.State != semel.RunFailed || len(w.Effects("charge")) != 2 {
		t.Errorf("%s (%s), charged %d times", run.State, run.Reason, len(w.Effects("charge")))
	}
}
