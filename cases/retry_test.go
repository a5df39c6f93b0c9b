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

// settledBefore reports whether a decision came after another.
func settledBefore(err error) bool {
	_, ok := errors.AsType[*engine.SettledError](err)
	return ok
}

// C40, steps 1 and 2: the outcome of h-1 is unknown. Reviewer a says twice
// within an instant that it did not happen, and has it run again each time; b
// says that it did, at the same time, and again on a page that is older than
// a's decision. One decision is stored, with who and why, and the others are
// told; at most one new attempt begins.
func TestC40TwoReviewersDecide(t *testing.T) {
	eachRunStore(t, func(r *rig, _ string) {
		r.dest.script = func(a arrival, act func(string), w http.ResponseWriter) {
			if a.nth == 1 {
				drop()
			}
			act(a.path)
			answer(w, http.StatusCreated, `{"id":"ch_2"}`)
		}
		n := r.node(engine.Options{})
		const items = 20
		wrong := 0
		for i := range items {
			path := fmt.Sprint("/h", i)
			q := request{key: path, path: path, body: `{}`}
			page := n.submit(q).Operation
			var wg sync.WaitGroup
			var stored, told atomic.Int32
			decide := func(s engine.Settlement) {
				_, err := n.engine.Settle(r.Context(), page.ID, s)
				switch {
				case err == nil:
					stored.Add(1)
				case settledBefore(err):
					told.Add(1)
				default:
					// The page is old, or an attempt is under way by now.
					if _, input := errors.AsType[*semel.InputError](err); !input {
						r.Error(err)
					}
					told.Add(1)
				}
			}
			for range 2 {
				wg.Go(func() {
					decide(engine.Settlement{By: "a", Reason: "not in the export", Force: true})
					if _, err := n.engine.Retry(r.Context(), page.ID, "a"); err != nil {
						r.Error(err)
					}
				})
			}
			wg.Go(func() { decide(engine.Settlement{Happened: true, By: "b", Reason: "seen", Reference: "ch_1"}) })
			wg.Wait()
			decide(engine.Settlement{Happened: true, By: "b", Reason: "seen", Reference: "ch_1", IfVersion: page.Version})
			if stored.Load() != 1 || told.Load() != 3 {
				r.Errorf("%d decisions were stored, %d reviewers told; want 1 and 3", stored.Load(), told.Load())
			}
			op := n.submit(q).Operation
			_, requests := r.dest.at(path)
			decisions := n.decisions(op.ID)
			switch {
			case len(decisions) != 1 || decisions[0].Reason == "":
				r.Errorf("%d decisions on record", len(decisions))
			case decisions[0].By == "b" && requests == 1 && op.Result.Reference == "ch_1":
			case decisions[0].By == "a" && requests == 2 && op.Result.Reference == "ch_2":
				wrong++
			default:
				r.Errorf("%s decided, %d requests, result %q", decisions[0].By, requests, op.Result.Reference)
			}
		}
		r.Logf("a decided %d of %d", wrong, items)
		n.wantHonest()
	})
}

// decisions are those of people about an operation.
func (n *node) decisions(id semel.ID) []semel.Event {
	n.Helper()
	events, err := n.store.Events(n.Context(), id)
	if err != nil {
		n.Fatal(err)
	}
	var all []semel.Event
	for _, ev := range events {
		if ev.Kind == semel.EvHappened || ev.Kind == semel.EvDidNotHappen {
			all = append(all, ev)
		}
	}
	return all
}

// C40, step 3: a decided wrongly that h-1 did not happen. While the new attempt
// is in flight, the caller submits h-1 again, which starts nothing, and the late
// answer of attempt 1 comes. Both effects are visible, as an incident.
func TestC40LateAnswerAfterADecision(t *testing.T) {
	eachRunStore(t, func(r *rig, _ string) {
		arrived, first, second := make(chan struct{}, 2), make(chan struct{}), make(chan struct{})
		r.dest.script = func(a arrival, act func(string), w http.ResponseWriter) {
			act(a.path)
			arrived <- struct{}{}
			<-[]chan struct{}{first, second}[a.nth-1]
			answer(w, http.StatusCreated, fmt.Sprintf(`{"id":"ch_%d"}`, a.nth))
		}
		n := r.node(engine.Options{Late: true})
		slow, quick := semel.Contract{Timeout: time.Minute}, semel.Contract{Timeout: time.Second}
		out := n.submit(request{key: "h-1", path: "/h1", body: `{}`, contract: quick})
		n.want(out, semel.StatusUnknown)
		<-arrived
		if _, err := n.engine.Settle(r.Context(), out.Operation.ID, engine.Settlement{By: "a", Reason: "not in the export", Force: true}); err != nil {
			r.Fatal(err)
		}
		again := request{key: "h-1", path: "/h1", body: `{}`, contract: slow}
		flying := make(chan semel.Outcome, 1)
		go func() { flying <- n.submit(again) }()
		<-arrived
		for range 5 {
			n.want(n.submit(again), semel.StatusInProgress)
		}
		close(first)
		var op semel.Operation
		r.until("the late answer to be on record", func() bool {
			var err error
			if op, err = n.store.LoadID(r.Context(), out.Operation.ID); err != nil {
				r.Fatal(err)
			}
			return op.State == semel.Completed
		})
		close(second)
		<-flying
		r.until("the second answer to be on record", func() bool {
			var err error
			if op, err = n.store.LoadID(r.Context(), out.Operation.ID); err != nil {
				r.Fatal(err)
			}
			return op.Incident != ""
		})
		if !strings.Contains(op.Incident, "duplicate effect") || !strings.Contains(op.Incident+op.Result.Reference, "ch_1") || !strings.Contains(op.Incident+op.Result.Reference, "ch_2") {
			r.Errorf("incident %q beside %q: want the duplicate, with both ids", op.Incident, op.Result.Reference)
		}
		if len(op.Attempts) != 2 {
			r.Errorf("%d attempts, want 2", len(op.Attempts))
		}
		r.wantAt("/h1", 2, 2)
		n.wantHonest()
	})
}

