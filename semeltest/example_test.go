package semeltest_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/semeltest"
)

func ExampleNew() {
	t := &stub{} // the *testing.T of a test
	defer t.end()
	billing := workflow(func(ctx semel.Context, in invoice) error {
		_, err := semel.Do(ctx, charge, in)
		return err
	})

	w := semeltest.New(t, billing.Definition())
	w.On("charge", semeltest.LostAfter(charged{"ch_1"}), semeltest.Completed(nil))
	run := w.Run(billing.New("", invoice{ID: "4417", Cents: 1200}))
	fmt.Println(run.State, "after", len(w.Requests("charge")), "requests, charged", len(w.Effects("charge")), "time")
	// Output:
	// completed after 2 requests, charged 1 time
}

func ExampleWorld_OnKey() {
	t := &stub{}
	defer t.end()
	billing := workflow(func(ctx semel.Context, _ invoice) error {
		return semel.Each(ctx, "invoices", []invoice{{ID: "a"}, {ID: "b"}}, func(i invoice) string { return i.ID }, 2,
			func(ctx semel.Context, i invoice) error { _, err := semel.Do(ctx, charge, i); return err })
	})

	w := semeltest.New(t, billing.Definition())
	w.OnKey("charge", "b", semeltest.Refused("card declined"))
	run := w.Run(billing.New("", one))
	fmt.Println(run.State, len(w.Effects("charge")))
	fmt.Println(w.Step(run, "invoices[b]/charge").Effect.State.Words())
	// Output:
	// failed 1
	// failed, nothing happened
}

func ExampleWorld_Advance() {
	t := &stub{}
	defer t.end()
	billing := workflow(func(ctx semel.Context, in invoice) error {
		if err := semel.Sleep(ctx, "due", 14*24*time.Hour); err != nil {
			return err
		}
		_, err := semel.Do(ctx, charge, in)
		return err
	})

	w := semeltest.New(t, billing.Definition())
	w.Start(billing.New("", one))
	for range 2 {
		w.Advance(7*24*time.Hour + time.Minute)
		fmt.Println(w.Now().Format(time.DateOnly), len(w.Effects("charge")))
	}
	// Output:
	// 2040-01-08 0
	// 2040-01-15 1
}

func ExampleWorld_Send() {
	t := &stub{}
	defer t.end()
	billing := workflow(func(ctx semel.Context, in invoice) error {
		paid, err := semel.Wait[charged](ctx, "paid", in.ID, 24*time.Hour)
		return errors.Join(err, ctx.Return(paid))
	})

	w := semeltest.New(t, billing.Definition())
	run := w.Run(billing.New("", one))
	fmt.Println(run.State)
	w.Send("paid", "4417", charged{"p_1"})
	run = w.Await(run)
	fmt.Println(run.State, string(run.Result))
	// Output:
	// waiting
	// completed {"id":"p_1"}
}

func ExampleWorld_Approve() {
	t := &stub{}
	defer t.end()
	billing := workflow(func(ctx semel.Context, in invoice) error {
		if err := semel.Approve(ctx, charge, in, semel.Ask{Of: "treasury"}); err != nil {
			return err
		}
		_, err := semel.Do(ctx, charge, in)
		return err
	})

	w := semeltest.New(t, billing.Definition())
	run := w.Run(billing.New("", one))
	fmt.Println(run.State, len(w.Requests("charge")))
	w.Approve(run)
	fmt.Println(w.Await(run).State, len(w.Requests("charge")))
	// Output:
	// waiting 0
	// completed 1
}

func ExampleWorld_Happened() {
	t := &stub{}
	defer t.end()
	billing := workflow(func(ctx semel.Context, in invoice) error {
		_, err := semel.Do(ctx, mail, in)
		return err
	})

	w := semeltest.New(t, billing.Definition())
	w.On("mail", semeltest.LostAfter(nil))
	run := w.Run(billing.New("", one))
	fmt.Println(run.State, "-", w.Step(run, "mail").Effect.State)
	w.Happened(run, "mail", nil)
	fmt.Println(w.Await(run).State, len(w.Requests("mail")))
	// Output:
	// held - unknown
	// completed 1
}

func ExampleWorld_Change() {
	t := &stub{}
	defer t.end()
	billing := workflow(func(ctx semel.Context, in invoice) error {
		_, err := semel.Retrying(ctx, charge, in, semel.Retry{Attempts: 2})
		return err
	})

	w := semeltest.New(t, billing.Definition())
	w.On("charge", semeltest.Refused("closed on Sundays"), semeltest.Refused("closed on Sundays"), semeltest.Completed(nil))
	run := w.Run(billing.New("", one))
	fmt.Println(run.State)
	w.Change(run, semel.RetryRun)
	fmt.Println(w.Await(run).State)
	// Output:
	// held
	// completed
}

func ExampleWorld_Restart() {
	t := &stub{}
	defer t.end()
	before := workflow(func(ctx semel.Context, in invoice) error {
		_, err := semel.Do(ctx, charge, in)
		return errors.Join(err, semel.Sleep(ctx, "rest", time.Hour))
	})
	after := workflow(func(ctx semel.Context, in invoice) error {
		_, err := semel.Do(ctx, mail, in) // before the charge
		return err
	})

	w := semeltest.New(t, before.Definition())
	run := w.Start(before.New("", one))
	w.Advance(time.Minute)
	w.Restart(after.Definition())
	run = w.Await(run)
	fmt.Println(run.State, len(w.Requests("mail")))
	// Output:
	// held 0
}
