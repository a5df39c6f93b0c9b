package workflowfile_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

// TestSkippedStepsAreNotThere: what follows can ask for them with has().
func TestSkippedStepsAreNotThere(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := newTown()
		w.say("payments.charge", says(`{"id":"ch_1"}`))
		r := newRig(t, open(), w, workflow(t, `
inputs: {amount: {type: number}}
steps:
  - {id: charge, if: inputs.amount > 0.05, uses: payments.charge, with: {amount: "${{ inputs.amount }}"}}
  - {id: note, uses: mail.send, with: {text: "${{ has(steps.charge) ? steps.charge.result.id : 'free' }}"}}
`))
		r.want(r.start("a", `{"amount":0.10}`), semel.RunCompleted)
		r.want(r.start("b", `{"amount":0.01}`), semel.RunCompleted)
		w.wants(t, "payments.charge", `{"amount":0.10}`)
		w.wants(t, "mail.send", `{"text":"ch_1"}`, `{"text":"free"}`)
	})
}

const teams = `
steps:
  - {id: rows, uses: stock.list}
  - id: team
    each: {in: steps.rows.rows, as: team, key: team.id, at_once: 2}
    steps:
      - id: member
        each: {in: team.members, as: member, key: member}
        steps:
          - {id: mail, uses: mail.send, with: {to: "${{ member }}", of: "${{ team.id }}", num: "${{ team.num }}"}, effect: {key: "${{ team.id }}-${{ member }}"}}
          - {id: check, if: steps.rows.rows.size() > 1, uses: payments.charge, with: {to: "${{ member }}", ref: "${{ steps.mail.result.ref }}"}}
  - {id: report, uses: mail.report, with: {total: "${{ steps.team.result.total }}", failed: "${{ steps.team.result.failed }}"}}
on_failure:
  - {id: tell, uses: mail.ops, with: {step: "${{ failure.step }}", text: "${{ failure.message }}", failed: "${{ steps.team.result.failed }} of ${{ steps.team.result.total }}"}}
`

// TestEachInEach: inner steps see items and steps of the lists around them,
// and one bad item stops nobody.
func TestEachInEach(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := newTown()
		w.say("stock.list", says(`{"rows":[{"id":"x","num":1e2,"members":["a","b"]},{"id":"y","num":2.50,"members":["a"]}]}`))
		w.say("mail.send", says(`{"ref":7.0}`))
		bad := func(_ int, body string) (semel.Event, bool) {
			if strings.Contains(body, `"b"`) {
				return refuses("no such person")(0, body)
			}
			return confirmed("", "{}"), true
		}
		w.say("payments.charge", bad)
		r := newRig(t, open(), w, workflow(t, teams))
		run := r.start("a", "")
		r.want(run, semel.RunFailed, "w.yaml:5: 1 of 2 items of team failed; x: w.yaml:8: 1 of 2 items of team[x]/member failed; b: w.yaml:12: step team[x]/member[b]/check failed, nothing happened: no such person")
		w.wants(t, "mail.send", `{"num":1e2,"of":"x","to":"a"}`, `{"num":1e2,"of":"x","to":"b"}`, `{"num":2.50,"of":"y","to":"a"}`)
		w.wants(t, "payments.charge", `{"ref":7.0,"to":"a"}`, `{"ref":7.0,"to":"a"}`)
		told := w.seen("mail.ops")
		if len(told) != 1 || !strings.Contains(told[0], `{"failed":"1 of 2","step":"team","text":"1 of 2 items of team failed; x: w.yaml`) {
			t.Errorf("told %q", told)
		}
		w.say("payments.charge", nil)
		r.want(r.retry(run.ID), semel.RunCompleted)
		w.wants(t, "payments.charge", `{"ref":7.0,"to":"a"}`, `{"ref":7.0,"to":"a"}`, `{"ref":7.0,"to":"b"}`)
		w.wants(t, "mail.report", `{"failed":0,"total":2}`)
		if w.asked("mail.ops") != 1 || w.asked("mail.send") != 3 {
			t.Error("a step that was done ran again")
		}
	})
}

