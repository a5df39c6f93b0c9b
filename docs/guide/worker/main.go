// Command worker is the program of the guide: workflows in Go, and a worker
// that executes them. It ends with Ctrl-C.
//
//	semel sandbox
//	go run ./docs/guide/worker -db semel.db
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
	"github.com/semel-dev/semel/engine"
	"github.com/semel-dev/semel/store/sqlite"
)

// Invoice is what a charge is made for.
type Invoice struct {
	ID     string `json:"reference"`
	Amount int64  `json:"amount"`
}

// Charge is the provider's answer.
type Charge struct {
	ID string `json:"id"`
}

// Message is a mail.
type Message struct {
	Reference string `json:"reference"`
	Text      string `json:"text"`
}

// actions are what the workflows do in the world.
type actions struct {
	charge semel.Action[Invoice, Charge]
	mail   semel.Action[Message, struct{}]
}

func newActions(provider *httpdest.Destination) actions {
	charge := httpdest.Post[Invoice, Charge](provider, "/v1/charges")
	charge.Contract = semel.Contract{Protection: semel.Keyed, Window: 24 * time.Hour, KeyHeader: "Idempotency-Key", Timeout: 10 * time.Second}
	mail := httpdest.Post[Message, struct{}](provider, "/v1/messages")
	mail.Contract = semel.Contract{Protection: semel.Unprotected, Timeout: 10 * time.Second}
	return actions{
		charge: semel.Action[Invoice, Charge]{
			Name: "charge", Owner: "billing-ops",
			Key:  func(i Invoice) string { return "invoice-" + i.ID + "-charge" },
			Send: charge,
		},
		mail: semel.Action[Message, struct{}]{
			Name: "mail", Owner: "billing-ops",
			Key:  func(m Message) string { return m.Reference + "-mail" },
			Send: mail,
		},
	}
}

// bill charges an invoice, rests, and sends a receipt.
func bill(a actions) semel.Workflow[Invoice] {
	return semel.Workflow[Invoice]{
		Name: "bill", Owner: "billing-ops",
		Actions: []semel.Definition{a.charge.Definition(), a.mail.Definition()},
		Func: func(ctx semel.Context, i Invoice) error {
			paid, err := semel.Do(ctx, a.charge, i)
			if err != nil { // known: nothing was charged
				return err
			}
			if err := semel.Sleep(ctx, "rest", 5*time.Second); err != nil {
				return err
			}
			_, err = semel.Do(ctx, a.mail, Message{Reference: i.ID, Text: "paid: " + paid.ID})
			return errors.Join(err, ctx.Return(paid))
		},
	}
}

// order waits for a delivery, then for a person, and then charges.
func order(a actions) semel.Workflow[Invoice] {
	return semel.Workflow[Invoice]{
		Name: "order", Owner: "billing-ops",
		Actions: []semel.Definition{a.charge.Definition(), a.mail.Definition()},
		Func: func(ctx semel.Context, i Invoice) error {
			_, err := semel.Wait[struct{}](ctx, "order.delivered", i.ID, 14*24*time.Hour)
			if errors.Is(err, semel.ErrTimedOut) {
				_, err = semel.Do(ctx, a.mail, Message{Reference: i.ID, Text: "your order is late"})
				return err
			}
			if err != nil {
				return err
			}
			if err := semel.Approve(ctx, a.charge, i, semel.Ask{Of: "billing", Summary: "charge order " + i.ID, Valid: time.Hour}); err != nil {
				return err // rejected: nothing was sent
			}
			_, err = semel.Do(ctx, a.charge, i)
			return err
		},
	}
}

// night is the input of the workflow night.
type night struct {
	Invoices []Invoice `json:"invoices"`
}

// nightly charges all invoices of a night.
func nightly(a actions) semel.Workflow[night] {
	return semel.Workflow[night]{
		Name: "nightly", Owner: "billing-ops",
		Actions: []semel.Definition{a.charge.Definition()},
		Func: func(ctx semel.Context, n night) error {
			number := func(i Invoice) string { return i.ID }
			return semel.Each(ctx, "invoices", n.Invoices, number, 20, func(ctx semel.Context, i Invoice) error {
				_, err := semel.Do(ctx, a.charge, i)
				return err
			})
		},
	}
}

func main() {
	db := flag.String("db", "semel.db", "an SQLite file")
	url := flag.String("provider", "http://127.0.0.1:8089", "where the provider lives")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *db, *url)
	stop()
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, db, url string) (err error) {
	provider, err := httpdest.New(httpdest.Options{Name: "provider", Base: url})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, provider.Close(context.WithoutCancel(ctx))) }()
	a := newActions(provider)

	store, err := sqlite.Open(ctx, db, sqlite.Options{Create: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	guard, err := engine.New(ctx, store, engine.Options{Tenant: "acme"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, guard.Close(context.WithoutCancel(ctx))) }()
	worker, err := engine.NewWorker(ctx, guard, engine.WorkerOptions{
		Workflows: []semel.WorkflowDefinition{bill(a).Definition(), order(a).Definition(), nightly(a).Definition()},
	})
	if err != nil {
		return err
	}
	return worker.Run(ctx)
}
