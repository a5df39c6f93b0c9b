package semeltest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/semeltest"
)

func TestARunCompletes(t *testing.T) {
	billing := workflow(func(ctx semel.Context, in invoice) error {
		c, err := semel.Do(ctx, charge, in)
		if err != nil {
			return err
		}
		return ctx.Return(c)
	})
	w := semeltest.New(t, billing.Definition())
	w.On("charge", semeltest.Completed(charged{"ch_1"}))
	run := w.Run(billing.New("", one))
	wantRun(t, run, semel.RunCompleted)
	wantCount(t, w, "charge", 1, 1)
	if got := string(run.Result); got != `{"id":"ch_1"}` {
		t.Errorf("result %s", got)
	}
	sent := w.Requests("charge")[0]
	if got := string(sent.Request.Body); got != `{"id":"4417","cents":1200}` {
		t.Errorf("body %s", got)
	}
	if sent.Key != "4417" || sent.Attempt != 1 || !sent.Happened || sent.At.Year() != 2040 {
		t.Errorf("sent %+v", sent)
	}
	again := w.Run(billing.New("", one))
	if again.ID != run.ID || len(w.Runs()) != 1 {
		t.Errorf("started twice: %v, %v", run.ID, again.ID)
	}
	wantCount(t, w, "charge", 1, 1)
}

func TestAnUnscriptedActionAnswersTheZeroValue(t *testing.T) {
	count := semel.Action[invoice, int]{
		Name: "count", Key: func(i invoice) string { return i.ID },
		Send: semel.Effect[invoice, int]{Contract: keyed, Destination: charge.Send.Destination},
	}
	billing := workflow(func(ctx semel.Context, in invoice) error {
		n, err := semel.Do(ctx, count, in)
		return errors.Join(err, ctx.Return(n))
	})
	w := semeltest.New(t, billing.Definition())
	run := w.Run(billing.New("", one))
	wantRun(t, run, semel.RunCompleted)
	if got := string(run.Result); got != "0" {
		t.Errorf("result %s", got)
	}
}

func TestLostAnswers(t *testing.T) {
	tests := map[string]struct {
		action            semel.Action[invoice, charged]
		answers           []semeltest.Answer
		state             semel.RunState
		id                string
		requests, effects int
	}{
		"keyed, effect": {
			charge,
			[]semeltest.Answer{semeltest.LostAfter(charged{"ch_1"}), semeltest.Completed(charged{"ch_2"})},
			semel.RunCompleted, "ch_1", 2, 1,
		},
		"keyed, no effect": {
			charge,
			[]semeltest.Answer{semeltest.LostBefore(), semeltest.Completed(charged{"ch_2"})},
			semel.RunCompleted, "ch_2", 2, 1,
		},
		"keyed, never an answer": {charge, []semeltest.Answer{semeltest.LostAfter(nil)}, semel.RunHeld, "", semel.DefaultAttempts, 1},
		"lookup, effect": {
			order,
			[]semeltest.Answer{semeltest.LostAfter(charged{"or_1"}), semeltest.Completed(charged{"or_2"})},
			semel.RunCompleted, "or_1", 1, 1,
		},
		"lookup, no effect": {order, []semeltest.Answer{semeltest.LostBefore(), semeltest.Completed(charged{"or_2"})}, semel.RunCompleted, "or_2", 2, 1},
		"unprotected":       {mail, []semeltest.Answer{semeltest.LostAfter(nil)}, semel.RunHeld, "", 1, 1},
		"commutes":          {tag, []semeltest.Answer{semeltest.LostAfter(charged{"t"}), semeltest.LostAfter(nil), semeltest.Completed(nil)}, semel.RunCompleted, "t", 3, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			billing := workflow(func(ctx semel.Context, in invoice) error {
				c, err := semel.Do(ctx, test.action, in)
				return errors.Join(err, ctx.Return(c.ID))
			})
			w := semeltest.New(t, billing.Definition())
			w.On(test.action.Name, test.answers...)
			run := w.Run(billing.New("", one))
			wantRun(t, run, test.state)
			wantCount(t, w, test.action.Name, test.requests, test.effects)
			if got, want := string(run.Result), `"`+test.id+`"`; test.state == semel.RunCompleted && got != want {
				t.Errorf("result %s, want %s", got, want)
			}
		})
	}
}

func TestRefusedIsAnErrorThatMayBeTriedAgain(t *testing.T) {
	retry := semel.Retry{Attempts: 3, Backoff: time.Hour}
	billing := workflow(func(ctx semel.Context, in invoice) error {
		_, err := semel.Retrying(ctx, charge, in, retry)
		return err
	})
	w := semeltest.New(t, billing.Definition())
	w.On("charge", semeltest.Refused("card declined"))
	began := w.Now()
	run := w.Run(billing.New("", one))
	wantRun(t, run, semel.RunHeld, "after 3 attempts", "card declined")
	wantCount(t, w, "charge", 3, 0)
	if d := w.Now().Sub(began).Round(time.Minute); d < 2*time.Hour {
		t.Errorf("three attempts took %v", d)
	}
	w.On("charge", semeltest.Completed(nil))
	w.Change(run, semel.RetryRun)
	wantRun(t, w.Await(run), semel.RunCompleted)
	wantCount(t, w, "charge", 4, 1)
}

