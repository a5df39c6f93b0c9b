// Command outreach sends a sequence of mails, with days of seconds, until a
// reply comes. See the README beside it.
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
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/examples/outreach"
	"github.com/semel-dev/semel/examples/stage"
	"github.com/semel-dev/semel/sandbox"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "outreach:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("outreach", flag.ContinueOnError)
	dir := flags.String("dir", "", "where the database is kept; empty for a temporary directory")
	external := flags.String("provider", "", "where the mail provider lives; empty for one in this process")
	day := flags.Duration("day", time.Second, "how long a day is")
	replyOn := flags.Int("reply-on-day", 4, "the day on which Ann replies; 0 for never")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s, err := stage.Open(ctx, *dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if *external == "" {
		provider, err := sandbox.New(sandbox.Options{})
		if err != nil {
			return err
		}
		s.OnClose(provider.Close)
		if *external, err = s.Serve("", provider); err != nil {
			return err
		}
	}
	mail, err := s.Reach("mail", *external)
	if err != nil {
		return err
	}
	workflow := outreach.New(outreach.Destinations{Mail: mail, Day: *day})
	worker, err := s.Work(ctx, workflow.Definition())
	if err != nil {
		return err
	}
	ann := outreach.Prospect{Campaign: "spring", Address: "ann@example.com", Name: "Ann"}
	wanted, err := workflow.New("", ann)
	if err != nil {
		return err
	}
	begun, _, err := worker.Start(ctx, wanted)
	if err != nil {
		return err
	}
	if *replyOn > 0 {
		timer := time.AfterFunc(time.Duration(*replyOn)*(*day), func() {
			reply := semel.InboxEvent{ID: "message-1", Name: "reply", Match: ann.Address, Data: []byte(`{"text":"tell me more"}`)}
			if _, err := s.Store.Send(ctx, reply); err != nil { // sending it twice is one event
				fmt.Fprintln(out, "the reply did not come through:", err)
			}
		})
		defer timer.Stop()
	}
	ended, err := s.Await(ctx, begun.ID, func(r semel.Run) { fmt.Fprintln(out, r.Reason) })
	if err != nil {
		return err
	}
	fmt.Fprintln(out, strings.TrimSpace(fmt.Sprintf("%s %s %s", ended.State, ended.Result, ended.Reason)))
	return nil
}
