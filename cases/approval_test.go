package cases

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

// payout is a workflow whose artifact, an amount, can be edited while a person
// looks at it: approve, rest, pay.
type payout struct {
	amount   atomic.Int64
	contract semel.Contract
	valid    time.Duration
}

func newPayout(amount int64) *payout {
	p := &payout{contract: none()}
	p.amount.Store(amount)
	return p
}

func (y *payout) flows(p place) []semel.WorkflowDefinition {
	pay := p.action("pay", y.contract)
	wf := semel.Workflow[order]{
		Name: "payout", Actions: []semel.Definition{pay.Definition()},
		Func: func(ctx semel.Context, o order) error {
			o.Amount = int(y.amount.Load())
			if err := semel.Approve(ctx, pay, o, semel.Ask{Of: "finance", Valid: y.valid}); err != nil {
				return err
			}
			if err := semel.Sleep(ctx, "rest", o.Rest); err != nil {
				return err
			}
			o.Amount = int(y.amount.Load())
			_, err := semel.Do(ctx, pay, o)
			return err
		},
	}
	return []semel.WorkflowDefinition{wf.Definition()}
}

// page is what a reviewer has open: the newest approval that a run asked for.
func (h *hand) page(run semel.ID) semel.Approval {
	h.Helper()
	for a, err := range h.runs.Approvals(h.Context(), run, "") {
		if err != nil {
			h.Fatal(err)
		}
		return a
	}
	h.Fatal("the run asks for no approval")
	return semel.Approval{}
}

// decide is what a reviewer says about the page that is open.
func (h *hand) decide(page *semel.Approval, by string, state semel.ApprovalState) error {
	_, err := h.runs.Decide(h.Context(), page.ID, semel.Decision{State: state, By: by, Reason: "read it", Digest: page.Digest})
	return err
}

// refused reports whether a decision came to nothing because of where the
// approval stands.
func refused(err error) bool {
	_, ok := errors.AsType[*semel.ApprovalStateError](err)
	return ok
}

func (r *rig) wantNothingSent(amount int) {
	r.Helper()
	for _, a := range r.dest.seen() {
		if strings.Contains(string(a.body), fmt.Sprintf(`"amount":%d}`, amount)) {
			r.Errorf("%s was sent", a.body)
		}
	}
}

// C34, steps 1 and 2: the artifact changes while a reviewer has its page open,
// and after it was approved. By documented rule an approval covers one exact
// request, and the run is held, naming what differs. A decision that names
// another digest than the page's is refused.
func TestC34StaleRevision(t *testing.T) {
	eachRunStore(t, func(r *rig, _ string) {
		y := newPayout(100)
		h := r.hand(engine.Options{}, y.flows)
		open := h.started("payout", "open", order{ID: "open"})
		r.wantRun(h.pass(open), semel.RunWaiting, "approval")
		page := h.page(open)
		y.amount.Store(1000)
		stale := page
		stale.Digest = semel.ApprovalDigest(page.Scope, page.Key, semel.Fingerprint{})
		if err := h.decide(&stale, "a", semel.ApprovalGiven); !refused(err) {
			r.Errorf("a decision about another revision: %v, want a refusal", err)
		}
		if err := h.decide(&page, "a", semel.ApprovalGiven); err != nil {
			r.Fatal(err)
		}
		r.wantRun(h.pass(open), semel.RunHeld, "body.amount")

		y.amount.Store(100)
		approved := h.started("payout", "approved", order{ID: "approved", Rest: time.Hour})
		r.wantRun(h.pass(approved), semel.RunWaiting, "approval")
		page = h.page(approved)
		if err := h.decide(&page, "a", semel.ApprovalGiven); err != nil {
			r.Fatal(err)
		}
		r.wantRun(h.pass(approved), semel.RunWaiting, "sleeps")
		y.amount.Store(1000)
		h.store.Shift(time.Hour)
		r.wantRun(h.pass(approved), semel.RunHeld, "stale")
		r.wantNothingSent(1000)
		r.wantAt("/pay", 0, 0)
		h.wantQuiet()
	})
}

// C34, step 3: one reviewer approves and another rejects a hundred artifacts at
// the same moment. Each has one decision, the loser is told, and what was
// approved is sent once.
func TestC34TwoReviewers(t *testing.T) {
	eachRunStore(t, func(r *rig, _ string) {
		const runs = 100
		h := r.hand(engine.Options{}, newPayout(100).flows)
		ids := make([]semel.ID, runs)
		for i := range ids {
			ids[i] = h.started("payout", fmt.Sprint("p-", i), order{ID: fmt.Sprint("p-", i)})
		}
		h.pass(ids[0])
		approved := make([]bool, runs)
		reviewers, decisions := []string{"a", "b"}, []semel.ApprovalState{semel.ApprovalGiven, semel.ApprovalRejected}
		var wg sync.WaitGroup
		for i, id := range ids {
			page := h.page(id)
			answers := make([]error, 2)
			var both sync.WaitGroup
			begin := make(chan struct{})
			for j := range answers {
				who := (i + j) % 2
				both.Go(func() { <-begin; answers[who] = h.decide(&page, reviewers[who], decisions[who]) })
			}
			wg.Go(func() {
				close(begin)
				both.Wait()
				approved[i] = answers[0] == nil
				if won, lost := answers[0], answers[1]; !(won == nil && refused(lost)) && !(lost == nil && refused(won)) {
					r.Errorf("a was told %v, b was told %v; want one decision", won, lost)
				}
			})
		}
		wg.Wait()
		h.pass(ids[0])
		given := 0
		for i, id := range ids {
			run, a := h.load(id), h.page(id)
			effects := r.dest.count(fmt.Sprintf(`/pay {"id":"p-%d","amount":100}`, i))
			switch {
			case approved[i] && a.State == semel.ApprovalGiven && a.By == "a" && run.State == semel.RunCompleted && effects == 1:
				given++
			case !approved[i] && a.State == semel.ApprovalRejected && a.By == "b" && run.State == semel.RunFailed && effects == 0:
			default:
				r.Errorf("run %s is %s (%s), its approval is %s by %s, %d effects", run.Key, run.State, run.Reason, a.State, a.By, effects)
			}
		}
		r.Logf("%d of %d approved", given, runs)
		r.wantAt("/pay", given, given)
		h.wantQuiet()
	})
}