// TestOnFailureLeavesTheFailedStepToARetry: nothing counts as having come
// after it. Whoever was told once is not told again.
func TestOnFailureLeavesTheFailedStepToARetry(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := newTown()
		w.say("payments.charge", refuses("closed"))
		store, file := open(), workflow(t, `
steps:
  - {id: first, uses: mail.send, with: {text: hello}}
  - {id: charge, uses: payments.charge, with: {amount: 1}, retry: {attempts: 2, backoff: 1m}}
  - {id: last, uses: mail.send, with: {text: done}}
on_failure:
  - {id: pause, sleep: {for: 1h}}
  - {id: tell, uses: mail.ops, with: {step: "${{ failure.step }}", text: "${{ failure.message }}", first: "${{ steps.first.result }}"}, effect: {key: "${{ run.key }}-failed"}}
`)
		r := newRig(t, store, w, file)
		run := r.start("a", "")
		r.want(run, semel.RunWaiting, "attempt 2 of 2")
		store.Shift(time.Minute + time.Second)
		r.want(r.pass(run.ID), semel.RunWaiting, "step on_failure/pause: sleeps")
		r = newRig(t, store, w, file) // another worker
		store.Shift(time.Hour)
		r.want(r.pass(run.ID), semel.RunHeld, "w.yaml:5: step charge failed after 2 attempts, nothing happened: closed")
		told := []string{`{"first":{},"step":"charge","text":"step charge failed after 2 attempts, nothing happened: closed"}`}
		w.wants(t, "mail.ops", told...)
		w.say("payments.charge", refuses("still closed"))
		r.want(r.retry(run.ID), semel.RunWaiting, "attempt 2 of 2")
		store.Shift(time.Minute + time.Second)
		r.want(r.pass(run.ID), semel.RunHeld, "still closed")
		w.say("payments.charge", nil)
		r.want(r.retry(run.ID), semel.RunCompleted)
		w.wants(t, "mail.ops", told...)
		w.wants(t, "mail.send", `{"text":"done"}`, `{"text":"hello"}`)
		if n := w.asked("payments.charge"); n != 5 || len(w.seen("payments.charge")) != 1 {
			t.Errorf("%d charges asked for, want 5 and 1 effect", n)
		}
	})
}

// TestUnknownIsNoFailure: on_failure does not run, and ask goes straight to a
// person where the contract would look.
func TestUnknownIsNoFailure(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := newTown()
		w.say("stock.reserve", loses(9, nil))
		store := open()
		r := newRig(t, store, w, workflow(t, `
inputs: {sku: {type: string}}
owner: stock-ops
steps:
  - {id: looked, uses: stock.reserve, with: {sku: "${{ inputs.sku }}"}, effect: {kind: creates, key: "a-${{ inputs.sku }}"}, timeout: 7s}
  - {id: asked, uses: stock.reserve, with: {sku: "${{ inputs.sku }}"}, effect: {key: "b-${{ inputs.sku }}", on_unknown: ask, on_failed: return}}
  - {id: end, uses: mail.send, with: {looked: "${{ steps.looked.result.id }}", asked: "${{ steps.asked.result.id }}"}}
on_failure: [{id: tell, uses: mail.ops}]
`))
		run := r.start("a", `{"sku":"s"}`)
		for range 5 {
			store.Shift(time.Minute)
			run = r.pass(run.ID)
		}
		r.want(run, semel.RunHeld, "step asked: outcome unknown")
		looked, asked := r.operation(run.ID, "looked"), r.operation(run.ID, "asked")
		if c := looked.Contract; c.Owner != "stock-ops" || c.Timeout != 7*time.Second || c.Effect != semel.Creates || !c.CanLookUp || looked.Key != "a-s" {
			t.Errorf("operation %s has the contract %+v", looked.Key, c)
		}
		if c := asked.Contract; c.Protection != semel.Unprotected || c.CanLookUp || c.OnFailed != semel.ReturnFailed {
			t.Errorf("operation %s has the contract %+v", asked.Key, c)
		}
		settled := engine.Settlement{Happened: true, By: "ann", Reason: "seen", Result: &semel.Result{Body: []byte(`{"id":"by hand"}`)}}
		if _, err := r.e.Settle(t.Context(), asked.ID, settled); err != nil {
			t.Fatal(err)
		}
		r.want(r.pass(run.ID), semel.RunCompleted)
		w.wants(t, "mail.send", `{"asked":"by hand","looked":"found"}`)
		w.wants(t, "mail.ops")
		if w.asked("stock.reserve") != 2 {
			t.Errorf("%d requests, want 2", w.asked("stock.reserve"))
		}
	})
}

