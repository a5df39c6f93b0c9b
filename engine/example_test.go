package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
	"github.com/semel-dev/semel/store/sqlite"
)

type transfer struct {
	ID    string `json:"id"`
	Cents int64  `json:"cents"`
}

// bank is an action whose answers get lost as long as lost is set.
func bank(lost *bool) semel.Action[transfer, string] {
	return semel.Action[transfer, string]{
		Name: "transfer", Owner: "treasury",
		Key: func(t transfer) string { return "transfer-" + t.ID },
		Send: semel.Perform(semel.Contract{Protection: semel.Keyed, Window: 24 * time.Hour, Timeout: 10 * time.Second},
			func(_ context.Context, _ *semel.Send, t transfer) (string, error) {
				if *lost {
					return "", errors.New("connection reset")
				}
				return "tr_" + t.ID, nil
			}),
	}
}

// start opens a database in a directory of its own.
func start(o engine.Options) (*engine.Engine, semel.Store, func()) {
	dir, err := os.MkdirTemp("", "semel")
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	store, err := sqlite.Open(ctx, filepath.Join(dir, "semel.db"), sqlite.Options{Create: true})
	if err != nil {
		panic(err)
	}
	e, err := engine.New(ctx, store, o)
	if err != nil {
		panic(err)
	}
	return e, store, func() {
		_ = e.Close(ctx)
		_ = store.Close()
		_ = os.RemoveAll(dir)
	}
}

func ExampleNew() {
	guard, _, stop := start(engine.Options{})
	defer stop()

	lost := false
	for range 2 {
		done, err := bank(&lost).Do(context.Background(), guard, transfer{"7", 1200})
		if err != nil {
			fmt.Println(err) // this call sent nothing
			return
		}
		id, _ := done.Value()
		fmt.Println(done.Status, id, "replayed:", done.Replayed)
	}
	// Output:
	// completed tr_7 replayed: false
	// completed tr_7 replayed: true
}

func ExampleEngine_Do() {
	guard, _, stop := start(engine.Options{})
	defer stop()

	lost := true
	payment := bank(&lost)
	done, _ := payment.Do(context.Background(), guard, transfer{"8", 500})
	fmt.Println(done.Status, "-", done.Next.Kind)

	lost = false
	done, _ = payment.Do(context.Background(), guard, transfer{"8", 500})
	fmt.Println(done.Status, "at attempt", done.Operation.Attempt)

	done, _ = payment.Do(context.Background(), guard, transfer{"8", 501})
	fmt.Println(done.Status, done.Fields)
	// Output:
	// unknown - resend
	// completed at attempt 2
	// conflict [body.cents]
}

func ExampleActions() {
	lost := true
	payment := bank(&lost)
	guard, store, stop := start(engine.Options{Resolve: engine.Actions(payment.Definition())})
	defer stop()

	done, _ := payment.Do(context.Background(), guard, transfer{"9", 500})
	fmt.Println(done.Status)

	// A worker runs Engine.Run, which does this by itself when the pause is over.
	lost = false
	out, err := guard.Retry(context.Background(), done.Operation.ID, "ops")
	fmt.Println(out.Status, err)
	o, _ := store.LoadID(context.Background(), done.Operation.ID)
	fmt.Println(o.State.Words())
	// Output:
	// unknown
	// completed <nil>
	// completed
}

func ExampleEngine_Run() {
	lost := true
	payment := bank(&lost)
	payment.Send.Contract.Backoff = time.Millisecond
	guard, _, stop := start(engine.Options{Resolve: engine.Actions(payment.Definition())})
	defer stop()
	done, _ := payment.Do(context.Background(), guard, transfer{"10", 500})
	fmt.Println(done.Status)

	lost = false
	ctx, cancel := context.WithCancel(context.Background())
	go func() { _ = guard.Run(ctx) }()
	defer cancel()
	for done.Status != semel.StatusCompleted {
		done, _ = payment.Do(context.Background(), guard, transfer{"10", 500})
	}
	fmt.Println(done.Status)
	// Output:
	// unknown
	// completed
}

func ExampleEngine_Settle() {
	lost := true
	mail := bank(&lost)
	mail.Send.Contract = semel.Contract{Protection: semel.Unprotected}
	guard, _, stop := start(engine.Options{})
	defer stop()
	done, _ := mail.Do(context.Background(), guard, transfer{"11", 500})

	settled, err := guard.Settle(context.Background(), done.Operation.ID,
		engine.Settlement{Happened: true, By: "carla", Reason: "it is on the statement", Reference: "tr_11"})
	fmt.Println(settled.State, err)

	_, err = guard.Settle(context.Background(), done.Operation.ID, engine.Settlement{By: "dan", Reason: "not seen"})
	var before *engine.SettledError
	fmt.Println(errors.As(err, &before), before.Last.By)
	// Output:
	// completed <nil>
	// true carla
}
