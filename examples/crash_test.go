package examples_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
	"github.com/semel-dev/semel/examples/checkout"
	"github.com/semel-dev/semel/examples/helpdesk"
	"github.com/semel-dev/semel/examples/helpdesk/desk"
	"github.com/semel-dev/semel/examples/outreach"
	"github.com/semel-dev/semel/examples/publishing"
	"github.com/semel-dev/semel/examples/publishing/platform"
	"github.com/semel-dev/semel/sandbox"
)

// scene is an example in a world. It is played many times: n tells what one
// performance is about from all others.
type scene struct {
	definition semel.WorkflowDefinition
	// start asks for the runs of a performance.
	start func(n int) []semel.NewRun
	// outside does what others do while a run waits; nil for nothing.
	outside func(run semel.Run)
	// happened is what a person finds out who looks for the effect of a key.
	happened func(key semel.Key) bool
	// check fails the test unless each effect of a performance happened once.
	check func(n int)
	// points is the least number of calls at which it can be killed.
	points int
}

func TestKilledAnywhereEachEffectHappensOnce(t *testing.T) {
	for name, set := range map[string]func(*world) scene{
		"publishing": (*world).publishing, "outreach": (*world).outreach, "checkout": (*world).checkout, "helpdesk": (*world).helpdesk,
		"billing": (*world).billing,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachStore(t, func(w *world) {
				s := set(w)
				n := 1
				for ; w.performance(&s, n); n++ {
				}
				w.Logf("%d points at which it can be killed", n-1)
				if n-1 < s.points {
					w.Errorf("%d points, want at least %d", n-1, s.points)
				}
			})
		})
	}
}

// performance plays a scene with a process that dies at the nth point, and with
// another one after it. It returns false if there is no nth point.
func (w *world) performance(s *scene, n int) bool {
	w.Helper()
	var runs []semel.Run
	for _, r := range s.start(n) {
		run, _, err := w.store.Start(w.Context(), r, nil)
		if err != nil {
			w.Fatal(err)
		}
		runs = append(runs, run)
	}
	first := w.newProcess(n, s.definition)
	if !w.play(s, first, runs) && !w.play(s, w.newProcess(0, s.definition), runs) {
		for _, run := range runs {
			run, err := w.store.LoadRun(w.Context(), run.ID)
			w.Fatalf("killed at point %d: run %s is %s (%s), %v", n, run.Key, run.State, run.Reason, err)
		}
	}
	s.check(n)
	return first.died()
}

// play lets a process work and the world go on until the runs have ended; it
// returns false if they do not, or the process dies before.
func (w *world) play(s *scene, p *process, runs []semel.Run) bool {
	w.Helper()
	for range 60 {
		if _, err := p.worker.Pass(w.Context()); err != nil && !p.died() {
			w.Fatal(err)
		}
		ended := true
		for _, run := range runs {
			run, err := w.store.LoadRun(w.Context(), run.ID)
			if err != nil {
				w.Fatal(err)
			}
			ended = ended && run.State == semel.RunCompleted
			if p.died() {
				continue
			}
			w.attend(s, p, run)
		}
		if ended || p.died() {
			return ended
		}
		w.store.Shift(20 * time.Second)
	}
	return false
}

// attend does for a run what people do.
func (w *world) attend(s *scene, p *process, run semel.Run) {
	w.Helper()
	switch run.State {
	case semel.RunWaiting:
		if s.outside != nil {
			s.outside(run)
		}
	case semel.RunHeld:
		w.settle(s, p)
	case semel.RunFailed: // nothing happened, says the record
		if _, err := w.store.ChangeRun(w.Context(), run.ID, semel.RunCommand{Verb: semel.RetryRun, By: "ann", Reason: "nothing happened"}); err != nil {
			w.Fatal(err)
		}
	case semel.RunRunning, semel.RunCompleted, semel.RunCancelled:
	}
}