func TestWaitsAndSleeps(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w, store := newTown(), open()
		r := newRig(t, store, w, workflow(t, `
inputs: {order: {type: integer}, pause: {type: string, default: 2h}}
steps:
  - {id: pause, sleep: {for: "${{ inputs.pause }}"}}
  - {id: paid, wait: {event: paid, match: "${{ inputs.order }}", timeout: 24h}}
  - {id: note, if: steps.paid.result != null, uses: mail.send, with: {got: "${{ steps.paid.result }}"}}
  - {id: remind, if: steps.paid.result == null, uses: mail.send, with: {remind: "${{ inputs.order }}"}}
  - {id: over, sleep: {until: "2020-01-31T09:00:00Z"}}
`))
		a, b := r.start("a", `{"order":9007199254740993}`), r.start("b", `{"order":2}`)
		r.want(a, semel.RunWaiting, "step pause: sleeps")
		r.send("e1", "paid", "9007199254740993", `{"amount":0.10}`)
		store.Shift(2 * time.Hour)
		r.want(r.pass(a.ID), semel.RunCompleted)
		r.want(r.pass(b.ID), semel.RunWaiting, "paid 2")
		w.wants(t, "mail.send", `{"got":{"data":{"amount":0.10},"id":"e1","name":"paid"}}`)
		store.Shift(25 * time.Hour)
		r.want(r.pass(b.ID), semel.RunCompleted)
		w.wants(t, "mail.send", `{"got":{"data":{"amount":0.10},"id":"e1","name":"paid"}}`, `{"remind":2}`)
		r.want(r.start("c", `{"order":3,"pause":"1000000h"}`), semel.RunFailed, "w.yaml:5: step pause: ", "is not from 0 to 100 years")
		r.want(r.start("d", `{"order":3,"pause":"soon"}`), semel.RunFailed, "w.yaml:5: step pause: w.yaml:5:30: \"soon\" is not a duration")
	})
}

func TestRunOfAnEvent(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w, store := newTown(), open()
		r := newRig(t, store, w, workflow(t, `
on: {event: {name: contact.added}}
inputs: {contact: {type: object, default: "${{ event.data.contact }}"}}
steps: [{id: mail, uses: mail.send, with: {to: "${{ inputs.contact }}", by: "${{ event.id }} ${{ event.name }}"}, effect: {key: "${{ event.id }}"}}]
`))
		r.send("e7", "contact.added", "", `{"contact":{"id":12345678901234567890},"more":1}`)
		r.send("e8", "contact.added", "", `{"more":1}`)
		if _, err := r.w.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.wants(t, "mail.send", `{"by":"e7 contact.added","to":{"id":12345678901234567890}}`)
		run, err := store.FindRun(t.Context(), "w", "event/contact.added/e8")
		if err != nil {
			t.Fatal(err)
		}
		r.want(run, semel.RunFailed, "w.yaml: nothing was done: default of input contact: w.yaml:4:", "no such key: contact")
	})
}

const publishing = `
inputs: {text: {type: string}, big: {type: boolean, default: false}}
steps:
  - {id: ask, if: "!inputs.big", approve: {step: publish, by: editors, timeout: 1h}}
  - {id: publish, uses: payments.publish, with: {text: "${{ inputs.text }}"}}
  - {id: announce, uses: mail.send, approve: {valid: 1h}, with: {by: "${{ steps.ask.result.by }}"}, effect: {key: "announce-${{ inputs.text }}"}}
on_failure: [{id: tell, uses: mail.ops, with: {step: "${{ failure.step }}"}}]
`

