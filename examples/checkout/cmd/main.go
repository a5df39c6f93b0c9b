// Command checkout opens the shop. See the README beside it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/semel-dev/semel/examples/checkout"
	"github.com/semel-dev/semel/examples/stage"
	"github.com/semel-dev/semel/sandbox"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "checkout:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("checkout", flag.ContinueOnError)
	dir := flags.String("dir", "", "where the database is kept; empty for a temporary directory")
	listen := flags.String("listen", "127.0.0.1:8080", "where the shop is")
	external := flags.String("provider", "", "where the payment provider lives; empty for one in this process")
	lose := flags.Float64("lose", 0.5, "the share of answers that the provider in this process loses")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s, err := stage.Open(ctx, *dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	provider, err := sandbox.New(sandbox.Options{Faults: sandbox.Rate{First: *lose, Mix: map[sandbox.Fault]int{sandbox.DropAfter: 1}}})
	if err != nil {
		return err
	}
	s.OnClose(provider.Close)
	if *external == "" {
		if *external, err = s.Serve("", provider); err != nil {
			return err
		}
	}
	payments, err := s.Reach("payments", *external)
	if err != nil {
		return err
	}
	workflow := checkout.New(checkout.Destinations{Payments: payments})
	worker, err := s.Work(ctx, workflow.Definition())
	if err != nil {
		return err
	}
	shop, err := s.Serve(*listen, checkout.NewShop(workflow, worker, s.Store))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "the shop is at %s, what was charged at %s/ledger\n", shop, *external)
	<-ctx.Done()
	return nil
}
