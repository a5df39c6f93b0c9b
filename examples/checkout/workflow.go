// Package checkout is a shop's order form whose key is minted when the form is
// rendered: whatever the customer clicks, and however often, one form is one
// order, and one order is one charge.
package checkout

import (
	"time"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
)

// Order is what a form asks for. It has no number of its own: the key of the
// run, minted with the form, names it.
type Order struct {
	Item     string `json:"item"`
	Cents    int64  `json:"amount"`
	Customer string `json:"customer"`
}

// Charge is the provider's answer.
type Charge struct {
	ID string `json:"id"`
}

// Destinations are what the workflow reaches.
type Destinations struct {
	Payments *httpdest.Destination
}

// New makes the workflow.
func New(d Destinations) semel.Workflow[Order] {
	charge := semel.Action[Order, Charge]{
		Name: "charge", // no Key: the run's key and the step name it
		Send: httpdest.Post[Order, Charge](d.Payments, "/v1/charges"),
	}
	charge.Send.Contract = semel.Contract{
		Effect: semel.External, Protection: semel.Keyed, Window: 24 * time.Hour, KeyHeader: "Idempotency-Key",
		Timeout: 30 * time.Second, MaxProcessing: 30 * time.Second,
	}
	return semel.Workflow[Order]{
		Name: "checkout", Owner: "shop@example.com",
		Actions: []semel.Definition{charge.Definition()},
		Func: func(ctx semel.Context, o Order) error {
			charged, err := semel.Do(ctx, charge, o)
			if err != nil {
				return err
			}
			return ctx.Return(charged)
		},
	}
}