func TestApprovals(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w, store := newTown(), open()
		r := newRig(t, store, w, workflow(t, publishing))
		decide := func(run semel.Run, path string, state semel.ApprovalState) semel.Run {
			t.Helper()
			n := 0
			for a, err := range store.Approvals(t.Context(), run.ID, semel.ApprovalPending) {
				if err != nil || a.Path != path {
					t.Fatalf("approval of %s, %v; want %s", a.Path, err, path)
				}
				if _, err := store.Decide(t.Context(), a.ID, semel.Decision{State: state, By: "ann", Reason: "read", Digest: a.Digest}); err != nil {
					t.Fatal(err)
				}
				n++
			}
			if n != 1 {
				t.Fatalf("%d approvals are asked for, want 1", n)
			}
			return r.pass(run.ID)
		}
		run := r.start("a", `{"text":"x"}`)
		r.want(run, semel.RunWaiting, "step ask: waits for approval")
		run = decide(run, "ask", semel.ApprovalGiven)
		r.want(run, semel.RunWaiting, "step approve-announce: waits for approval")
		w.wants(t, "payments.publish", `{"text":"x"}`)
		w.wants(t, "mail.send")
		r.want(decide(run, "approve-announce", semel.ApprovalGiven), semel.RunCompleted)
		w.wants(t, "mail.send", `{"by":"ann"}`)
		run = r.start("b", `{"text":"y"}`)
		r.want(decide(run, "ask", semel.ApprovalRejected), semel.RunFailed, "w.yaml:5: step ask: step publish: it was not approved: rejected by ann")
		run = r.start("c", `{"text":"z"}`)
		store.Shift(2 * time.Hour)
		r.want(r.pass(run.ID), semel.RunFailed, "w.yaml:5: step ask: approval of step publish: it did not come in time")
		w.wants(t, "payments.publish", `{"text":"x"}`)
		w.wants(t, "mail.ops", `{"step":"ask"}`, `{"step":"ask"}`)
	})
}

// TestBadInputsDoNothing: what New does not see, the run does.
func TestBadInputsDoNothing(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := newTown()
		file := workflow(t, `
inputs: {count: {type: integer}, day: {type: string, format: date, default: "${{ run.key }}"}}
steps: [{id: mail, uses: mail.send, with: {day: "${{ inputs.day }}"}}]
on_failure: [{id: tell, uses: mail.ops}]
`)
		r := newRig(t, open(), w, file)
		for inputs, want := range map[string]string{
			`{}`:                           "inputs.count is missing",
			`{"count":1,"dya":"x"}`:        "inputs.dya is unknown: did you mean day?",
			`{"count":"1"}`:                "inputs.count is not of type integer",
			`{"count":1,"day":"tomorrow"}`: "inputs.day is not a date",
			`[]`:                           "inputs are not a JSON object",
			`{"count":1} {}`:               "inputs are not a JSON object",
		} {
			if _, err := file.New("a", []byte(inputs)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", inputs, err, want)
			}
		}
		r.want(r.start("not a date", `{"count":1}`), semel.RunFailed, "w.yaml: nothing was done: inputs.day is not a date")
		r.want(r.start("2027-01-31", `{"count":1}`), semel.RunCompleted)
		bad := semel.NewRun{Workflow: "w", Version: 1, Definition: file.Digest, Key: "b", Input: []byte(`{"count":true}`)}
		run, _, err := r.e.Start(t.Context(), bad)
		if err != nil {
			t.Fatal(err)
		}
		r.want(r.pass(run.ID), semel.RunFailed, "w.yaml: nothing was done: inputs.count is not of type integer: give a value of this type")
		w.wants(t, "mail.send", `{"day":"2027-01-31"}`)
		w.wants(t, "mail.ops")
	})
}

// TestFailuresNameTheirPlace: expressions and actions that fail at run time.
func TestFailuresNameTheirPlace(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := newTown()
		w.say("stock.list", says(`{"rows":[{"id":"a[b"},{"id":"c"}],"price":0.10,"word":"x"}`))
		store := open()
		for step, want := range map[string]string{
			`uses: mail.send, with: {v: "${{ steps.q.result.nothing }}"}`:                                                            "w.yaml:5: step s: w.yaml:5:45: steps.q.result.nothing: no such key: nothing",
			`if: steps.q.result.word, uses: mail.send`:                                                                               "w.yaml:5: step s: w.yaml:5:17: steps.q.result.word is not true or false",
			`uses: mail.send, effect: {key: "k-${{ steps.q.result.price }}"}`:                                                        "w.yaml:5: step s: w.yaml:5:51: steps.q.result.price is not a text with content or an integer, so it cannot be a key",
			`uses: mail.send, with: {v: refused}`:                                                                                    "w.yaml:5: step s: with is refused",
			`each: {in: steps.q.result.word, as: x, key: x}, steps: [{id: t, sleep: {for: 1s}}]`:                                     "w.yaml:5: step s: w.yaml:5:24: steps.q.result.word is not a list",
			`each: {in: steps.q.rows, as: x, key: x.id}, steps: [{id: t, sleep: {for: 1s}}]`:                                         `w.yaml:5: step s: key of item 1 of s cannot be used: step name "a[b" contains "["`,
			`each: {in: "steps.q.rows + steps.q.rows", as: x, key: "'k-' + string(size(x.id))"}, steps: [{id: t, sleep: {for: 1s}}]`: "w.yaml:5: step s: each s has two items with the key",
			`wait: {event: x, match: "${{ steps.q.rows }}"}`:                                                                         "w.yaml:5: step s: w.yaml:5:42: steps.q.rows is not a text with content",
			`sleep: {until: "${{ steps.q.result.word }}"}`:                                                                           "w.yaml:5: step s: w.yaml:5:28: \"x\" is not a point in time",
		} {
			r := newRig(t, store, w, workflow(t, "\nsteps:\n  - {id: q, uses: stock.list}\n  - {id: s, "+step+"}\n"))
			run := r.start(semel.Key(step[:20]+want[len(want)-20:]), "")
			r.want(run, semel.RunFailed, want)
		}
		if len(w.requests) != 9 {
			t.Errorf("%d requests, want the reads alone", len(w.requests))
		}
	})
}

