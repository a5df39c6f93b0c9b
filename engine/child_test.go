package engine_test

import (
	"testing"

	"github.com/semel-dev/semel"
)

// TestChildOfAnotherInputIsHeld: a child's key that belongs to a run of another
// input gives nobody that run's result.
func TestChildOfAnotherInputIsHeld(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		child := semel.Workflow[invoice]{Name: "ship", Key: func(i invoice) string { return i.ID }, Func: func(ctx semel.Context, _ invoice) error {
			return ctx.Return("shipped")
		}}
		parent := semel.Workflow[invoice]{Name: "order", Func: func(ctx semel.Context, i invoice) error {
			_, err := semel.Child(ctx, child, "", i)
			return err
		}}
		r := newRig(t, open(), child.Definition(), parent.Definition())
		first := r.start(child.New("", invoice{ID: "o-1", Amount: 5}))
		r.want(r.pass(first.ID), semel.RunCompleted, "")
		run := r.start(parent.New("p", invoice{ID: "o-1", Amount: 6}))
		r.want(r.pass(run.ID), semel.RunHeld, "input.amount")
	})
}
