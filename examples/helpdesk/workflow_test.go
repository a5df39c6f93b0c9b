package helpdesk_test

import (
	"testing"
	"time"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
	sqldest "github.com/semel-dev/semel/destination/sql"
	"github.com/semel-dev/semel/examples/helpdesk"
	"github.com/semel-dev/semel/semeltest"
)

var sla = workflow()

// workflow reaches nothing: semeltest answers in the place of its destinations.
func workflow() semel.Workflow[struct{}] {
	database, err := sqldest.New("postgres://localhost/support", sqldest.Options{Name: "support"})
	if err != nil {
		panic(err)
	}
	reach := func(name string) *httpdest.Destination {
		d, err := httpdest.New(httpdest.Options{Name: name, Base: "https://" + name + ".example.com"})
		if err != nil {
			panic(err)
		}
		return d
	}
	return helpdesk.New(helpdesk.Destinations{Database: database, Desk: reach("desk"), Mail: reach("mail")})
}

func tickets(ids ...string) semeltest.Answer {
	found := sqldest.Found[helpdesk.Ticket]{}
	for _, id := range ids {
		found.Rows = append(found.Rows, helpdesk.Ticket{ID: id, Title: "Printer on fire"})
	}
	return semeltest.Completed(found)
}

func verdict(won bool) semeltest.Answer {
	return semeltest.Completed(sqldest.Verdict[struct{}]{Won: won})
}

func want(t *testing.T, w *semeltest.World, run semel.Run, escalated, notified int) {
	t.Helper()
	e, n := len(w.Effects("escalate")), len(w.Effects("notify"))
	if run.State != semel.RunCompleted || e != escalated || n != notified {
		t.Errorf("%s (%s), escalated %d times, notified %d times; want %d and %d", run.State, run.Reason, e, n, escalated, notified)
	}
}

func TestBreachIsEscalatedAndNotified(t *testing.T) {
	w := semeltest.New(t, sla.Definition())
	w.On("find", tickets("T-1", "T-2"))
	w.On("claim", verdict(true))
	want(t, w, w.Run(sla.New("sweep-1", struct{}{})), 2, 2)
}

func TestOnlyTheSweepThatClaimedActs(t *testing.T) {
	w := semeltest.New(t, sla.Definition())
	w.On("find", tickets("T-1"))
	w.On("claim", verdict(true), verdict(false))
	first, second := w.Start(sla.New("sweep-1", struct{}{})), w.Start(sla.New("sweep-2", struct{}{}))
	w.Advance(0)
	want(t, w, w.Await(first), 1, 1)
	want(t, w, w.Await(second), 1, 1)
}

func TestLostEscalationIsSetAgain(t *testing.T) {
	w := semeltest.New(t, sla.Definition())
	w.On("find", tickets("T-1"))
	w.On("claim", verdict(true))
	w.On("escalate", semeltest.LostAfter(nil), semeltest.Completed(nil))
	want(t, w, w.Run(sla.New("sweep-1", struct{}{})), 1, 1)
	if n := len(w.Requests("escalate")); n != 2 {
		t.Errorf("asked %d times, want 2", n)
	}
}

func TestLostMailHoldsOneTicketAlone(t *testing.T) {
	w := semeltest.New(t, sla.Definition())
	w.On("find", tickets("T-1", "T-2"))
	w.On("claim", verdict(true))
	w.OnKey("notify", "breach-T-1", semeltest.LostAfter(nil))
	run := w.Run(sla.New("sweep-1", struct{}{}))
	if run.State != semel.RunHeld || len(w.Effects("notify")) != 2 || run.Done != 1 {
		t.Fatalf("%s (%s), %d of %d done, %d mails; want one held, and both mails", run.State, run.Reason, run.Done, run.Total, len(w.Effects("notify")))
	}
	w.Happened(run, "breached[T-1]/notify", nil)
	want(t, w, w.Await(run), 2, 2)
}

func TestASweepComesEveryMinute(t *testing.T) {
	w := semeltest.New(t, sla.Definition())
	w.On("find", tickets())
	w.Advance(3 * time.Minute)
	if n := len(w.Requests("find")); n != 3 {
		t.Errorf("%d sweeps in 3 minutes, want 3", n)
	}
}