// C34, step 4: approving does not change what is approved. By documented rule an
// artifact that was edited and edited back is the same, for the approval covers
// the bytes that will be sent, and not how they came about.
func TestC34EditAndRevert(t *testing.T) {
	eachRunStore(t, func(r *rig, _ string) {
		y := newPayout(100)
		h := r.hand(engine.Options{}, y.flows)
		id := h.started("payout", "p-1", order{ID: "p-1", Rest: time.Hour})
		r.wantRun(h.pass(id), semel.RunWaiting, "approval")
		page := h.page(id)
		y.amount.Store(1000)
		if err := h.decide(&page, "a", semel.ApprovalGiven); err != nil {
			r.Fatal(err)
		}
		y.amount.Store(100)
		r.wantRun(h.pass(id), semel.RunWaiting, "sleeps")
		y.amount.Store(1000)
		y.amount.Store(100)
		h.store.Shift(time.Hour)
		r.wantRun(h.pass(id), semel.RunCompleted, "")
		if again := h.page(id); again.ID != page.ID || again.Digest != page.Digest {
			r.Error("it was asked again")
		}
		r.wantAt("/pay", 1, 1)
		r.wantNothingSent(1000)
		h.wantQuiet()
	})
}

// C34, step 5: an approval that is valid for an hour covers the request after 59
// minutes, and not after 61. A decision about a run that was cancelled is
// refused, and the run stays cancelled.
func TestC34Validity(t *testing.T) {
	eachRunStore(t, func(r *rig, _ string) {
		y := newPayout(100)
		y.valid = time.Hour
		h := r.hand(engine.Options{}, y.flows)
		begin := func(key string, rest time.Duration) (semel.ID, semel.Approval) {
			id := h.started("payout", key, order{ID: key, Rest: rest})
			r.wantRun(h.pass(id), semel.RunWaiting, "approval")
			return id, h.page(id)
		}
		in, inPage := begin("59", 59*time.Minute)
		out, outPage := begin("61", 61*time.Minute)
		gone, gonePage := begin("gone", 0)
		for _, page := range []*semel.Approval{&inPage, &outPage} {
			if err := h.decide(page, "a", semel.ApprovalGiven); err != nil {
				r.Fatal(err)
			}
		}
		if err := h.change(gone, semel.CancelRun); err != nil {
			r.Fatal(err)
		}
		if err := h.decide(&gonePage, "a", semel.ApprovalGiven); !refused(err) {
			r.Errorf("approved after the cancel: %v, want a refusal", err)
		}
		h.pass(in)
		h.store.Shift(59*time.Minute + time.Second)
		r.wantRun(h.pass(in), semel.RunCompleted, "")
		h.store.Shift(2 * time.Minute)
		r.wantRun(h.pass(out), semel.RunHeld, "no approval covers this request now")
		r.wantRun(h.load(gone), semel.RunCancelled, "")
		r.wantAt("/pay", 1, 1)
		h.wantQuiet()
	})
}

// C34 and law 12: the approval ends, by a person or by its time, while the
// outcome is unknown. By documented rule recovery does not send again then, not
// even under the key that the destination honours: a person must look.
func TestC34ApprovalEndsBeforeAResend(t *testing.T) {
	for name, valid := range map[string]time.Duration{"revoked": 0, "expired": time.Minute} {
		t.Run(name, func(t *testing.T) {
			eachRunStore(t, func(r *rig, _ string) {
				r.dest.script = func(a arrival, act func(string), _ http.ResponseWriter) {
					act(a.path + " " + string(a.body))
					drop()
				}
				y := newPayout(100)
				y.valid, y.contract = valid, keyed()
				y.contract.Backoff = 5 * time.Minute
				h := r.hand(engine.Options{}, y.flows)
				id := h.started("payout", "p-1", order{ID: "p-1"})
				r.wantRun(h.pass(id), semel.RunWaiting, "approval")
				page := h.page(id)
				if err := h.decide(&page, "a", semel.ApprovalGiven); err != nil {
					r.Fatal(err)
				}
				h.pass(id)
				r.wantAt("/pay", 1, 1)
				if valid == 0 {
					if err := h.decide(&page, "b", semel.ApprovalRevoked); err != nil {
						r.Fatal(err)
					}
				}
				h.store.Shift(10 * time.Minute)
				h.pass(id)
				h.store.Shift(10 * time.Minute)
				run := h.pass(id)
				op := h.operation(id, "pay")
				move := semel.Decide(op, op.Contract, op.UpdatedAt.Add(20*time.Minute))
				if op.State != semel.Unknown || len(op.Attempts) != 1 || move.Kind != semel.MovePerson || !strings.Contains(move.Reason, "approval") {
					r.Errorf("the operation is %s after %d attempts, next %s (%s); want unknown after 1, for a person", op.State, len(op.Attempts), move.Kind, move.Reason)
				}
				r.wantRun(run, semel.RunHeld, "approval has ended")
				r.wantAt("/pay", 1, 1)
				h.wantQuiet()
			})
		})
	}
}
