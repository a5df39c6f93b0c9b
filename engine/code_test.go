package engine_test

import (
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

// TestCodeThatLostAStepIsHeld: the record has a step that the code does not
// come to any more.
func TestCodeThatLostAStepIsHeld(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		var w world
		charge := act("charge", &w, semel.Contract{Protection: semel.Unprotected})
		charges := true
		bill := semel.Workflow[invoice]{Name: "bill", Func: func(ctx semel.Context, i invoice) error {
			if charges {
				if _, err := semel.Do(ctx, charge, i); err != nil {
					return err
				}
			}
			return semel.Sleep(ctx, "rest", time.Hour)
		}}
		store := open()
		r := newRig(t, store, bill.Definition())
		run := r.pass(r.start(bill.New("b-1", invoice{ID: "i-1"})).ID)
		r.want(run, semel.RunWaiting, "rest")
		charges = false
		store.Shift(time.Hour)
		r.want(r.pass(run.ID), semel.RunHeld, "changed code: the record has step charge, which the code no longer reaches")
	})
}

// TestChangedRequestHoldsAtItsApproval: before a decision and after it, also
// where the code goes on with something else.
func TestChangedRequestHoldsAtItsApproval(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		for _, decided := range []bool{false, true} {
			var w world
			pay, mail := act("pay", &w, semel.Contract{Protection: semel.Unprotected}), act("mail", &w, semel.Contract{Protection: semel.Unprotected})
			amount := int64(100)
			payout := semel.Workflow[invoice]{Name: "payout", Func: func(ctx semel.Context, i invoice) error {
				i.Amount = amount
				if err := semel.Approve(ctx, pay, i, semel.Ask{Of: "finance"}); err != nil {
					return err
				}
				if err := semel.Sleep(ctx, "rest", time.Hour); err != nil {
					return err
				}
				_, err := semel.Do(ctx, mail, i)
				return err
			}}
			store := open()
			r := newRig(t, store, payout.Definition())
			key := map[bool]string{false: "asked", true: "decided"}[decided]
			run := r.pass(r.start(payout.New(semel.Key(key), invoice{ID: key})).ID)
			r.want(run, semel.RunWaiting, "approval")
			for a, err := range r.runs.Approvals(t.Context(), run.ID, semel.ApprovalPending) {
				if err != nil {
					t.Fatal(err)
				}
				if _, err := r.runs.Decide(t.Context(), a.ID, semel.Decision{State: semel.ApprovalGiven, By: "ann", Reason: "read", Digest: a.Digest}); err != nil {
					t.Fatal(err)
				}
			}
			if decided {
				r.want(r.pass(run.ID), semel.RunWaiting, "rest")
				store.Shift(time.Hour)
			}
			amount = 1000
			r.want(r.pass(run.ID), semel.RunHeld, "stale")
			wantEffects(t, &w, 0, 0)
		}
	})
}
