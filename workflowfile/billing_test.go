package workflowfile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
	"github.com/semel-dev/semel/workflowfile"
)

const thirty = "123456789012345678901234567890"

// dueRows has amounts that no float64 holds.
const dueRows = `{"rows":[{"id":"inv-1","customer":"Ann","email":"ann@x","amount":9007199254740993},` +
	`{"id":"inv-2","customer":"Bob","email":"bob@x","amount":0.10},` +
	`{"id":"inv-3","customer":"Eve","email":"eve@x","amount":` + thirty + `}]}`

func billing(t *testing.T) *workflowfile.Definition {
	t.Helper()
	d, problems, err := workflowfile.Load("testdata/good/nightly_billing.yaml", checks)
	if err != nil || d == nil {
		t.Fatal(err, lines(problems))
	}
	return d
}

func billingTown() *town {
	w := newTown()
	w.say("sql.query", says(dueRows))
	w.say("payments.charge", func(_ int, body string) (semel.Event, bool) {
		_, reference, _ := strings.Cut(body, `"reference":"inv-`)
		return confirmed("application/json", `{"id":"ch_`+reference[:1]+`"}`), true
	})
	return w
}

// wantsBilled checks that the night is as it should be: each effect once.
func wantsBilled(t *testing.T, w *town) {
	t.Helper()
	w.wants(t, "payments.charge",
		`{"amount":0.10,"customer":"Bob","reference":"inv-2"}`,
		`{"amount":`+thirty+`,"customer":"Eve","reference":"inv-3"}`,
		`{"amount":9007199254740993,"customer":"Ann","reference":"inv-1"}`)
	var paid, mails []string
	for i, p := range []struct{ name, amount string }{{"Ann", "9007199254740993"}, {"Bob", "0.10"}, {"Eve", thirty}} {
		paid = append(paid, fmt.Sprintf(`{"args":["inv-%d","ch_%d"],"at":"ledger","statement":"update invoices set paid = true, charge = $2 where id = $1\n"}`, i+1, i+1))
		mails = append(mails, fmt.Sprintf(`{"template":"Dear %s,\n\nwe have charged %s for invoice inv-%d.\nYour reference is ch_%d.\n","to":"%s@x"}`, p.name, p.amount, i+1, i+1, strings.ToLower(p.name)))
	}
	w.wants(t, "sql.exec", paid...)
	w.wants(t, "mail.send", mails...)
}

func TestNightlyBillingFromItsSchedule(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w, store := billingTown(), open()
		r := newRig(t, store, w, billing(t))
		if _, err := r.w.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		store.Shift(24 * time.Hour)
		if _, err := r.w.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		var runs []semel.Run
		for run, err := range store.ListRuns(t.Context(), semel.RunFilter{}) {
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, run)
		}
		if len(runs) != 1 || runs[0].Trigger.Tick == nil {
			t.Fatalf("runs %+v, want one of a tick", runs)
		}
		r.want(runs[0], semel.RunCompleted)
		wantsBilled(t, w)
		w.mu.Lock()
		query := w.requests[0].body
		w.mu.Unlock()
		if !strings.Contains(query, `"args":["`+runs[0].Trigger.Tick.Date+`"]`) || !strings.Contains(query, "from invoices") {
			t.Errorf("the query was %s", query)
		}
		if runs[0].Done != 3 || runs[0].Total != 3 {
			t.Errorf("%d of %d items, want 3 of 3", runs[0].Done, runs[0].Total)
		}
	})
}

// TestNightlyBillingAfterAKill: the worker hangs for ever when one of its
// requests has had its effect; another one, with nothing but the database, goes
// on. A mail is unknown then, and a person says that it went out.
func TestNightlyBillingAfterAKill(t *testing.T) {
	for n := range 1 + 3*3 {
		t.Run(fmt.Sprint(n+1), func(t *testing.T) {
			eachStore(t, func(t *testing.T, open func() shifted) { killedAt(t, n+1, open) })
		})
	}
}

func killedAt(t *testing.T, n int, open func() shifted) {
	w, file := billingTown(), billing(t)
	w.say("sql.exec", says(`{"affected":1}`))
	hung, release, passed := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	w.after = func(i int) {
		if i == n {
			close(hung)
			<-release
		}
	}
	first := newRig(t, open(), w, file)
	asked, err := file.New("night", []byte(`{"day":"2027-01-31"}`))
	if err != nil {
		t.Fatal(err)
	}
	run, _, err := first.e.Start(t.Context(), asked)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := first.w.Pass(t.Context())
		passed <- err
	}()
	<-hung
	store := open()
	second := newRig(t, store, w, billing(t))
	for range 20 {
		store.Shift(time.Minute)
		if run = second.pass(run.ID); run.State == semel.RunCompleted {
			break
		}
		if run.State == semel.RunHeld {
			settleMails(second, run)
		}
	}
	second.want(run, semel.RunCompleted)
	close(release)
	<-passed
	wantsBilled(t, w)
	if queries := w.asked("sql.query"); queries > 1 && n > 1 {
		t.Errorf("the query ran %d times, want 1: its answer is recorded", queries)
	}
	if charges := w.asked("payments.charge"); charges > 4 || w.asked("sql.exec") != 3 || w.asked("mail.send") != 3 {
		t.Errorf("%d charges, %d updates and %d mails were asked for", charges, w.asked("sql.exec"), w.asked("mail.send"))
	}
}

// settleMails says of mails whose outcome nobody knows that they went out.
func settleMails(r *rig, run semel.Run) {
	r.Helper()
	steps, err := r.store.Steps(r.Context(), run.ID)
	if err != nil {
		r.Fatal(err)
	}
	for _, s := range steps {
		if s.Effect == nil || s.Effect.State == semel.Completed {
			continue
		}
		if s.What != "mail.send" {
			r.Fatalf("step %s needs a person: %s", s.Path, run.Reason)
		}
		if _, err := r.e.Settle(r.Context(), s.Operation, engine.Settlement{Happened: true, By: "ann", Reason: "it is in the outbox"}); err != nil {
			r.Fatal(err)
		}
	}
}

// TestEditedFileHoldsTheRun: the version is the same, the content is not.
func TestEditedFileHoldsTheRun(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := billingTown()
		w.say("sql.query", func(int, string) (semel.Event, bool) {
			return semel.Event{Kind: semel.EvLost, Reason: "no answer"}, false
		})
		store := open()
		run := newRig(t, store, w, billing(t)).start("night", `{"day":"2027-01-31"}`)
		file, problems := workflowfile.Parse("nightly_billing.yaml", slices.Clone(billing(t).Text), workflowfile.Checks{
			Connection: checks.Connection,
			File: func(name string) ([]byte, error) {
				if name == "due.sql" {
					return []byte("select * from invoices"), nil
				}
				return checks.File(name)
			},
		})
		if file == nil {
			t.Fatal(lines(problems))
		}
		r := newRig(t, store, w, file)
		store.Shift(time.Hour)
		r.want(r.pass(run.ID), semel.RunHeld, "changed since the run began: file due.sql changed;")
		if w.asked("payments.charge") != 0 {
			t.Error("something was sent")
		}
	})
}
