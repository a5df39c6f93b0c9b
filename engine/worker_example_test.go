package engine_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

// Any number of workers may share a database. A run goes on with another one
// where this one stops.
func ExampleNewWorker() {
	guard, _, stop := start(engine.Options{})
	defer stop()
	lost := false
	pay := bank(&lost)
	payout := semel.Workflow[transfer]{
		Name: "payout", Owner: "treasury",
		Key:     func(t transfer) string { return "payout-" + t.ID },
		Actions: []semel.Definition{pay.Definition()},
		Func: func(ctx semel.Context, t transfer) error {
			ref, err := semel.Do(ctx, pay, t)
			return errors.Join(err, ctx.Return(ref))
		},
	}

	ctx, end := context.WithTimeout(context.Background(), time.Minute)
	defer end()
	worker, err := engine.NewWorker(ctx, guard, engine.WorkerOptions{Workflows: []semel.WorkflowDefinition{payout.Definition()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()

	for range 2 { // the second is the same run
		n, err := payout.New("", transfer{ID: "4417", Cents: 100})
		if err != nil {
			fmt.Println(err)
			return
		}
		run, existing, err := worker.Start(ctx, n)
		if err != nil {
			fmt.Println(err)
			return
		}
		run, err = guard.Await(ctx, run.ID)
		fmt.Println(existing, run.State, string(run.Result), err)
	}
	end()
	fmt.Println(<-ended)
	// Output:
	// false completed "tr_4417" <nil>
	// true completed "tr_4417" <nil>
	// context canceled
}
