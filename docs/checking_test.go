package docs_test

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/check"
)

// Refund is what the workflow of the guide pays back.
type Refund struct {
	Number, Customer string
	Cents            int64
}

func Example_check() {
	pay := semel.Action[Refund, string]{
		Name: "refund",
		Key:  func(r Refund) string { return fmt.Sprintf("%s-%d", r.Customer, r.Cents) },
		Send: semel.Perform(semel.Contract{Effect: semel.External, Protection: semel.Keyed, Window: 24 * time.Hour, Timeout: 5 * time.Second},
			func(context.Context, *semel.Send, Refund) (string, error) { return "", nil }),
	}
	refund := semel.Workflow[Refund]{Name: "refund", Owner: "shop-desk", Func: func(ctx semel.Context, r Refund) error {
		_, err := semel.Do(ctx, pay, r)
		return err
	}}
	r, err := check.Workflow(refund.Definition(), check.Options{
		Input: Refund{Number: "R-17", Customer: "ann", Cents: 1250},
	})
	if err != nil {
		panic(err)
	}
	for _, f := range r.Findings {
		fmt.Println(f)
	}
	// Output:
	// refund@1/refund: warning: the key of step refund is made of cents, customer: two that are both meant can agree in that, and the second would never be done: use what names the work itself: the number of an invoice or an order, or a key minted with it [weak_key]
}
