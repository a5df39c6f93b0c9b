package engine_test

import (
	"errors"
	"testing"
	"time"

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

// A parent is told how its child ended, in the child's own words.
func TestParentSeesHowItsChildEnded(t *testing.T) {
	for _, cancel := range []bool{false, true} {
		eachStore(t, func(t *testing.T, open func() shifted) {
			child := semel.Workflow[invoice]{Name: "ship", Key: func(i invoice) string { return i.ID }, Func: func(ctx semel.Context, _ invoice) error {
				return errors.Join(semel.Sleep(ctx, "rest", time.Hour), errors.New("declined: no stock"))
			}}
			var got *semel.ChildError
			parent := semel.Workflow[invoice]{Name: "order", Func: func(ctx semel.Context, i invoice) error {
				_, err := semel.Child(ctx, child, "", i)
				errors.As(err, &got)
				return err
			}}
			store := open()
			r := newRig(t, store, child.Definition(), parent.Definition())
			run := r.pass(r.start(parent.New("a", invoice{ID: "o"})).ID)
			r.want(run, semel.RunWaiting, "ship")
			started, err := r.runs.FindRun(t.Context(), "ship", "o")
			if err != nil {
				t.Fatal(err)
			}
			want := semel.ChildError{Path: "ship", Run: started.ID, State: semel.RunFailed, Reason: "declined: no stock"}
			if cancel {
				r.change(started.ID, semel.CancelRun)
				want.State, want.Reason = semel.RunCancelled, "cancelled by ann"
			}
			store.Shift(time.Hour)
			r.want(r.pass(run.ID), semel.RunFailed, "is "+string(want.State))
			if got == nil || *got != want {
				t.Errorf("the parent got %+v, want %+v", got, want)
			}
		})
	}
}