// settle is a person who looks in the world for what nobody else can know.
func (w *world) settle(s *scene, p *process) {
	w.Helper()
	for o, err := range w.store.List(w.Context(), semel.Filter{State: semel.Unknown, Review: true}) {
		if err != nil {
			w.Fatal(err)
		}
		found := engine.Settlement{Happened: s.happened(o.Key), By: "ann", Reason: "looked for it", Force: true}
		if found.Happened {
			found.Result = &semel.Result{MediaType: "application/json", Body: []byte(`{"id":"found"}`)}
		}
		if _, err := p.engine.Settle(w.Context(), o.ID, found); err != nil {
			w.Fatal(err)
		}
	}
}

// approve gives every approval that a run asks for.
func (w *world) approve(run semel.Run) {
	w.Helper()
	for a, err := range w.store.Approvals(w.Context(), run.ID, semel.ApprovalPending) {
		if err == nil {
			_, err = w.store.Decide(w.Context(), a.ID, semel.Decision{State: semel.ApprovalGiven, By: "ann", Reason: "read", Digest: a.Digest})
		}
		if err != nil {
			w.Fatal(err)
		}
	}
}

// asked is a request for a run that must be possible.
func (w *world) asked(n semel.NewRun, err error) semel.NewRun {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
	return n
}

func (w *world) publishing() scene {
	w.exec(`create table article (slug text primary key, title text, body text, platform_id text)`)
	p := platform.Platform{Now: w.now}
	wf := publishing.New(publishing.Destinations{Platform: w.reach("platform", w.serve(&p)), Database: w.database("site")})
	slug := func(n int) string { return fmt.Sprintf("article-%d", n) }
	return scene{
		definition: wf.Definition(), outside: w.approve, points: 24,
		start: func(n int) []semel.NewRun {
			w.exec(`insert into article (slug, title, body) values ($1, 'Retry', 'Safe to press.')`, slug(n))
			return []semel.NewRun{w.asked(wf.New("", publishing.Submission{Slug: slug(n), Round: 1}))}
		},
		happened: func(key semel.Key) bool { w.Errorf("%s needs a person", key); return false },
		check: func(n int) {
			w.Helper()
			var ids []string
			for _, a := range p.Published() {
				if a.Slug == slug(n) {
					ids = append(ids, a.ID)
				}
			}
			if recorded := w.text(`select platform_id from article where slug = $1`, slug(n)); len(ids) != 1 || ids[0] != recorded {
				w.Errorf("killed at point %d: published as %v and recorded as %q, want one", n, ids, recorded)
			}
		},
	}
}

func (w *world) outreach() scene {
	base, provider := w.provider(sandbox.Options{})
	wf := outreach.New(outreach.Destinations{Mail: w.reach("mail", base), Day: 10 * time.Second})
	to := func(n int) string { return fmt.Sprintf("c-%d@example.com", n) }
	return scene{
		definition: wf.Definition(), points: 60,
		start: func(n int) []semel.NewRun {
			return []semel.NewRun{w.asked(wf.New("", outreach.Prospect{Campaign: "spring", Address: to(n), Name: "Ann"}))}
		},
		happened: func(key semel.Key) bool { return provider.Count(sandbox.Messages, string(key)) > 0 },
		check: func(n int) {
			w.Helper()
			for _, letter := range []string{"hello", "reminder", "farewell"} {
				if sent := provider.Count(sandbox.Messages, "spring/"+to(n)+"/"+letter); sent != 1 {
					w.Errorf("killed at point %d: %s was sent %d times", n, letter, sent)
				}
			}
		},
	}
}

func (w *world) checkout() scene {
	base, provider := w.provider(sandbox.Options{})
	wf := checkout.New(checkout.Destinations{Payments: w.reach("payments", base)})
	customer := func(n int) string { return fmt.Sprintf("c-%d", n) }
	return scene{
		definition: wf.Definition(), points: 10,
		start: func(n int) []semel.NewRun {
			return []semel.NewRun{w.asked(wf.New(semel.Key(customer(n)), checkout.Order{Item: "notebook", Cents: 1200, Customer: customer(n)}))}
		},
		happened: func(key semel.Key) bool { w.Errorf("%s needs a person", key); return false },
		check: func(n int) {
			w.Helper()
			if charged := charges(provider, customer(n)); charged != 1 {
				w.Errorf("killed at point %d: charged %d times", n, charged)
			}
		},
	}
}

