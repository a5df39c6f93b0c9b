package cases

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

// napFlows: charge, sleep, mail.
func napFlows(p place) []semel.WorkflowDefinition { return napVersion(p, 1, false) }

// napVersion is the workflow with a version, and with a step before the charge
// that a newer one has.
func napVersion(p place, version int, inserted bool) []semel.WorkflowDefinition {
	check, charge, mail := p.action("check", none()), p.action("charge", none()), p.action("mail", none())
	nap := semel.Workflow[order]{
		Name: "nap", Version: version, Actions: []semel.Definition{check.Definition(), charge.Definition(), mail.Definition()},
		Func: func(ctx semel.Context, o order) error {
			if inserted {
				if _, err := semel.Do(ctx, check, o); err != nil {
					return err
				}
			}
			if _, err := semel.Do(ctx, charge, o); err != nil {
				return err
			}
			if err := semel.Sleep(ctx, "rest", o.Rest); err != nil {
				return err
			}
			_, err := semel.Do(ctx, mail, o)
			return err
		},
	}
	return []semel.WorkflowDefinition{nap.Definition()}
}

// C31, step 1: whatever the duration of the sleep and whoever dies meanwhile,
// the run goes on after it and not from its beginning. 2^31 ms is where 32 bits
// end. Each worker is killed with SIGKILL, and another node goes on.
func TestC31SleepSurvivesItsWorkers(t *testing.T) {
	rests := []time.Duration{0, time.Second, 66 * time.Second, 2 * time.Hour, 1<<31*time.Millisecond + time.Hour, 60 * 24 * time.Hour}
	eachRunStore(t, func(r *rig, database string) {
		h := r.hand(engine.Options{}, napFlows)
		ids := make([]semel.ID, len(rests))
		for i, rest := range rests {
			ids[i] = h.started("nap", fmt.Sprint("o-", i), order{ID: fmt.Sprint("o-", i), Rest: rest})
		}
		p := r.process(job{Database: database, Name: "node 1", Flows: "nap"})
		h.await(ids[0], semel.RunCompleted)
		h.await(ids[1], semel.RunCompleted)
		for _, id := range ids[2:] {
			h.await(id, semel.RunWaiting)
		}
		r.wantAt("/charge", len(rests), len(rests))
		p.kill()
		const early = time.Minute
		for i, rest := range rests[2:] {
			p := r.process(job{Database: database, Name: fmt.Sprint("node ", i%2), Flows: "nap", Shift: rest - early})
			time.Sleep(300 * time.Millisecond) // it has looked for what is due
			r.wantAt("/mail", i+2, i+2)
			p.shift(early)
			h.await(ids[i+2], semel.RunCompleted)
			p.kill()
		}
		for i, id := range ids {
			charged, mailed := h.operation(id, "charge"), h.operation(id, "mail")
			if slept := mailed.CreatedAt.Sub(charged.UpdatedAt); slept < rests[i]-time.Second {
				r.Errorf("it slept %v, want %v", slept, rests[i])
			}
		}
		r.wantAt("/charge", len(rests), len(rests))
		r.wantAt("/mail", len(rests), len(rests))
		h.wantQuiet()
	})
}

// C31, step 2: a new version with a step before the charge comes during the
// sleep. By documented rule a run stays with the version it began with: a worker
// that has only the new one leaves it alone. Where the version was not raised,
// the changed code is noticed and the run is held. Nothing is charged again.
func TestC31NewVersionDuringTheSleep(t *testing.T) {
	eachRunStore(t, func(r *rig, _ string) {
		old := r.hand(engine.Options{}, napFlows)
		kept := old.started("nap", "kept", order{ID: "kept", Rest: time.Hour})
		held := old.started("nap", "held", order{ID: "held", Rest: 2 * time.Hour})
		r.wantRun(old.pass(kept), semel.RunWaiting, "sleeps")

		raised := r.hand(engine.Options{}, func(p place) []semel.WorkflowDefinition { return napVersion(p, 2, true) })
		raised.store.Shift(time.Hour + time.Minute)
		r.wantRun(raised.pass(kept), semel.RunWaiting, "sleeps")
		old.store.Shift(time.Hour + time.Minute)
		r.wantRun(old.pass(kept), semel.RunCompleted, "")

		changed := r.hand(engine.Options{}, func(p place) []semel.WorkflowDefinition { return napVersion(p, 1, true) })
		changed.store.Shift(2*time.Hour + time.Minute)
		r.wantRun(changed.pass(held), semel.RunHeld, "changed code")
		r.wantAt("/charge", 2, 2)
		r.wantAt("/check", 0, 0)
		r.wantAt("/mail", 1, 1)
		changed.wantQuiet()
	})
}

