package docs_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
	"github.com/semel-dev/semel/store/sqlite"
)

// Invoice and Charge are those of the README, too.
type Invoice struct{ ID string }

// Charge is what the provider answers.
type Charge struct{ ID string }

func chargeCard(_ context.Context, _ *semel.Send, i Invoice) (Charge, error) {
	fmt.Println("the card is charged for", i.ID)
	return Charge{ID: "ch_" + i.ID}, nil
}

// bill performs one action, without a workflow.
func bill(ctx context.Context, guard semel.Guard, invoice Invoice) error {
	charge := semel.Action[Invoice, Charge]{
		Name: "charge", Owner: "billing-ops",
		Key:  func(i Invoice) string { return "invoice-" + i.ID + "-charge" },
		Send: semel.Perform(semel.Contract{Protection: semel.Keyed, Window: 24 * time.Hour, Timeout: 10 * time.Second}, chargeCard),
	}
	done, err := charge.Do(ctx, guard, invoice)
	if err != nil {
		return err // this call sent nothing; ask again under the same key
	}
	switch done.Status {
	case semel.StatusCompleted: // done.Value() is the recorded Charge
	case semel.StatusFailed: // evidence that nothing was charged
	default: // it may have happened: the engine finds out, or a person does
	}
	fmt.Println(done.Value())
	return nil
}

func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "semel-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	store, err := sqlite.Open(ctx, filepath.Join(dir, "semel.db"), sqlite.Options{Create: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	guard, err := engine.New(ctx, store, engine.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 { // the second is the same operation
		if err := bill(ctx, guard, Invoice{ID: "4417"}); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(guard.Close(ctx))
	// Output:
	// the card is charged for 4417
	// {ch_4417} true
	// {ch_4417} true
	// <nil>
}
