package outreach_test

import (
	"testing"
	"time"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
	"github.com/semel-dev/semel/examples/outreach"
	"github.com/semel-dev/semel/semeltest"
)

const day = 24 * time.Hour

var (
	sequence = workflow()
	ann      = outreach.Prospect{Campaign: "spring", Address: "ann@example.com", Name: "Ann"}
)

// workflow reaches nothing: semeltest answers in the place of its destination.
func workflow() semel.Workflow[outreach.Prospect] {
	mail, err := httpdest.New(httpdest.Options{Name: "mail", Base: "https://mail.example.com"})
	if err != nil {
		panic(err)
	}
	return outreach.New(outreach.Destinations{Mail: mail})
}

// want fails the test unless the run has ended with this result after so many
// mails.
func want(t *testing.T, w *semeltest.World, run semel.Run, mails int, result string) {
	t.Helper()
	if run.State != semel.RunCompleted || string(run.Result) != result || len(w.Effects("mail")) != mails {
		t.Errorf("%s (%s) with %s after %d mails, want %s after %d", run.State, run.Reason, run.Result, len(w.Effects("mail")), result, mails)
	}
}

func TestSilenceGetsEveryLetter(t *testing.T) {
	w := semeltest.New(t, sequence.Definition())
	run := w.Start(sequence.New("", ann))
	w.Advance(10 * day)
	want(t, w, w.Await(run), 3, `{"mails":3}`)
	sent := w.Effects("mail")
	for i := 1; i < len(sent); i++ {
		if pause := sent[i].At.Sub(sent[i-1].At); pause < 3*day || pause > 3*day+time.Minute {
			t.Errorf("mail %d came %v after the one before, want 3 days", i+1, pause)
		}
	}
}

func TestReplyEndsTheSequence(t *testing.T) {
	for name, after := range map[string]time.Duration{
		"before the wait":        time.Hour,
		"during the wait":        2*day + time.Hour,
		"after the second mail":  4 * day,
		"before there was a run": -time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			w := semeltest.New(t, sequence.Definition())
			reply := func() { w.Send("reply", ann.Address, outreach.Reply{Text: "yes"}) }
			mails, result := 1, `{"mails":1,"reply":"yes"}`
			if after < 0 {
				reply()
			}
			run := w.Start(sequence.New("", ann))
			if after > 0 {
				w.Advance(after)
				w.Restart() // a deployment in between changes nothing
				reply()
			}
			w.Advance(10 * day)
			if after > 3*day {
				mails, result = 2, `{"mails":2,"reply":"yes"}`
			}
			want(t, w, w.Await(run), mails, result)
		})
	}
}

func TestSomebodyElsesReplyChangesNothing(t *testing.T) {
	w := semeltest.New(t, sequence.Definition())
	run := w.Start(sequence.New("", ann))
	w.Send("reply", "bob@example.com", outreach.Reply{Text: "no"})
	w.Advance(10 * day)
	want(t, w, w.Await(run), 3, `{"mails":3}`)
}

func TestLostAnswerWaitsForAPerson(t *testing.T) {
	w := semeltest.New(t, sequence.Definition())
	w.On("mail", semeltest.LostAfter(outreach.Sent{ID: "m_1"}), semeltest.Completed(nil))
	run := w.Start(sequence.New("", ann))
	w.Advance(time.Hour)
	if run = w.Await(run); run.State != semel.RunHeld || len(w.Requests("mail")) != 1 {
		t.Fatalf("%s (%s), %d mails; want a run that is held after one", run.State, run.Reason, len(w.Requests("mail")))
	}
	w.Happened(run, "mail-hello", outreach.Sent{ID: "m_1"})
	w.Advance(10 * day)
	want(t, w, w.Await(run), 3, `{"mails":3}`)
}
