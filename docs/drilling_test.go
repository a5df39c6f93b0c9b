package docs_test

import (
	"context"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/drill"
)

// refunds pays back under the number of the refund.
func refunds() semel.Workflow[Refund] {
	pay := semel.Action[Refund, string]{
		Name: "refund",
		Key:  func(r Refund) string { return r.Number },
		Send: semel.Perform(semel.Contract{Effect: semel.External, Protection: semel.Keyed, Window: 24 * time.Hour, Timeout: 5 * time.Second},
			func(context.Context, *semel.Send, Refund) (string, error) { return "", nil }),
	}
	return semel.Workflow[Refund]{Name: "refund", Func: func(ctx semel.Context, r Refund) error {
		_, err := semel.Do(ctx, pay, r)
		return err
	}}
}

func TestRefundsSurvive(t *testing.T) {
	drill.Test(t, refunds().Definition(), drill.Options{
		Input:   Refund{Number: "R-17", Customer: "ann", Cents: 1250},
		Answers: map[string]any{"refund": "re_1"},
		Pairs:   20,
	})
}
