package cases

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

// weeklyFlows: a mail to each recipient, tried three times after known failures.
func weeklyFlows(p place) []semel.WorkflowDefinition { return weekly(p, none(), 4, func(string) {}) }

// deadlyActionFlows: the action kills its process over r3, after the send.
func deadlyActionFlows(p place) []semel.WorkflowDefinition {
	return weekly(place{deadly{p.dest}, p.url}, none(), 1, func(string) {})
}

// deadlyKeyedFlows: the same, with a destination that honours keys, and three
// attempts.
func deadlyKeyedFlows(p place) []semel.WorkflowDefinition {
	contract := keyed()
	contract.Attempts = 3
	return weekly(place{deadly{p.dest}, p.url}, contract, 1, func(string) {})
}

// deadlyCodeFlows: the workflow's own code kills its process over r3.
func deadlyCodeFlows(p place) []semel.WorkflowDefinition {
	return weekly(p, none(), 1, func(id string) {
		if id == "r3" {
			os.Exit(killed)
		}
	})
}

// killed is the exit code of a process that was killed.
const killed = 137

type deadly struct{ semel.Destination }

func (d deadly) Send(ctx context.Context, s *semel.Send) semel.Event {
	ev := d.Destination.Send(ctx, s)
	if strings.Contains(string(s.Operation.Request.Body), `"r3"`) {
		os.Exit(killed)
	}
	return ev
}

func weekly(p place, contract semel.Contract, atOnce int, before func(id string)) []semel.WorkflowDefinition {
	contract.Timeout = 2 * time.Second
	mail := p.action("mail", contract)
	wf := semel.Workflow[[]order]{
		Name: "weekly", Actions: []semel.Definition{mail.Definition()},
		Func: func(ctx semel.Context, to []order) error {
			return semel.Each(ctx, "to", to, func(o order) string { return o.ID }, atOnce, func(ctx semel.Context, o order) error {
				before(o.ID)
				_, err := semel.Retrying(ctx, mail, o, semel.Retry{Attempts: 3, Backoff: 10 * time.Millisecond})
				return err
			})
		},
	}
	return []semel.WorkflowDefinition{wf.Definition()}
}

// recipients are r1 to r5 and others behind them.
func recipients(others int) []order {
	var all []order
	for i := range 5 + others {
		all = append(all, order{ID: fmt.Sprint("r", i+1)})
	}
	return all
}

// wantMails checks that everybody but r3 got one mail.
func (r *rig) wantMails(others int) {
	r.Helper()
	for _, o := range recipients(others) {
		if n := r.dest.count(`/mail {"id":"` + o.ID + `"}`); o.ID != "r3" && n != 1 {
			r.Errorf("%s got %d mails, want 1", o.ID, n)
		}
	}
}

// C29, A and step 4: r3 is refused three times, which is a known failure; the
// others get one mail each, those behind r3, too. By documented rule a run whose
// attempts are used up is held. The same week again joins it and sends nothing;
// only a person's retry tries r3 again, and nobody else.
func TestC29RefusedItem(t *testing.T) {
	eachRunStore(t, func(r *rig, _ string) {
		const others = 50
		r.dest.script = func(a arrival, act func(string), w http.ResponseWriter) {
			if strings.Contains(string(a.body), `"r3"`) {
				answer(w, http.StatusUnprocessableEntity, `{"error":"no such address"}`)
				return
			}
			act(a.path + " " + string(a.body))
			answer(w, http.StatusCreated, `{"id":"ok"}`)
		}
		h := r.hand(engine.Options{}, weeklyFlows)
		h.work()
		id := h.started("weekly", "2026-W40", recipients(others))
		run := h.await(id, semel.RunHeld)
		r.wantRun(run, semel.RunHeld, "after 3 attempts")
		if run.Done != 5+others || run.Total != 5+others {
			r.Errorf("%d of %d items have ended", run.Done, run.Total)
		}
		if op := h.operation(id, "to[r3]/mail"); op.State != semel.Failed || len(op.Attempts) != 3 {
			r.Errorf("r3 is %s after %d attempts, want failed after 3", op.State, len(op.Attempts))
		}
		r.wantMails(others)
		r.wantAt("/mail", 4+others, 4+others+3)

		if _, existing := h.start("weekly", 1, "2026-W40", recipients(others)); !existing {
			r.Error("the same week is another run")
		}
		time.Sleep(500 * time.Millisecond) // two looks of the worker
		r.wantAt("/mail", 4+others, 4+others+3)
		if err := h.change(id, semel.RetryRun); err != nil {
			r.Fatal(err)
		}
		r.until("three more attempts", func() bool {
			op := h.operation(id, "to[r3]/mail")
			return len(op.Attempts) == 6 && h.load(id).State == semel.RunHeld
		})
		r.wantAt("/mail", 4+others, 4+others+6)
		h.wantQuiet()
	})
}