func charges(provider *sandbox.Server, customer string) (n int) {
	for _, e := range provider.Effects() {
		if e.Resource == sandbox.Charges && e.Customer == customer {
			n++
		}
	}
	return n
}

func (w *world) helpdesk() scene {
	w.exec(`create table ticket (id text primary key, title text, due_at timestamp, claimed_by text)`)
	var d desk.Desk
	base, provider := w.provider(sandbox.Options{})
	wf := helpdesk.New(helpdesk.Destinations{Database: w.database("support"), Desk: w.reach("desk", w.serve(&d)), Mail: w.reach("mail", base)})
	wf.Schedules = nil // the scene itself sweeps
	id := func(n, ticket int) string { return fmt.Sprintf("T-%d-%d", n, ticket) }
	return scene{
		definition: wf.Definition(), points: 40,
		start: func(n int) []semel.NewRun {
			for ticket := range 2 {
				w.exec(`insert into ticket (id, title, due_at) values ($1, 'Printer on fire', '2020-01-01T00:00:00Z')`, id(n, ticket))
			}
			return []semel.NewRun{w.asked(wf.New(semel.Key(fmt.Sprintf("a-%d", n)), struct{}{})), w.asked(wf.New(semel.Key(fmt.Sprintf("b-%d", n)), struct{}{}))}
		},
		happened: func(key semel.Key) bool { return provider.Count(sandbox.Messages, string(key)) > 0 },
		check: func(n int) {
			w.Helper()
			for ticket := range 2 {
				mails, status := provider.Count(sandbox.Messages, "breach-"+id(n, ticket)), d.Status(id(n, ticket))
				if mails != 1 || status != "escalated" {
					w.Errorf("killed at point %d: %s is %q after %d mails, want escalated after 1", n, id(n, ticket), status, mails)
				}
			}
		},
	}
}

// billing charges two invoices each night. Only a receipt may end unknown,
// since the mailer knows no key.
func (w *world) billing() scene {
	schema, err := os.ReadFile("billing/schema.sql")
	if err != nil {
		w.Fatal(err)
	}
	w.exec(string(schema))
	w.exec(`delete from invoices`)
	base, provider := w.provider(sandbox.Options{})
	definition, config := load(w, "billing/nightly_billing.yaml", "http://127.0.0.1:8089", base, "env:LEDGER_URL", strconv.Quote(w.address))
	w.resolve = config.Resolve
	ids := func(n int) []string { return []string{strconv.Itoa(n) + "-4417", strconv.Itoa(n) + "-4418"} }
	return scene{
		definition: definition.Workflow(config), points: 36,
		start: func(n int) []semel.NewRun {
			for _, id := range ids(n) {
				w.exec(`insert into invoices (id, customer, email, amount, due_on) values ($1, 'Ann', 'ann@example.com', 12900, '2026-03-01')`, id)
			}
			return []semel.NewRun{w.asked(definition.New(semel.Key(strconv.Itoa(n)), []byte(`{"day":"2026-03-01"}`)))}
		},
		happened: func(key semel.Key) bool {
			id, receipt := strings.CutSuffix(strings.TrimPrefix(string(key), "invoice-"), "-receipt")
			if !receipt {
				w.Errorf("%s needs a person", key)
			}
			return provider.Count(sandbox.Messages, id) > 0
		},
		check: func(n int) {
			w.Helper()
			for _, id := range ids(n) {
				charged, mailed := provider.Count(sandbox.Charges, id), provider.Count(sandbox.Messages, id)
				if paid := w.text(`select charge from invoices where id = $1`, id); charged != 1 || mailed != 1 || paid == "" {
					w.Errorf("killed at point %d: %s was charged %d times, is paid with %q, and got %d receipts; want one each", n, id, charged, paid, mailed)
				}
			}
		},
	}
}
