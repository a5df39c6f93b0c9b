// Command publishing asks for the approval of one article and publishes it. See
// the README beside it.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/examples/publishing"
	"github.com/semel-dev/semel/examples/publishing/platform"
	"github.com/semel-dev/semel/examples/stage"
)

// draft is our own database with one article.
const draft = `
	create table if not exists article (slug text primary key, title text, body text, platform_id text);
	insert into article (slug, title, body) values ('retry', 'Retry', 'Safe to press.') on conflict do nothing`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "publishing:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) (err error) {
	flags := flag.NewFlagSet("publishing", flag.ContinueOnError)
	dir := flags.String("dir", "", "where the databases are kept; empty for a temporary directory")
	external := flags.String("platform", "", "where the platform lives; empty for one in this process")
	serve := flags.String("serve", "", "be the platform at this address, and nothing else")
	lose := flags.Int("lose", 1, "how many answers the platform loses")
	round := flags.Int("round", 1, "ask the editor again: the round of this submission")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s, err := stage.Open(ctx, *dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	p := platform.Platform{Lose: *lose}
	if *external == "" {
		if *external, err = s.Serve(*serve, &p); err != nil {
			return err
		}
	}
	if *serve != "" {
		fmt.Fprintln(out, "the platform is at", *external)
		<-ctx.Done()
		return nil
	}

	site, err := s.Database(ctx, "site", draft)
	if err != nil {
		return err
	}
	reach, err := s.Reach("platform", *external)
	if err != nil {
		return err
	}
	workflow := publishing.New(publishing.Destinations{Platform: reach, Database: site})
	worker, err := s.Work(ctx, workflow.Definition())
	if err != nil {
		return err
	}
	wanted, err := workflow.New("", publishing.Submission{Slug: "retry", Round: *round})
	if err != nil {
		return err
	}
	begun, _, err := worker.Start(ctx, wanted)
	if err != nil {
		return err
	}
	answers := bufio.NewScanner(in)
	ended, err := s.Await(ctx, begun.ID, func(r semel.Run) {
		fmt.Fprintln(out, r.Reason)
		err = errors.Join(err, decide(ctx, s, r, answers, out))
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, strings.TrimSpace(fmt.Sprintf("%s %s %s", ended.State, ended.Result, ended.Reason)))
	if n := len(p.Published()); n > 0 {
		fmt.Fprintf(out, "the platform has %d article\n", n)
	}
	return nil
}

// decide puts what a run asks for before a person.
func decide(ctx context.Context, s *stage.Stage, r semel.Run, answers *bufio.Scanner, out io.Writer) error {
	for a, err := range s.Store.Approvals(ctx, r.ID, semel.ApprovalPending) {
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s\n%s, exactly this? [y/N] ", a.Request.Body, a.Ask.Summary)
		d := semel.Decision{State: semel.ApprovalRejected, By: "you", Reason: "answered no", Digest: a.Digest}
		if answers.Scan() && answers.Text() == "y" {
			d.State, d.Reason = semel.ApprovalGiven, "answered yes"
		}
		if _, err := s.Store.Decide(ctx, a.ID, d); err != nil {
			return err
		}
	}
	return nil
}
