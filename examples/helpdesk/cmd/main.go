// Command helpdesk lets two workers find the same breaches at once. See the
// README beside it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/examples/helpdesk"
	"github.com/semel-dev/semel/examples/helpdesk/desk"
	"github.com/semel-dev/semel/examples/stage"
	"github.com/semel-dev/semel/sandbox"
)

// breaches is our own database with two tickets that waited too long.
const breaches = `
	create table if not exists ticket (id text primary key, title text, due_at text, claimed_by text);
	insert into ticket (id, title, due_at) values ('T-1', 'Printer on fire', '2020-01-01T00:00:00Z'), ('T-2', 'No coffee', '2020-01-01T00:00:00Z')
	on conflict do nothing`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "helpdesk:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("helpdesk", flag.ContinueOnError)
	dir := flags.String("dir", "", "where the databases are kept; empty for a temporary directory")
	provider := flags.String("provider", "", "where the mail provider lives; empty for one in this process")
	lose := flags.Int("lose", 1, "how many answers the help desk loses")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s, err := stage.Open(ctx, *dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	box, err := sandbox.New(sandbox.Options{})
	if err != nil {
		return err
	}
	s.OnClose(box.Close)
	if *provider == "" {
		if *provider, err = s.Serve("", box); err != nil {
			return err
		}
	}
	support := desk.Desk{Lose: *lose}
	tickets, err := s.Serve("", &support)
	if err != nil {
		return err
	}
	var to helpdesk.Destinations
	if to.Database, err = s.Database(ctx, "support", breaches); err != nil {
		return err
	}
	if to.Desk, err = s.Reach("desk", tickets); err != nil {
		return err
	}
	if to.Mail, err = s.Reach("mail", *provider); err != nil {
		return err
	}

	workflow := helpdesk.New(to)
	worker, err := s.Work(ctx, workflow.Definition())
	if err != nil {
		return err
	}
	var sweeps []semel.Run
	for _, key := range []semel.Key{"sweep-1", "sweep-2"} { // besides that of every minute
		wanted, err := workflow.New(key, struct{}{})
		if err != nil {
			return err
		}
		sweep, _, err := worker.Start(ctx, wanted)
		if err != nil {
			return err
		}
		sweeps = append(sweeps, sweep)
	}
	for _, sweep := range sweeps {
		ended, err := s.Await(ctx, sweep.ID, func(r semel.Run) { fmt.Fprintf(out, "%s: %s\n", r.Key, r.Reason) })
		if err != nil {
			return err
		}
		fmt.Fprintln(out, strings.TrimSpace(fmt.Sprintf("%s: %s %s", ended.Key, ended.State, ended.Reason)))
	}
	fmt.Fprintf(out, "T-1 is %q and T-2 is %q after %d changes; %d mails went out\n", support.Status("T-1"), support.Status("T-2"), support.Writes(), len(box.Effects()))
	return nil
}
