package cases

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

// paidFlows: prepare, wait for the event "paid" as long as Rest, ship.
func paidFlows(p place) []semel.WorkflowDefinition {
	prepare, ship := p.action("prepare", none()), p.action("ship", none())
	paid := semel.Workflow[order]{
		Name: "paid", Actions: []semel.Definition{prepare.Definition(), ship.Definition()},
		Func: func(ctx semel.Context, o order) error {
			if _, err := semel.Do(ctx, prepare, o); err != nil {
				return err
			}
			_, err := semel.Wait[order](ctx, "paid", o.ID, o.Rest)
			if errors.Is(err, semel.ErrTimedOut) {
				return ctx.Return("timed out")
			}
			if err != nil {
				return err
			}
			_, err = semel.Do(ctx, ship, o)
			return err
		},
	}
	return []semel.WorkflowDefinition{paid.Definition()}
}

func (h *hand) send(id, match string) (existing bool) {
	h.Helper()
	existing, err := h.runs.Send(h.Context(), semel.InboxEvent{ID: id, Name: "paid", Match: match, By: "bank"})
	if err != nil {
		h.Fatal(err)
	}
	return existing
}

// slowPrepare answers /prepare after 300 ms.
func slowPrepare(a arrival, act func(string), w http.ResponseWriter) {
	if a.path == "/prepare" {
		time.Sleep(300 * time.Millisecond)
	}
	act(a.path + " " + string(a.body))
	answer(w, http.StatusCreated, `{"id":"ok"}`)
}

// C30, steps 1 and 3: an event counts if it came before the wait, and before
// the run: by documented rule for as long as the store keeps it. Sent twice
// under one ID it is one event; a second event, and one about something else,
// stay in the inbox, visible as taken by nobody, until another wait takes them.
func TestC30EventBeforeTheWait(t *testing.T) {
	eachRunStore(t, func(r *rig, _ string) {
		r.dest.script = slowPrepare
		h := r.hand(engine.Options{}, paidFlows)
		h.work()
		h.send("e0", "o-0")
		early := h.started("paid", "o-0", order{ID: "o-0", Rest: time.Hour})
		id := h.started("paid", "o-1", order{ID: "o-1", Rest: time.Hour})
		if h.send("e1", "o-1") || !h.send("e1", "o-1") {
			r.Error("the sender was told wrongly whether the event exists")
		}
		h.send("e2", "o-1")
		h.send("e3", "o-2")
		h.await(early, semel.RunCompleted)
		h.await(id, semel.RunCompleted)
		for event, taken := range map[string]int{"e0": 1, "e1": 1, "e2": 0, "e3": 0} {
			if e := h.inbox(event); len(e.TakenBy) != taken {
				r.Errorf("event %s was taken by %v, want %d", event, e.TakenBy, taken)
			}
		}
		r.wantAt("/ship", 2, 2)
		later := h.started("paid", "o-1 again", order{ID: "o-1", Amount: 1, Rest: time.Hour})
		r.until("it to be held: its prepare was made for another request", func() bool { return h.load(later).State == semel.RunHeld })
		other := h.started("paid", "o-2", order{ID: "o-2", Rest: time.Hour})
		h.await(other, semel.RunCompleted)
		if e := h.inbox("e3"); len(e.TakenBy) != 1 || e.TakenBy[0] != other {
			r.Errorf("event e3 was taken by %v, want %v", e.TakenBy, other)
		}
		r.wantAt("/ship", 3, 3)
		h.wantQuiet()
	})
}

