package engine_test

import (
	"fmt"
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

// TestChangedWaitIsHeld: code that asks for another run, or another event, than
// its step waits for starts no second run, and passes over no event.
func TestChangedWaitIsHeld(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		var w world
		ship := act("ship", &w, semel.Contract{Protection: semel.Unprotected})
		version := 1
		key := func(i invoice) string { return fmt.Sprintf("%s-%d", i.ID, version) }
		child := semel.Workflow[invoice]{Name: "ship", Func: func(ctx semel.Context, i invoice) error {
			if _, err := semel.Do(ctx, ship, i); err != nil {
				return err
			}
			return semel.Sleep(ctx, "rest", time.Hour)
		}}
		parent := semel.Workflow[invoice]{Name: "order", Func: func(ctx semel.Context, i invoice) error {
			_, err := semel.Child(ctx, child, semel.Key(key(i)), i)
			return err
		}}
		listens := semel.Workflow[invoice]{Name: "listens", Func: func(ctx semel.Context, i invoice) error {
			_, err := semel.Wait[string](ctx.Named("payment"), "paid", key(i), 0)
			return err
		}}
		store := open()
		r := newRig(t, store, child.Definition(), parent.Definition(), listens.Definition())
		ordered, listening := r.start(parent.New("o", invoice{ID: "o"})), r.start(listens.New("o", invoice{ID: "o"}))
		r.want(r.pass(ordered.ID), semel.RunWaiting, "ship")
		r.want(r.load(listening.ID), semel.RunWaiting, "paid")
		version = 2
		store.Shift(time.Hour)
		if _, err := r.runs.Send(t.Context(), semel.InboxEvent{ID: "e", Name: "paid", Match: "o-1"}); err != nil {
			t.Fatal(err)
		}
		r.want(r.pass(ordered.ID), semel.RunHeld, "changed code: step ship waits for run")
		r.want(r.load(listening.ID), semel.RunHeld, `changed code: step payment waits for event "paid o-1"`)
		version = 1
		r.change(ordered.ID, semel.RetryRun)
		r.change(listening.ID, semel.RetryRun)
		r.want(r.pass(ordered.ID), semel.RunCompleted, "")
		r.want(r.load(listening.ID), semel.RunCompleted, "")
		wantEffects(t, &w, 1, 1)
	})
}
