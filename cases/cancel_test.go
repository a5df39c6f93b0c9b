package cases

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

// tooLate reports whether a request to stop came after the end of the run.
func tooLate(err error) bool {
	_, ok := errors.AsType[*semel.RunStateError](err)
	return ok
}

// hearing is a store that tells when a worker has heard of a request to stop.
type hearing struct {
	runStore
	once  *sync.Once
	heard chan struct{}
}

func (s hearing) RenewRuns(ctx context.Context, held []semel.RunFence, lease time.Duration) ([]semel.Run, error) {
	runs, err := s.runStore.RenewRuns(ctx, held, lease)
	for _, r := range runs {
		if r.Cancel {
			// The worker takes it over when this has returned.
			s.once.Do(func() { time.AfterFunc(200*time.Millisecond, func() { close(s.heard) }) })
		}
	}
	return runs, err
}

// gate is a destination before which a request waits, claimed and not yet sent.
type gate struct {
	semel.Destination
	arrived, open chan struct{}
}

func (g gate) Send(ctx context.Context, s *semel.Send) semel.Event {
	g.arrived <- struct{}{}
	<-g.open
	return g.Destination.Send(ctx, s)
}

// C32, step 1, before the claim and after it: a run that is asked to stop before
// anything was sent is cancelled, and nothing happens. What was claimed is on
// record as failed, cancelled before it was sent.
func TestC32CancelBeforeSend(t *testing.T) {
	eachRunStore(t, func(r *rig, _ string) {
		arrived, open := make(chan struct{}, 1), make(chan struct{})
		store := hearing{r.open().(runStore), &sync.Once{}, make(chan struct{})}
		h := r.handOn(store, engine.Options{}, func(p place) []semel.WorkflowDefinition {
			return napFlows(place{gate{p.dest, arrived, open}, p.url})
		})
		early := h.started("nap", "early", order{ID: "early"})
		if err := h.change(early, semel.CancelRun); err != nil {
			r.Fatal(err)
		}
		h.work()
		h.await(early, semel.RunCancelled)
		if op := h.operation(early, "charge"); op != nil {
			r.Errorf("it claimed an operation, which is %s", op.State)
		}

		claimed := h.started("nap", "claimed", order{ID: "claimed"})
		<-arrived
		if err := h.change(claimed, semel.CancelRun); err != nil {
			r.Fatal(err)
		}
		<-store.heard
		close(open)
		h.await(claimed, semel.RunCancelled)
		op := h.operation(claimed, "charge")
		if op.State != semel.Failed || !op.Cancelled {
			r.Errorf("the operation is %s (%s), want failed, because it was cancelled", op.State, op.Reason)
		}
		r.wantAt("/charge", 0, 0)
		h.wantQuiet()
	})
}

// C32, step 1, after the send: before the effect, and after it and before its
// answer. By documented rule the operation follows the destination and is never
// cancelled: it is completed, or unknown until somebody knows. The run begins
// nothing new; it ends as cancelled when what it sent is settled, and what had
// happened stays with its result.
func TestC32CancelAfterSend(t *testing.T) {
	for name, script := range map[string]struct{ effectFirst, answers bool }{
		"before the effect":              {false, true},
		"after the effect":               {true, true},
		"after the effect, answer lost":  {true, false},
		"before the effect, answer lost": {false, false},
	} {
		t.Run(name, func(t *testing.T) {
			eachRunStore(t, func(r *rig, _ string) {
				arrived, held := make(chan struct{}, 1), make(chan struct{})
				r.dest.script = func(a arrival, act func(string), w http.ResponseWriter) {
					if script.effectFirst {
						act(a.path + " " + string(a.body))
					}
					arrived <- struct{}{}
					<-held
					if !script.effectFirst {
						act(a.path + " " + string(a.body))
					}
					if !script.answers {
						drop()
					}
					answer(w, http.StatusCreated, `{"id":"ch_1"}`)
				}
				h := r.hand(engine.Options{}, napFlows)
				h.work()
				id := h.started("nap", "o-1", order{ID: "o-1", Rest: time.Hour})
				<-arrived
				for range 2 { // asking twice is asking
					if err := h.change(id, semel.CancelRun); err != nil {
						r.Fatal(err)
					}
				}
				if run := h.load(id); run.State.Ended() || !run.Cancel {
					r.Errorf("the run is %s (cancel %v), want one that was asked to stop", run.State, run.Cancel)
				}
				close(held)
				if !script.answers {
					r.until("it to wait for what was sent", func() bool { run := h.load(id); return run.State == semel.RunWaiting })
					op := h.operation(id, "charge")
					if op.State != semel.Unknown {
						r.Errorf("the operation is %s, want unknown", op.State)
					}
					_, err := h.engine.Settle(r.Context(), op.ID, engine.Settlement{Happened: true, By: "ann", Reason: "it is in the export", Reference: "ch_1"})
					if err != nil {
						r.Fatal(err)
					}
				}
				h.await(id, semel.RunCancelled)
				if op := h.operation(id, "charge"); op.State != semel.Completed || op.Result == nil {
					r.Errorf("the charge is %s, want completed with its result", op.State)
				}
				if err := h.change(id, semel.CancelRun); err != nil && !tooLate(err) {
					r.Error(err)
				}
				r.wantAt("/charge", 1, 1)
				r.wantAt("/mail", 0, 0)
				h.wantQuiet()
			})
		})
	}
}