func TestAPersonSettles(t *testing.T) {
	billing := workflow(func(ctx semel.Context, in invoice) error {
		c, err := semel.Do(ctx, mail, in)
		return errors.Join(err, ctx.Return(c.ID))
	})
	t.Run("it happened", func(t *testing.T) {
		w := semeltest.New(t, billing.Definition())
		w.On("mail", semeltest.LostAfter(nil))
		run := w.Run(billing.New("", one))
		wantRun(t, run, semel.RunHeld)
		w.Happened(run, "mail", charged{"m_1"})
		run = w.Await(run)
		wantRun(t, run, semel.RunCompleted)
		if got := string(run.Result); got != `"m_1"` {
			t.Errorf("result %s", got)
		}
		wantCount(t, w, "mail", 1, 1)
	})
	t.Run("it did not happen", func(t *testing.T) {
		w := semeltest.New(t, billing.Definition())
		w.On("mail", semeltest.LostBefore(), semeltest.Completed(charged{"m_2"}))
		run := w.Run(billing.New("", one))
		wantRun(t, run, semel.RunHeld)
		w.DidNotHappen(run, "mail")
		wantRun(t, w.Await(run), semel.RunFailed, "nothing happened")
		w.Change(run, semel.RetryRun)
		wantRun(t, w.Await(run), semel.RunCompleted)
		wantCount(t, w, "mail", 2, 1)
	})
}

func TestEachAndKeys(t *testing.T) {
	items := []invoice{{ID: "1"}, {ID: "2"}, {ID: "3"}}
	billing := workflow(func(ctx semel.Context, _ invoice) error {
		return semel.Each(ctx, "invoices", items, func(i invoice) string { return "n" + i.ID }, 2, func(ctx semel.Context, i invoice) error {
			if _, err := semel.Do(ctx, charge, i); err != nil {
				return err
			}
			return semel.Sleep(ctx, "rest", time.Hour)
		})
	})
	w := semeltest.New(t, billing.Definition())
	w.OnKey("charge", "2", semeltest.LostAfter(charged{"ch_2"}), semeltest.Completed(nil))
	w.OnKey("charge", "3", semeltest.Refused("no"))
	run := w.Run(billing.New("", one))
	wantRun(t, run, semel.RunFailed, "1 of 3 items of invoices failed", "n3")
	wantCount(t, w, "charge", 4, 2)
	if got := w.Step(run, "invoices[n2]/charge").Effect; got.State != semel.Completed || got.Attempt != 2 {
		t.Errorf("operation of item 2: %s at attempt %d", got.State, got.Attempt)
	}
	var paths []string
	for _, s := range w.Steps(run) {
		if s.Kind == semel.StepSleep {
			paths = append(paths, s.Path)
		}
	}
	if len(paths) != 2 {
		t.Errorf("slept: %v", paths)
	}
}

func TestTimePasses(t *testing.T) {
	billing := workflow(func(ctx semel.Context, in invoice) error {
		if err := semel.Sleep(ctx, "a-month", 30*24*time.Hour); err != nil {
			return err
		}
		_, err := semel.Do(ctx, charge, in)
		return err
	})
	w := semeltest.New(t, billing.Definition())
	run := w.Start(billing.New("", one))
	w.Advance(29 * 24 * time.Hour)
	wantCount(t, w, "charge", 0, 0)
	wantRun(t, w.Runs()[0], semel.RunWaiting, "sleeps")
	w.Advance(24 * time.Hour)
	wantRun(t, w.Await(run), semel.RunCompleted)
	at := w.Effects("charge")[0].At
	if want := time.Date(2040, time.January, 31, 0, 0, 0, 0, time.UTC); at.Sub(want).Abs() > time.Minute {
		t.Errorf("charged at %v, want about %v", at, want)
	}
}