// C29, C and step 3: r3 never answers. Its attempt ends after the contract's
// timeout of 2 s and counts; the outcome is unknown, and by documented rule is
// not sent again, so that one attempt is all there is. The fifty behind it do
// not wait.
func TestC29ItemThatNeverReturns(t *testing.T) {
	eachRunStore(t, func(r *rig, _ string) {
		const others = 50
		held := make(chan struct{})
		defer close(held)
		r.dest.script = func(a arrival, act func(string), w http.ResponseWriter) {
			act(a.path + " " + string(a.body))
			if strings.Contains(string(a.body), `"r3"`) {
				<-held
			}
			answer(w, http.StatusCreated, `{"id":"ok"}`)
		}
		h := r.hand(engine.Options{}, weeklyFlows)
		h.work()
		id := h.started("weekly", "2026-W40", recipients(others))
		run := h.await(id, semel.RunHeld)
		r.wantRun(run, semel.RunHeld, "outcome unknown")
		if run.Done != 4+others || run.Total != 5+others {
			r.Errorf("%d of %d items have ended", run.Done, run.Total)
		}
		if op := h.operation(id, "to[r3]/mail"); op.State != semel.Unknown || len(op.Attempts) != 1 {
			r.Errorf("r3 is %s after %d attempts, want unknown after 1", op.State, len(op.Attempts))
		}
		r.wantMails(others)
		r.wantAt("/mail", 5+others, 5+others)
		h.wantQuiet()
	})
}

// C29, B: r3 kills the worker process, in its action or in the code before it.
//
// An action has claimed, so its death counts as an attempt, and the outcome is
// unknown. Where the destination honours no key, a person must look after one
// death. By documented rule that holds for every mail that was under way in the
// process; here it is one at a time. Where it honours keys, recovery sends again
// as often as the contract says, three times in all. An item that was executed
// beside that may be left to a person, too: who retries the run has it finished.
//
// Code that dies before it claims is found out by the third death in a row: then
// the items are marked, and the one that was under way is left to a person.
func TestC29ItemThatKillsTheWorker(t *testing.T) {
	for flows, want := range map[string]struct{ deaths, attempts int }{"deadly action": {1, 1}, "deadly keyed action": {3, 3}, "deadly code": {3, 0}} {
		t.Run(flows, func(t *testing.T) {
			eachRunStore(t, func(r *rig, database string) {
				honour := r.dest.honouring()
				r.dest.script = func(a arrival, act func(string), w http.ResponseWriter) {
					honour(a, act)
					answer(w, http.StatusCreated, `{"id":"ok"}`)
				}
				h := r.hand(engine.Options{}, weeklyFlows)
				id := h.started("weekly", "2026-W40", recipients(0))
				settled := func() bool {
					op := h.operation(id, "to[r3]/mail")
					return h.load(id).State == semel.RunHeld && (op == nil || op.State == semel.Unknown && len(op.Attempts) == want.attempts)
				}
				deaths := 0
				for ; ; deaths++ {
					p := r.process(job{Database: database, Name: fmt.Sprint("worker ", deaths), Flows: flows, Shift: time.Duration(deaths) * time.Minute})
					if p.survives(settled) {
						break
					}
					if deaths == 6 {
						r.Fatal("the workers die for ever")
					}
				}
				if deaths > want.deaths {
					r.Errorf("%d workers died, want at most %d", deaths, want.deaths)
				}
				if want.attempts == 0 {
					r.wantRun(h.load(id), semel.RunHeld, "the worker died")
				} else if err := h.change(id, semel.RetryRun); err != nil {
					r.Fatal(err)
				}
				r.until("all but r3 to have ended", func() bool {
					run := h.load(id)
					return run.State == semel.RunHeld && run.Done == 4
				})
				if !settled() {
					r.Error("r3 went on")
				}
				r.wantMails(0)
				h.wantQuiet()
			})
		})
	}
}

// survives waits until something holds, and reports whether the process lived
// to see it. One that dies must have been killed.
func (p *process) survives(holds func() bool) bool {
	p.r.Helper()
	dead := make(chan int, 1)
	go func() {
		for p.lines.Scan() {
		}
		dead <- p.wait()
	}()
	for {
		select {
		case code := <-dead:
			if code != killed {
				p.r.Fatalf("the worker process ended with %d, want %d", code, killed)
			}
			return false
		case <-time.After(50 * time.Millisecond):
			if holds() {
				return true
			}
		}
	}
}