// C32, step 2: two hundred runs are asked to stop about when they complete. Each
// has one end that agrees with the destination, and who asked too late is told.
// By documented rule a request that is accepted during the last step changes
// nothing any more: that step's outcome is the run's.
func TestC32CancelAgainstCompletion(t *testing.T) {
	eachRunStore(t, func(r *rig, _ string) {
		const runs = 200
		r.dest.script = func(a arrival, act func(string), w http.ResponseWriter) {
			act(a.path + " " + string(a.body))
			time.Sleep(rand.N(5 * time.Millisecond)) //nolint:gosec // when does not matter
			answer(w, http.StatusCreated, `{"id":"ch"}`)
		}
		h := r.hand(engine.Options{}, napFlows)
		h.work()
		ids := make([]semel.ID, runs)
		late := make([]bool, runs)
		var wg sync.WaitGroup
		for i := range ids {
			run, _, err := h.worker.Start(r.Context(), semel.NewRun{Workflow: "nap", Version: 1, Key: semel.Key(fmt.Sprint("o-", i)), Input: fmt.Appendf(nil, `{"id":"o-%d"}`, i)})
			if err != nil {
				r.Fatal(err)
			}
			ids[i] = run.ID
			wg.Go(func() {
				time.Sleep(rand.N(20 * time.Millisecond)) //nolint:gosec // when does not matter
				err := h.change(ids[i], semel.CancelRun)
				if late[i] = tooLate(err); err != nil && !late[i] {
					r.Error(err)
				}
			})
		}
		wg.Wait()
		counts := map[semel.RunState]int{}
		for i, id := range ids {
			var run semel.Run
			r.until("the end of a run", func() bool { run = h.load(id); return run.State.Ended() })
			counts[run.State]++
			effects := 0
			for _, step := range []string{"charge", "mail"} {
				n := r.dest.count(fmt.Sprintf(`/%s {"id":"o-%d"}`, step, i))
				if op := h.operation(id, step); n > 1 || (n == 1) != (op != nil && op.State == semel.Completed) {
					r.Errorf("run %s: %d effects of its %s, and the operation is %+v", run.Key, n, step, op)
				}
				effects += n
			}
			switch {
			case run.State == semel.RunCompleted && effects == 2:
			case run.State == semel.RunCancelled && effects < 2 && !late[i]:
			default:
				r.Errorf("run %s is %s with %d effects, and who asked was told too late: %v", run.Key, run.State, effects, late[i])
			}
		}
		r.Logf("%v", counts)
		h.wantQuiet()
	})
}

// C32, steps 1 and 3: a run that charged and sleeps is cancelled at once: the
// mail is not sent, and the charge stays with its result. After completion a
// request to stop is refused as too late, and changes nothing.
func TestC32CancelASleepingRun(t *testing.T) {
	eachRunStore(t, func(r *rig, _ string) {
		h := r.hand(engine.Options{}, napFlows)
		id := h.started("nap", "o-1", order{ID: "o-1", Rest: time.Hour})
		r.wantRun(h.pass(id), semel.RunWaiting, "sleeps")
		if err := h.change(id, semel.CancelRun); err != nil {
			r.Fatal(err)
		}
		r.wantRun(h.load(id), semel.RunCancelled, "")
		done := h.started("nap", "o-2", order{ID: "o-2"})
		r.wantRun(h.pass(done), semel.RunCompleted, "")
		if err := h.change(done, semel.CancelRun); !tooLate(err) {
			r.Errorf("cancel after completion: %v, want a refusal", err)
		}
		h.store.Shift(2 * time.Hour)
		r.wantRun(h.pass(id), semel.RunCancelled, "")
		r.wantRun(h.pass(done), semel.RunCompleted, "")
		if op := h.operation(id, "charge"); op.State != semel.Completed || op.Result.Reference == "" {
			r.Errorf("the charge is %s with result %v", op.State, op.Result)
		}
		r.wantAt("/charge", 2, 2)
		r.wantAt("/mail", 1, 1)
		h.wantQuiet()
	})
}

// C32, step 4: the worker is killed with SIGKILL right after the cancel of its
// run was accepted, with a request under way that has its effect. Another worker
// sends nothing, and ends the run as cancelled once a person has said what
// became of the request.
func TestC32CancelSurvivesTheWorker(t *testing.T) {
	eachRunStore(t, func(r *rig, database string) {
		arrived, held := make(chan struct{}, 1), make(chan struct{})
		defer close(held)
		r.dest.script = func(a arrival, act func(string), _ http.ResponseWriter) {
			act(a.path + " " + string(a.body))
			arrived <- struct{}{}
			<-held
		}
		h := r.hand(engine.Options{}, napFlows)
		id := h.started("nap", "o-1", order{ID: "o-1", Rest: time.Hour})
		p := r.process(job{Database: database, Name: "a", Flows: "nap"})
		<-arrived
		if err := h.change(id, semel.CancelRun); err != nil {
			r.Fatal(err)
		}
		p.kill()
		h.store.Shift(time.Minute)
		r.process(job{Database: database, Name: "b", Flows: "nap", Shift: time.Minute})
		r.until("the run to wait", func() bool { run := h.load(id); return run.State == semel.RunWaiting && run.Cancel })
		if err := h.change(id, semel.CancelRun); err != nil {
			r.Errorf("cancel again: %v", err)
		}
		op := h.operation(id, "charge")
		if _, err := h.engine.Settle(r.Context(), op.ID, engine.Settlement{Happened: true, By: "ann", Reason: "it is in the export", Reference: "ch_1"}); err != nil {
			r.Fatal(err)
		}
		h.await(id, semel.RunCancelled)
		r.wantAt("/charge", 1, 1)
		r.wantAt("/mail", 0, 0)
		h.wantQuiet()
	})
}
