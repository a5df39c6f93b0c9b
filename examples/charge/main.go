// Command charge charges one invoice at a provider, once, however often it is
// run. Try it against a provider that loses answers:
//
//	semel sandbox --lose 1 --mix drop_after=1
//	go run ./examples/charge -invoice 4417 -cents 4200
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
	"github.com/semel-dev/semel/engine"
	"github.com/semel-dev/semel/store/postgres"
	"github.com/semel-dev/semel/store/sqlite"
)

// Invoice is what a charge is made for.
type Invoice struct {
	ID    string `json:"reference"`
	Cents int64  `json:"amount"`
}

// Charge is the provider's answer.
type Charge struct {
	ID string `json:"id"`
}

func main() {
	db := flag.String("db", "charge.db", "an SQLite file, or postgres://...")
	provider := flag.String("provider", "http://127.0.0.1:8089", "where the provider lives")
	patience := flag.Duration("recover", 0, "how long to recover what is unknown")
	var invoice Invoice
	flag.StringVar(&invoice.ID, "invoice", "4417", "number of the invoice")
	flag.Int64Var(&invoice.Cents, "cents", 4200, "its amount")
	flag.Parse()
	if err := run(context.Background(), *db, *provider, *patience, invoice); err != nil {
		fmt.Fprintln(os.Stderr, "charge:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, db, provider string, patience time.Duration, invoice Invoice) (err error) {
	payments, err := httpdest.New(httpdest.Options{Name: "payments", Base: provider})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, payments.Close(ctx)) }()

	send := httpdest.Post[Invoice, Charge](payments, "/v1/charges")
	send.Contract = semel.Contract{
		Protection: semel.Keyed, Window: 24 * time.Hour, KeyHeader: "Idempotency-Key",
		Timeout: 10 * time.Second, MaxProcessing: 30 * time.Second,
	}
	charge := semel.Action[Invoice, Charge]{
		Name: "charge", Owner: "billing-ops",
		Key:  func(i Invoice) string { return "invoice-" + i.ID + "-charge" },
		Send: send,
	}

	store, err := open(ctx, db)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	guard, err := engine.New(ctx, store, engine.Options{Tenant: "acme", Resolve: engine.Actions(charge.Definition())})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, guard.Close(ctx)) }()

	done, err := charge.Do(ctx, guard, invoice)
	if err != nil {
		return err // this call sent nothing: ask again under the same key
	}
	switch charged, ok := done.Value(); {
	case ok:
		fmt.Println("charged:", charged.ID, "replayed:", done.Replayed)
	case done.Status == semel.StatusFailed:
		fmt.Println("nothing was charged:", done.Operation.Reason)
	default:
		fmt.Println(done.Status, "-", done.Next.Reason)
	}
	if patience == 0 {
		return nil
	}

	// A worker does this all day, beside the calls of Do.
	working, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_ = guard.Run(working) // ends with its context
	known, err := store.LoadID(ctx, done.Operation.ID)
	if err != nil {
		return err
	}
	fmt.Println("later:", known.State.Words())
	return nil
}

// open opens the database, and makes it if it is not there yet.
func open(ctx context.Context, db string) (semel.Store, error) {
	if strings.HasPrefix(db, "postgres://") {
		store, err := postgres.Open(ctx, db, postgres.Options{Create: true})
		if err != nil {
			return nil, err // not a nil *postgres.Store in an interface
		}
		return store, nil
	}
	store, err := sqlite.Open(ctx, db, sqlite.Options{Create: true})
	if err != nil {
		return nil, err
	}
	return store, nil
}
