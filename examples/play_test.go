package examples_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/examples/helpdesk"
	"github.com/semel-dev/semel/examples/helpdesk/desk"
	"github.com/semel-dev/semel/examples/outreach"
	"github.com/semel-dev/semel/examples/publishing"
	"github.com/semel-dev/semel/examples/publishing/platform"
	"github.com/semel-dev/semel/sandbox"
)

// begin starts a run with one process, and has another start it again.
func (w *world) begin(p, again *process, n semel.NewRun) semel.Run {
	w.Helper()
	run, _, err := p.worker.Start(w.Context(), n)
	if err != nil {
		w.Fatal(err)
	}
	other, existing, err := again.worker.Start(w.Context(), n)
	if err != nil || !existing || other.ID != run.ID {
		w.Fatalf("started again: run %s, existing %t, %v; want run %s", other.ID, existing, err, run.ID)
	}
	return run
}

// want fails the test unless the run is in the state, with the words in its
// reason.
func (w *world) want(run semel.Run, state semel.RunState, words string) {
	w.Helper()
	run, err := w.store.LoadRun(w.Context(), run.ID)
	if err != nil {
		w.Fatal(err)
	}
	if run.State != state || !strings.Contains(run.Reason, words) {
		w.Fatalf("run is %s (%s), want %s (%s)", run.State, run.Reason, state, words)
	}
}

func (w *world) pass(p *process) {
	w.Helper()
	if _, err := p.worker.Pass(w.Context()); err != nil {
		w.Fatal(err)
	}
}

// loses is a provider that acts on the first request for everything, and
// answers only the second.
func (w *world) loses() (base string, provider *sandbox.Server) {
	w.Helper()
	return w.provider(sandbox.Options{Faults: sandbox.Rate{First: 1, Mix: map[sandbox.Fault]int{sandbox.DropAfter: 1}}})
}

func TestLostArticleIsFoundByItsSlug(t *testing.T) {
	eachStore(t, func(w *world) {
		w.exec(`create table article (slug text primary key, title text, body text, platform_id text)`)
		w.exec(`insert into article (slug, title, body) values ('retry', 'Retry', 'Safe to press.')`)
		p := platform.Platform{Now: w.now, Lose: 1}
		wf := publishing.New(publishing.Destinations{Platform: w.reach("platform", w.serve(&p)), Database: w.database("site")})
		a, b := w.newProcess(0, wf.Definition()), w.newProcess(0, wf.Definition())
		run := w.begin(a, b, w.asked(wf.New("", publishing.Submission{Slug: "retry", Round: 1})))
		s := scene{outside: w.approve}
		if !w.play(&s, b, []semel.Run{run}) {
			w.want(run, semel.RunCompleted, "")
		}
		if id := w.text(`select platform_id from article`); id != "art_1" || len(p.Published()) != 1 {
			w.Errorf("recorded %q of %d articles, want art_1 of one", id, len(p.Published()))
		}
	})
}

func TestEditAfterApprovalIsNotPublished(t *testing.T) {
	eachStore(t, func(w *world) {
		w.exec(`create table article (slug text primary key, title text, body text, platform_id text)`)
		w.exec(`insert into article (slug, title, body) values ('retry', 'Retry', 'Safe to press.')`)
		p := platform.Platform{Now: w.now}
		wf := publishing.New(publishing.Destinations{Platform: w.reach("platform", w.serve(&p)), Database: w.database("site")})
		a := w.newProcess(0, wf.Definition())
		run := w.begin(a, a, w.asked(wf.New("", publishing.Submission{Slug: "retry", Round: 1})))
		w.pass(a)
		w.want(run, semel.RunWaiting, "approval")
		w.approve(run)
		w.exec(`update article set body = 'Safe to press twice.'`)
		w.pass(a)
		w.want(run, semel.RunHeld, "stale")
		if len(p.Published()) != 0 {
			w.Errorf("published %v, want nothing", p.Published())
		}
	})
}

func TestLostMailIsNeverSentAgain(t *testing.T) {
	eachStore(t, func(w *world) {
		base, provider := w.loses()
		wf := outreach.New(outreach.Destinations{Mail: w.reach("mail", base)})
		a, b := w.newProcess(0, wf.Definition()), w.newProcess(0, wf.Definition())
		ann := outreach.Prospect{Campaign: "spring", Address: "ann@example.com", Name: "Ann"}
		reply := semel.InboxEvent{ID: "message-1", Name: "reply", Match: ann.Address, Data: []byte(`{"text":"yes"}`)}
		if _, err := w.store.Send(w.Context(), reply); err != nil { // before anybody waits for it
			w.Fatal(err)
		}
		run := w.begin(a, b, w.asked(wf.New("", ann)))
		w.pass(a)
		w.pass(b)
		w.want(run, semel.RunHeld, "outcome unknown")
		s := scene{happened: func(key semel.Key) bool { return provider.Count(sandbox.Messages, string(key)) > 0 }}
		w.settle(&s, a)
		w.pass(b)
		w.want(run, semel.RunWaiting, "rest-after-hello")
		w.store.Shift(48 * time.Hour)
		w.pass(b)
		w.want(run, semel.RunCompleted, "")
		if n := len(provider.Effects()); n != 1 {
			w.Errorf("%d mails, want one", n)
		}
	})
}

func TestTwoWorkersFindOneBreach(t *testing.T) {
	eachStore(t, func(w *world) {
		w.exec(`create table ticket (id text primary key, title text, due_at timestamp, claimed_by text)`)
		w.exec(`insert into ticket (id, title, due_at) values ('T-1', 'Printer on fire', '2020-01-01T00:00:00Z')`)
		d := desk.Desk{Lose: 1}
		base, provider := w.provider(sandbox.Options{})
		wf := helpdesk.New(helpdesk.Destinations{Database: w.database("support"), Desk: w.reach("desk", w.serve(&d)), Mail: w.reach("mail", base)})
		wf.Schedules = nil
		var sweeps []semel.Run
		var workers sync.WaitGroup
		both := []*process{w.newProcess(0, wf.Definition()), w.newProcess(0, wf.Definition())}
		for i, p := range both {
			run, _, err := p.worker.Start(w.Context(), w.asked(wf.New(semel.Key([]string{"sweep-1", "sweep-2"}[i]), struct{}{})))
			if err != nil {
				w.Fatal(err)
			}
			sweeps = append(sweeps, run)
			workers.Go(func() { _, _ = p.worker.Pass(w.Context()) })
		}
		workers.Wait()
		if !w.play(&scene{}, both[0], sweeps) {
			w.Fatal("the sweeps do not end")
		}
		if d.Status("T-1") != "escalated" || d.Writes() != 2 || provider.Count(sandbox.Messages, "breach-T-1") != 1 {
			w.Errorf("T-1 is %q, set %d times, after %d mails; want escalated, twice because an answer was lost, and one", d.Status("T-1"), d.Writes(), provider.Count(sandbox.Messages, "breach-T-1"))
		}
		if by := w.text(`select claimed_by from ticket`); by != "sweep-1" && by != "sweep-2" {
			w.Errorf("claimed by %q, want a sweep", by)
		}
	})
}