// C31, steps 3 and 4: three nodes see the due timers at once, each is woken
// twice, and the process that executes a run meets it again through its own
// look for due runs.
func TestC31WokenTwice(t *testing.T) {
	eachRunStore(t, func(r *rig, _ string) {
		const runs = 20
		hands := []*hand{r.hand(engine.Options{Name: "a"}, napFlows), r.hand(engine.Options{Name: "b"}, napFlows), r.hand(engine.Options{Name: "c"}, napFlows)}
		ids := make([]semel.ID, runs)
		for i := range ids {
			ids[i] = hands[0].started("nap", fmt.Sprint("o-", i), order{ID: fmt.Sprint("o-", i), Rest: time.Hour})
		}
		together := func() {
			var wg sync.WaitGroup
			for _, h := range hands {
				for range 2 {
					wg.Go(func() {
						h.worker.Kick()
						if _, err := h.worker.Pass(r.Context()); err != nil {
							r.Error(err)
						}
					})
				}
			}
			wg.Wait()
		}
		together()
		r.wantAt("/charge", runs, runs)
		for _, h := range hands {
			h.store.Shift(time.Hour + time.Second)
		}
		together()
		for _, id := range ids {
			r.wantRun(hands[0].load(id), semel.RunCompleted, "")
		}
		r.wantAt("/charge", runs, runs)
		r.wantAt("/mail", runs, runs)
		hands[0].wantQuiet()
	})
}

// C31, step 4: a run is being executed while the worker that executes it, and
// another one, look for work.
func TestC31AdoptedWhileItRuns(t *testing.T) {
	eachRunStore(t, func(r *rig, _ string) {
		arrived, held := make(chan struct{}, 10), make(chan struct{})
		r.dest.script = func(a arrival, act func(string), w http.ResponseWriter) {
			act(a.path + " " + string(a.body))
			arrived <- struct{}{}
			<-held
			answer(w, http.StatusCreated, `{"id":"ch"}`)
		}
		h, other := r.hand(engine.Options{Name: "a"}, napFlows), r.hand(engine.Options{Name: "b"}, napFlows)
		run, _, err := h.worker.Start(r.Context(), semel.NewRun{Workflow: "nap", Version: 1, Key: "o-1", Input: []byte(`{"id":"o-1"}`)})
		if err != nil {
			r.Fatal(err)
		}
		<-arrived
		h.work()
		other.work()
		for range 3 {
			h.worker.Kick()
			other.worker.Kick()
			time.Sleep(100 * time.Millisecond)
		}
		close(held)
		run = h.await(run.ID, semel.RunCompleted)
		if run.Attempt != 1 {
			r.Errorf("the run was claimed %d times, want 1", run.Attempt)
		}
		r.wantAt("/charge", 1, 1)
		r.wantAt("/mail", 1, 1)
		h.wantQuiet()
	})
}

// C31: a sleep that is negative or longer than a hundred years. By documented
// rule Go code learns it at the step, which waits for nothing and fails the run
// visibly; what came before it stays.
func TestC31ImpossibleSleep(t *testing.T) {
	eachRunStore(t, func(r *rig, _ string) {
		h := r.hand(engine.Options{}, napFlows)
		for i, rest := range []time.Duration{-time.Second, semel.MaxSleep + 1, 1<<63 - 1} {
			id := h.started("nap", fmt.Sprint("o-", i), order{ID: fmt.Sprint("o-", i), Rest: rest})
			run := h.pass(id)
			r.wantRun(run, semel.RunFailed, "rest")
			if !strings.Contains(run.Reason, "100 years") {
				r.Errorf("the reason is %q", run.Reason)
			}
		}
		r.wantAt("/mail", 0, 0)
		h.wantQuiet()
	})
}