func TestEventsComeFromOutside(t *testing.T) {
	billing := workflow(func(ctx semel.Context, in invoice) error {
		got, err := semel.Wait[charged](ctx, "paid", in.ID, 24*time.Hour)
		if errors.Is(err, semel.ErrTimedOut) {
			return ctx.Return("too late")
		}
		return errors.Join(err, ctx.Return(got.ID))
	})
	result := func(run semel.Run) string { return string(run.Result) }
	t.Run("sent", func(t *testing.T) {
		w := semeltest.New(t, billing.Definition())
		run := w.Run(billing.New("", one))
		wantRun(t, run, semel.RunWaiting, "waits for event paid 4417")
		w.Send("paid", "other", nil)
		wantRun(t, w.Await(run), semel.RunWaiting)
		w.Send("paid", "4417", charged{"p_1"})
		if diff := cmp.Diff(`"p_1"`, result(w.Await(run))); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("not sent", func(t *testing.T) {
		w := semeltest.New(t, billing.Definition())
		run := w.Run(billing.New("", one))
		w.Advance(25 * time.Hour)
		if diff := cmp.Diff(`"too late"`, result(w.Await(run))); diff != "" {
			t.Error(diff)
		}
	})
}

func TestApprovals(t *testing.T) {
	billing := workflow(func(ctx semel.Context, in invoice) error {
		if err := semel.Approve(ctx, charge, in, semel.Ask{Of: "treasury", Timeout: time.Hour}); err != nil {
			return err
		}
		_, err := semel.Do(ctx, charge, in)
		return err
	})
	begin := func(t *testing.T) (*semeltest.World, semel.Run) {
		w := semeltest.New(t, billing.Definition())
		run := w.Run(billing.New("", one))
		wantRun(t, run, semel.RunWaiting, "waits for approval")
		wantCount(t, w, "charge", 0, 0)
		return w, run
	}
	t.Run("approved", func(t *testing.T) {
		w, run := begin(t)
		w.Approve(run)
		wantRun(t, w.Await(run), semel.RunCompleted)
		wantCount(t, w, "charge", 1, 1)
	})
	t.Run("rejected", func(t *testing.T) {
		w, run := begin(t)
		w.Reject(run, "too much")
		wantRun(t, w.Await(run), semel.RunFailed, "too much")
		wantCount(t, w, "charge", 0, 0)
	})
}

func TestAChildThatWaitsStopsItsParent(t *testing.T) {
	child := workflow(func(ctx semel.Context, in invoice) error {
		if _, err := semel.Wait[charged](ctx, "paid", in.ID, 0); err != nil {
			return err
		}
		return semel.Sleep(ctx, "rest", time.Hour)
	})
	parent := semel.Workflow[invoice]{Name: "parent", Func: func(ctx semel.Context, in invoice) error {
		_, err := semel.Child(ctx, child, "", in)
		return err
	}}
	w := semeltest.New(t, parent.Definition(), child.Definition())
	run := w.Run(parent.New("p", one))
	wantRun(t, run, semel.RunWaiting, "waits for run")
	w.Send("paid", "4417", nil)
	wantRun(t, w.Await(run), semel.RunCompleted)
}

func TestRestartGoesOn(t *testing.T) {
	steps := func(names ...string) semel.Workflow[invoice] {
		return workflow(func(ctx semel.Context, in invoice) error {
			for _, name := range names {
				if _, err := semel.Do(ctx.Named(name), action(name, keyed), in); err != nil {
					return err
				}
				if err := semel.Sleep(ctx, "after-"+name, time.Hour); err != nil {
					return err
				}
			}
			return nil
		})
	}
	t.Run("unchanged", func(t *testing.T) {
		billing := steps("a", "b")
		w := semeltest.New(t, billing.Definition())
		run := w.Start(billing.New("", one))
		w.Advance(time.Minute)
		w.Restart()
		wantRun(t, w.Await(run), semel.RunCompleted)
		wantCount(t, w, "a", 1, 1)
		wantCount(t, w, "b", 1, 1)
	})
	t.Run("changed code", func(t *testing.T) {
		billing := steps("a", "b")
		w := semeltest.New(t, billing.Definition())
		run := w.Start(billing.New("", one))
		w.Advance(time.Minute)
		changed := steps("b", "a")
		w.Restart(changed.Definition())
		wantRun(t, w.Await(run), semel.RunHeld, "changed code", "step b is new")
		wantCount(t, w, "b", 0, 0)
	})
	t.Run("a lost answer is recovered", func(t *testing.T) {
		billing := steps("a")
		w := semeltest.New(t, billing.Definition())
		w.On("a", semeltest.LostAfter(nil), semeltest.Completed(nil))
		run := w.Start(billing.New("", one))
		w.Advance(0)
		w.Restart()
		wantRun(t, w.Await(run), semel.RunCompleted)
		wantCount(t, w, "a", 2, 1)
	})
}

func TestSchedulesFire(t *testing.T) {
	daily := semel.Workflow[struct{}]{
		Name: "daily", Schedules: []semel.Schedule{{Cron: "@daily", Zone: "UTC"}},
		Func: func(ctx semel.Context, _ struct{}) error {
			_, err := semel.Do(ctx, charge, invoice{ID: ctx.Run().Trigger.Tick.Date})
			return err
		},
	}
	w := semeltest.New(t, daily.Definition())
	w.Advance(3*24*time.Hour + time.Minute)
	var keys []semel.Key
	for _, e := range w.Effects("charge") {
		keys = append(keys, e.Key)
	}
	if diff := cmp.Diff([]semel.Key{"2040-01-02", "2040-01-03", "2040-01-04"}, keys); diff != "" {
		t.Errorf("charges (-want +got):\n%s", diff)
	}
}