// C40, step 4: a hundred runs failed. A reviewer retries thirty of them, which
// then complete; two reviewers, who still have the list of a hundred open, retry
// all of it at once. Exactly the seventy that still stand are taken, each once;
// the reports say 70 and 30, and nobody is charged twice.
func TestC40BulkRetry(t *testing.T) {
	eachRunStore(t, func(r *rig, _ string) {
		const runs, resolved = 100, 30
		var open atomic.Bool
		r.dest.script = func(a arrival, act func(string), w http.ResponseWriter) {
			if !open.Load() {
				answer(w, http.StatusUnprocessableEntity, `{"error":"closed for the night"}`)
				return
			}
			act(a.path + " " + string(a.body))
			answer(w, http.StatusCreated, `{"id":"ok"}`)
		}
		h := r.hand(engine.Options{}, billFlows)
		ids := make([]semel.ID, runs)
		for i := range ids {
			ids[i] = h.started("bill", fmt.Sprint("o-", i), order{ID: fmt.Sprint("o-", i)})
		}
		h.pass(ids[0])
		for _, id := range ids {
			r.wantRun(h.load(id), semel.RunFailed, "nothing happened")
		}
		open.Store(true)
		for _, id := range ids[:resolved] {
			if err := h.change(id, semel.RetryRun); err != nil {
				r.Fatal(err)
			}
		}
		h.pass(ids[0])
		r.wantAt("/charge", resolved, runs+resolved)

		var wg sync.WaitGroup
		var taken, refusals atomic.Int32
		took := make([]atomic.Int32, runs)
		for _, by := range []string{"a", "b"} {
			wg.Go(func() {
				for i, id := range ids {
					_, err := h.runs.ChangeRun(r.Context(), id, semel.RunCommand{Verb: semel.RetryRun, By: by, Reason: "the bank is open"})
					switch {
					case err == nil:
						taken.Add(1)
						took[i].Add(1)
					case tooLate(err):
						refusals.Add(1)
					default:
						r.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if taken.Load() != runs-resolved || refusals.Load() != runs+resolved {
			r.Errorf("%d taken and %d refused by both reviewers, want %d and %d", taken.Load(), refusals.Load(), runs-resolved, runs+resolved)
		}
		for i := range took {
			want := int32(1)
			if i < resolved {
				want = 0
			}
			if n := took[i].Load(); n != want {
				r.Errorf("run %d was taken %d times, want %d", i, n, want)
			}
		}
		h.pass(ids[0])
		for i, id := range ids {
			r.wantRun(h.load(id), semel.RunCompleted, "")
			if n := r.dest.count(fmt.Sprintf(`/charge {"id":"o-%d"}`, i)); n != 1 {
				r.Errorf("run %d charged %d times", i, n)
			}
		}
		r.wantAt("/charge", runs, 2*runs)
		h.wantQuiet()
	})
}

// C40, step 5: h-2 is discarded, which here is a person's word that it did not
// happen, and the cancel of its run; after a restart it does not come back. The
// worker that owned h-3 is killed with SIGKILL and starts again under its name;
// h-3 becomes unknown all the same, for a lease belongs to a claim and not to a
// name.
func TestC40DiscardAndRestart(t *testing.T) {
	eachRunStore(t, func(r *rig, database string) {
		arrived, held := make(chan struct{}, 2), make(chan struct{})
		defer close(held)
		r.dest.script = func(a arrival, act func(string), w http.ResponseWriter) {
			if strings.Contains(string(a.body), "h-2") {
				drop()
			}
			act(a.path + " " + string(a.body))
			arrived <- struct{}{}
			<-held
		}
		h := r.hand(engine.Options{}, napFlows)
		discarded := h.started("nap", "h-2", order{ID: "h-2"})
		run := h.pass(discarded)
		r.wantRun(run, semel.RunHeld, "outcome unknown")
		if err := h.change(discarded, semel.CancelRun); err != nil {
			r.Fatal(err)
		}
		_, err := h.engine.Settle(r.Context(), h.operation(discarded, "charge").ID, engine.Settlement{By: "a", Reason: "not in the export", Force: true})
		if err != nil {
			r.Fatal(err)
		}
		r.wantRun(h.pass(discarded), semel.RunCancelled, "")

		owned := h.started("nap", "h-3", order{ID: "h-3"})
		p := r.process(job{Database: database, Name: "node-a", Flows: "nap"})
		<-arrived
		p.kill()
		h.store.Shift(time.Minute)
		r.process(job{Database: database, Name: "node-a", Flows: "nap", Shift: time.Minute})
		h.await(owned, semel.RunHeld)
		now, err := h.store.Now(r.Context())
		if err != nil {
			r.Fatal(err)
		}
		if op := h.operation(owned, "charge"); op.StateAt(now) != semel.Unknown {
			r.Errorf("h-3 is %s, want unknown", op.StateAt(now))
		}
		r.wantRun(h.load(discarded), semel.RunCancelled, "")
		r.wantAt("/charge", 1, 2)
		h.wantQuiet()
	})
}