// C30, step 2: events come at the millisecond of the time limit. Each run
// resumes or times out, never both; its record says which, and so does the
// inbox, which is what the sender can read.
func TestC30EventAtTheTimeLimit(t *testing.T) {
	eachRunStore(t, func(r *rig, _ string) {
		const runs = 50
		h := r.hand(engine.Options{}, paidFlows)
		h.work()
		ids := make([]semel.ID, runs)
		var wg sync.WaitGroup
		for i := range ids {
			key := fmt.Sprint("o-", i)
			ids[i] = h.started("paid", key, order{ID: key, Rest: 3 * time.Second})
		}
		for i := range ids {
			key := fmt.Sprint("o-", i)
			var limit time.Time
			r.until("the wait", func() bool {
				waits, err := h.runs.Waits(r.Context(), ids[i])
				if err != nil {
					r.Fatal(err)
				}
				if len(waits) > 0 {
					limit = waits[0].Until
				}
				return len(waits) > 0
			})
			now, err := h.store.Now(r.Context())
			if err != nil {
				r.Fatal(err)
			}
			//nolint:gosec // how close does not matter
			pause := limit.Sub(now) + time.Duration(rand.IntN(4000)-3000)*time.Microsecond
			wg.Go(func() {
				time.Sleep(pause)
				if _, err := h.runs.Send(r.Context(), semel.InboxEvent{ID: "e" + key, Name: "paid", Match: key}); err != nil {
					r.Error(err)
				}
			})
		}
		wg.Wait()
		resumed := 0
		for i, id := range ids {
			run := h.await(id, semel.RunCompleted)
			rec, _ := h.step(id, "paid")
			shipped := r.dest.count(fmt.Sprintf(`/ship {"id":"o-%d"}`, i))
			taken := h.inbox(fmt.Sprint("eo-", i)).TakenBy
			switch {
			case rec.Outcome == semel.StepCompleted && shipped == 1 && len(taken) == 1 && len(run.Result) == 0:
				resumed++
			case rec.Outcome == semel.StepTimedOut && shipped == 0 && len(taken) == 0 && string(run.Result) == `"timed out"`:
			default:
				r.Errorf("run %s: the wait is %s, it shipped %d times, %d runs took the event, result %s", run.Key, rec.Outcome, shipped, len(taken), run.Result)
			}
		}
		r.Logf("%d of %d resumed", resumed, runs)
		h.wantQuiet()
	})
}

// C30, step 4: the worker is stopped, the event is accepted, and the worker is
// killed with SIGKILL before the run resumes.
func TestC30WorkerDiesBeforeItResumes(t *testing.T) {
	eachRunStore(t, func(r *rig, database string) {
		h := r.hand(engine.Options{}, paidFlows)
		id := h.started("paid", "o-1", order{ID: "o-1", Rest: time.Hour})
		p := r.process(job{Database: database, Name: "a", Flows: "paid"})
		h.await(id, semel.RunWaiting)
		if err := p.Process.Signal(syscall.SIGSTOP); err != nil {
			r.Fatal(err)
		}
		h.send("e1", "o-1")
		p.kill()
		r.wantAt("/ship", 0, 0)
		r.process(job{Database: database, Name: "b", Flows: "paid"})
		h.await(id, semel.RunCompleted)
		r.wantAt("/prepare", 1, 1)
		r.wantAt("/ship", 1, 1)
		h.wantQuiet()
	})
}

// C30, step 5: the event comes after the wait timed out. The sender is told that
// it was accepted; the inbox shows it as taken by nobody.
func TestC30LateEvent(t *testing.T) {
	eachRunStore(t, func(r *rig, _ string) {
		h := r.hand(engine.Options{}, paidFlows)
		id := h.started("paid", "o-1", order{ID: "o-1", Rest: 5 * time.Second})
		r.wantRun(h.pass(id), semel.RunWaiting, "paid o-1")
		h.store.Shift(6 * time.Second)
		r.wantRun(h.pass(id), semel.RunCompleted, "")
		h.send("e1", "o-1")
		run := h.pass(id)
		if string(run.Result) != `"timed out"` {
			r.Errorf("the result is %s", run.Result)
		}
		if e := h.inbox("e1"); len(e.TakenBy) != 0 || len(e.Started) != 0 {
			r.Errorf("the late event was taken by %v and started %v", e.TakenBy, e.Started)
		}
		if rec, _ := h.step(id, "paid"); rec.Outcome != semel.StepTimedOut {
			r.Errorf("the wait is %s, want timed out", rec.Outcome)
		}
		r.wantAt("/ship", 0, 0)
		h.wantQuiet()
	})
}
