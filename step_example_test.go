package semel_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/semeltest"
)

// bill is the input of the workflows of these examples.
type bill struct {
	ID    string `json:"id"`
	Cents int64  `json:"cents"`
}

var chargeBill = semel.Action[bill, string]{
	Name: "charge", Owner: "billing",
	Key: func(b bill) string { return "bill-" + b.ID + "-charge" },
	Send: semel.Perform(semel.Contract{Protection: semel.Keyed, Window: 24 * time.Hour, Timeout: 10 * time.Second},
		func(context.Context, *semel.Send, bill) (string, error) { return "", nil }), // semeltest answers in its place
}

// billing is a workflow with this function.
func billing(fn func(semel.Context, bill) error) semel.Workflow[bill] {
	return semel.Workflow[bill]{
		Name: "billing", Owner: "billing", Key: func(b bill) string { return b.ID },
		Actions: []semel.Definition{chargeBill.Definition()}, Func: fn,
	}
}

var bill4417 = bill{ID: "4417", Cents: 1200}

// stage is the testing.TB of an example, which has no test.
type stage struct {
	testing.TB
	ends []func()
}

func (s *stage) Helper()                   {}
func (s *stage) Output() io.Writer         { return io.Discard }
func (s *stage) Cleanup(fn func())         { s.ends = append(s.ends, fn) }
func (s *stage) Errorf(f string, a ...any) { fmt.Printf(f+"\n", a...) }
func (s *stage) Fatalf(f string, a ...any) { s.Errorf(f, a...); runtime.Goexit() }
func (s *stage) TempDir() string {
	dir, err := os.MkdirTemp("", "semel")
	if err != nil {
		panic(err)
	}
	s.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// play makes a world for workflows, and says how to end it.
func play(workflows ...semel.WorkflowDefinition) (w *semeltest.World, end func()) {
	s := &stage{}
	return semeltest.New(s, workflows...), func() {
		for _, fn := range slices.Backward(s.ends) {
			fn()
		}
	}
}

// The answer is lost. That is no error for the code: the run waits until the
// outcome is known, and "if it failed, pay another way" is not reached.
func ExampleDo() {
	w := billing(func(ctx semel.Context, b bill) error {
		ref, err := semel.Do(ctx, chargeBill, b)
		if err != nil { // known: nothing was charged
			fmt.Println("pay another way")
			return err
		}
		return ctx.Return(ref)
	})
	world, end := play(w.Definition())
	defer end()
	world.On("charge", semeltest.LostAfter("ch_1"), semeltest.Completed(nil))

	run := world.Run(w.New("", bill4417))
	fmt.Println(run.State, string(run.Result))
	fmt.Println(len(world.Requests("charge")), "requests,", len(world.Effects("charge")), "charge")
	// Output:
	// completed "ch_1"
	// 2 requests, 1 charge
}

func ExampleRetrying() {
	w := billing(func(ctx semel.Context, b bill) error {
		_, err := semel.Retrying(ctx, chargeBill, b, semel.Retry{Attempts: 3, Backoff: time.Minute})
		return err
	})
	world, end := play(w.Definition())
	defer end()
	world.On("charge", semeltest.Refused("closed"), semeltest.Refused("closed"), semeltest.Completed(nil))

	fmt.Println(world.Run(w.New("", bill4417)).State)
	fmt.Println(len(world.Requests("charge")), "requests,", len(world.Effects("charge")), "charge")
	// Output:
	// completed
	// 3 requests, 1 charge
}

// A run that sleeps is a row, and no worker holds it.
func ExampleSleep() {
	w := billing(func(ctx semel.Context, b bill) error {
		if err := semel.Sleep(ctx, "due", 14*24*time.Hour); err != nil {
			return err
		}
		_, err := semel.Do(ctx, chargeBill, b)
		return err
	})
	world, end := play(w.Definition())
	defer end()

	run := world.Start(w.New("", bill4417))
	world.Advance(13 * 24 * time.Hour)
	fmt.Println(len(world.Effects("charge")))
	fmt.Println(world.Await(run).State, len(world.Effects("charge")))
	// Output:
	// 0
	// completed 1
}

// An event that came before the wait counts, and the time ends for lack of one.
func ExampleWait() {
	w := billing(func(ctx semel.Context, b bill) error {
		paid, err := semel.Wait[string](ctx, "paid", b.ID, 24*time.Hour)
		if errors.Is(err, semel.ErrTimedOut) {
			paid, err = semel.Do(ctx, chargeBill, b)
		}
		return errors.Join(err, ctx.Return(paid))
	})
	world, end := play(w.Definition())
	defer end()
	world.On("charge", semeltest.Completed("ch_1"))
	world.Send("paid", "4417", "by transfer")

	run := world.Run(w.New("", bill4417))
	fmt.Println(run.State, string(run.Result))
	run = world.Start(w.New("", bill{ID: "4418"}))
	world.Advance(25 * time.Hour)
	run = world.Await(run)
	fmt.Println(run.State, string(run.Result))
	// Output:
	// completed "by transfer"
	// completed "ch_1"
}

// A person approves one exact request; another amount is not covered.
func ExampleApprove() {
	w := billing(func(ctx semel.Context, b bill) error {
		if err := semel.Approve(ctx, chargeBill, b, semel.Ask{Of: "treasury", Valid: time.Hour}); err != nil {
			return err // rejected, or nobody decided in time: nothing was sent
		}
		b.Cents += b.Cents / 10
		_, err := semel.Do(ctx, chargeBill, b)
		return err
	})
	world, end := play(w.Definition())
	defer end()

	run := world.Run(w.New("", bill4417))
	fmt.Println(run.State)
	world.Approve(run)
	fmt.Println(world.Await(run).State, len(world.Requests("charge")))
	// Output:
	// waiting
	// held 0
}

// One bill is refused, and the others are charged. A retry repeats none of them.
func ExampleEach() {
	w := billing(func(ctx semel.Context, b bill) error {
		bills := []bill{{ID: b.ID + "-1"}, {ID: b.ID + "-2"}, {ID: b.ID + "-3"}}
		return semel.Each(ctx, "bills", bills, func(b bill) string { return b.ID }, 2, func(ctx semel.Context, b bill) error {
			_, err := semel.Do(ctx, chargeBill, b)
			return err
		})
	})
	world, end := play(w.Definition())
	defer end()
	world.OnKey("charge", "bill-4417-2-charge", semeltest.Refused("card declined"), semeltest.Completed(nil))

	run := world.Run(w.New("", bill4417))
	fmt.Println(run.State, len(world.Effects("charge")))
	world.Change(run, semel.RetryRun)
	fmt.Println(world.Await(run).State, len(world.Effects("charge")))
	// Output:
	// failed 2
	// completed 3
}

func ExampleParallel() {
	w := billing(func(ctx semel.Context, b bill) error {
		return semel.Parallel(ctx, "both", map[string]func(semel.Context) error{
			"charge": func(ctx semel.Context) error { _, err := semel.Do(ctx, chargeBill, b); return err },
			"cool":   func(ctx semel.Context) error { return semel.Sleep(ctx, "off", time.Hour) },
		})
	})
	world, end := play(w.Definition())
	defer end()

	run := world.Run(w.New("", bill4417))
	fmt.Println(run.State, world.Step(run, "both[charge]/charge").Effect.State)
	// Output:
	// completed completed
}

// Two parents that ask for one intention share its run.
func ExampleChild() {
	charging := billing(func(ctx semel.Context, b bill) error {
		ref, err := semel.Do(ctx, chargeBill, b)
		return errors.Join(err, ctx.Return(ref))
	})
	order := semel.Workflow[bill]{Name: "order", Func: func(ctx semel.Context, b bill) error {
		ended, err := semel.Child(ctx, charging, semel.Key(b.ID), b)
		if err != nil {
			return err // a *ChildError: it failed or was cancelled
		}
		var ref string
		return errors.Join(ended.Into(&ref), ctx.Return(ref))
	}}
	world, end := play(charging.Definition(), order.Definition())
	defer end()
	world.On("charge", semeltest.Completed("ch_1"))

	for _, key := range []semel.Key{"monday", "tuesday"} {
		run := world.Run(order.New(key, bill4417))
		fmt.Println(run.State, string(run.Result))
	}
	fmt.Println(len(world.Effects("charge")), "charge")
	// Output:
	// completed "ch_1"
	// completed "ch_1"
	// 1 charge
}

// The function runs again after the sleep. What it computed before stays.
func ExampleCompute() {
	price := int64(1200)
	w := billing(func(ctx semel.Context, b bill) error {
		cents, err := semel.Compute(ctx, "price", func() (int64, error) { return price, nil })
		if err != nil {
			return err
		}
		if err := semel.Sleep(ctx, "rest", time.Hour); err != nil {
			return err
		}
		return ctx.Return(cents)
	})
	world, end := play(w.Definition())
	defer end()

	run := world.Start(w.New("", bill4417))
	world.Advance(time.Minute)
	price = 9900
	fmt.Println(string(world.Await(run).Result))
	// Output:
	// 1200
}

// Time and chance are recorded, too.
func ExampleNow() {
	var now []time.Time
	w := billing(func(ctx semel.Context, _ bill) error {
		t, err := semel.Now(ctx, "began")
		if err != nil {
			return err
		}
		now = append(now, t)
		return semel.Sleep(ctx, "rest", time.Hour)
	})
	world, end := play(w.Definition())
	defer end()

	world.Run(w.New("", bill4417))
	fmt.Println(len(now), "executions, one time:", now[0].Equal(now[1]))
	// Output:
	// 2 executions, one time: true
}

func ExampleRandom() {
	var drawn []float64
	w := billing(func(ctx semel.Context, _ bill) error {
		x, err := semel.Random(ctx, "draw")
		if err != nil {
			return err
		}
		drawn = append(drawn, x)
		return semel.Sleep(ctx, "rest", time.Hour)
	})
	world, end := play(w.Definition())
	defer end()

	world.Run(w.New("", bill4417))
	fmt.Println(len(drawn), "executions, one number:", drawn[0] == drawn[1])
	// Output:
	// 2 executions, one number: true
}