// TestAnswers: JSON keeps its digits, a text is a text, and one that cannot be
// read holds the run without another request.
func TestAnswers(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		store := open()
		for name, test := range map[string]struct {
			ev         semel.Event
			want, held string
		}{
			"exact":      {ev: confirmed("application/json", `{"n":9007199254740993,"d":0.10,"e":1e2}`), want: `{"d":0.10,"e":1e2,"n":9007199254740993}`},
			"text":       {ev: confirmed("text/plain", "ok\n"), want: `"ok\n"`},
			"undeclared": {ev: confirmed("", "[1.0]"), want: `[1.0]`},
			"nothing":    {ev: semel.Event{Kind: semel.EvConfirmed}, want: `null`},
			"not JSON":   {ev: confirmed("application/problem+json; charset=utf-8", "<html>"), held: "step s happened, but its answer cannot be read"},
			"two":        {ev: confirmed("application/json", "{} {}"), held: "there is more after its value"},
			"no text":    {ev: confirmed("", "\xff"), held: "step s happened, but its answer cannot be read"},
			"cut":        {ev: semel.Event{Kind: semel.EvConfirmed, Result: &semel.Result{Body: []byte(`{}`), Size: 1 << 20}}, held: "kept only in part"},
		} {
			for _, action := range []string{"payments.charge", "stock.list"} {
				w := newTown()
				w.say(action, func(int, string) (semel.Event, bool) { return test.ev, true })
				r := newRig(t, store, w, workflow(t, `
steps: [{id: s, uses: `+action+`}, {id: t, sleep: {for: 1s}}, {id: m, uses: mail.send, with: {r: "${{ steps.s.result }}"}}]
on_failure: [{id: tell, uses: mail.ops}]
`))
				run := r.start(semel.Key(name+action), "")
				if test.held != "" {
					r.want(run, semel.RunHeld, "w.yaml:3: ", test.held)
					w.wants(t, "mail.ops")
				} else {
					store.Shift(2 * time.Second)
					r.want(r.pass(run.ID), semel.RunCompleted)
					w.wants(t, "mail.send", `{"r":`+test.want+`}`)
				}
				if w.asked(action) != 1 {
					t.Errorf("%s: %d requests, want 1", name, w.asked(action))
				}
				wantsClaim(r, run, action != "stock.list")
			}
		}
	})
}

// wantsClaim: what acts has an operation, and what reads has none.
func wantsClaim(r *rig, run semel.Run, want bool) {
	r.Helper()
	steps, err := r.store.Steps(r.Context(), run.ID)
	if err != nil {
		r.Fatal(err)
	}
	for _, s := range steps {
		if s.Path == "s" && (s.Operation != semel.ID{}) != want {
			r.Errorf("operation %s of step s, want one: %t", s.Operation, want)
		}
	}
}

// TestDefinitionForAWorker has what the store and the engine need.
func TestDefinitionForAWorker(t *testing.T) {
	d := billing(t).Workflow(newTown())
	want := []semel.Schedule{{Cron: "0 2 * * *", Zone: "Europe/Berlin", Missed: "once"}}
	if d.Name != "nightly_billing" || d.Version != 1 || d.Owner != "billing-ops" || d.Digest == "" || !slices.Equal(d.Events, nil) || len(d.Schedules) != 1 || d.Schedules[0].Cron != want[0].Cron {
		t.Errorf("got %+v", d)
	}
}
