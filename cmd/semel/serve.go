package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/connection"
	"github.com/semel-dev/semel/engine"
	"github.com/semel-dev/semel/server"
	"github.com/semel-dev/semel/workflowfile"
)

const serveHelp = `Execute the workflows of a directory: claim runs that are due, fire schedules,
deliver events, and recover operations whose outcome is unknown, also those of
semel do. Any number of semel serve may share a database; each run is executed by
one of them, and when one dies another goes on where it stood.

` + projectHelp + `
It does not start while one of the files has an error: semel check shows them all.

Runs that began with an earlier version of a workflow go on with it. A file that
was changed under the same version holds the runs that began with the old text:
give the changed one a new version.

--listen 127.0.0.1:PORT also starts runs of workflows that say on: {http: {}}:
  POST /workflows/NAME/runs   header Idempotency-Key: K, body: the input as JSON
  POST /events/NAME?match=M   header Idempotency-Key: the ID of the event
  GET  /runs/ID

SIGTERM or Ctrl-C: it claims nothing more, and waits up to --drain for each run to
reach a step at which another worker can go on. A second one ends it at once;
nothing is lost or repeated then either, but runs wait for their lease to end.

stderr has a line for each run that is held or failed, and for each operation
that needs a person; with --output json stdout has an object for each.

Exit codes: 0 it was stopped, 2 a file has errors, 5 runs were left to the end of
their lease, 6 it could not work.`

// serveOptions are the flags of serve.
type serveOptions struct {
	atOnce       int
	drain        time.Duration
	listen, name string
}

func newServe(sh *shell) *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use: "serve [DIR]", Short: "Execute the workflows of a directory", Long: serveHelp,
		Example: "  semel serve\n  semel serve workflows --db postgres://app@db/app --listen 127.0.0.1:8090",
		Args:    atMostOneDir,
		RunE: ours(func(cmd *cobra.Command, args []string) error {
			if o.atOnce < 0 {
				return usagef("--at-once %d executes nothing: give 1 or more", o.atOnce)
			}
			dir, err := projectDir(args)
			if err != nil {
				return err
			}
			return sh.serve(cmd.Context(), dir, &o)
		}),
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.IntVar(&o.atOnce, "at-once", 0, "how many runs it executes at a time (default 256)")
	f.Var(&zeroable{span{to: &o.drain}}, "drain", "how long it waits for its runs when it must end (default 30s)")
	f.Var(&onceText{to: &o.listen}, "listen", "loopback address for HTTP triggers, for example 127.0.0.1:8090; port 0 takes a free one")
	f.Var(&onceText{to: &o.name}, "name", "of this worker in evidence and lists (default host/process)")
	return cmd
}

func atMostOneDir(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usagef("%s takes one directory: see %s --help", cmd.CommandPath(), cmd.CommandPath())
	}
	return nil
}

// serve loads, starts and works until it is told to end.
func (sh *shell) serve(ctx context.Context, dir string, o *serveOptions) (err error) {
	signal.Ignore(syscall.SIGPIPE) // who reads what it says may go away
	p, err := sh.faultless(dir)
	if err != nil {
		return err
	}
	defer sh.closeConfig(ctx, p.config)
	listener, err := listen(ctx, "--listen", o.listen)
	if err != nil {
		return err
	}
	if listener != nil {
		defer listener.Close()
	}
	store, d, runs, err := sh.openWorkerStore(ctx)
	if err != nil {
		return err
	}
	defer sh.shut("the database", store.Close)
	spool, err := openSpool(d)
	if err != nil {
		return err
	}
	defer sh.shut("the spool", spool.Close)
	w := &witness{Store: store.Store, Runs: runs}
	w.sees = &herald{sh: sh, w: w}
	e, err := sh.workerEngine(ctx, w, engine.Options{Name: o.name, Tenant: p.config.Tenant, Spool: spool, Resolve: p.config.Resolve})
	if err != nil {
		return err
	}
	defer sh.closeEngine(ctx, e)
	old, lost, err := earlier(ctx, runs, p.definitions(), checksWith(p.config), p.config)
	if err != nil {
		return err
	}
	if err := sh.tellChanged(ctx, runs, p); err != nil {
		return err
	}
	worker, err := engine.NewWorker(ctx, e, engine.WorkerOptions{
		Workflows: executable(p.definitions(), p.config), Earlier: old, AtOnce: o.atOnce, Drain: o.drain,
	})
	if err != nil {
		return err
	}
	s := &serving{sh: sh, p: p, d: d, runs: runs, earlier: old, lost: lost, listener: listener}
	if err := s.tell(ctx); err != nil {
		sh.say("warning: what runs wait could not be read: %v", err)
	}
	return sh.work(ctx, worker, w, listener, server.New(runs, worker, findIn(p.definitions), sh.logger()))
}

// faultless reads a project that has no errors.
func (sh *shell) faultless(dir string) (*project, error) {
	p, err := sh.readProject(dir)
	if err != nil {
		return nil, usagef("%s", unreadable(err))
	}
	problems := p.all()
	fmt.Fprint(sh.err, problemLines(problems))
	if workflowfile.HasErrors(problems) {
		return nil, usagef("nothing was started: mend the errors above")
	}
	if len(p.files) == 0 {
		return nil, usagef("%s holds no workflow file: they end in .yaml. See: semel serve --help", dir)
	}
	return p, nil
}

func (sh *shell) closeConfig(ctx context.Context, c *connection.Config) {
	sh.shut("the connections", func() error {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaving)
		defer cancel()
		return c.Close(limited)
	})
}

func (sh *shell) closeEngine(ctx context.Context, e *engine.Engine) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer cancel()
	if err := e.Close(limited); err != nil {
		sh.say("close the engine: %v", err)
	}
}

// listen opens the loopback address that a flag gives; nil for none.
func listen(ctx context.Context, flag, address string) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	l, err := server.Listen(ctx, address)
	if input, ok := errors.AsType[*semel.InputError](err); ok {
		return nil, usagef("%s %s: %s", flag, input.Problem, input.Hint)
	}
	return l, err
}

// findIn finds workflows that a call may start: the newest version, if its file
// says so.
func findIn(definitions func() []*workflowfile.Definition) server.Find {
	return func(name string) (server.Make, bool) {
		var newest *workflowfile.Definition
		for _, d := range definitions() {
			if d.Name == name && (newest == nil || d.Version > newest.Version) {
				newest = d
			}
		}
		if newest == nil || newest.Triggers.HTTP == nil {
			return nil, false
		}
		return newest.New, true
	}
}

// work runs a worker, and HTTP triggers where there is a listener, until a
// signal. After the first one signals have their plain meaning, so that a second
// one ends this process.
func (sh *shell) work(ctx context.Context, worker *engine.Worker, w *witness, listener net.Listener, handler http.Handler) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	var group sync.WaitGroup
	if listener != nil {
		group.Go(func() { sh.answer(ctx, listener, handler) })
	}
	group.Go(func() {
		<-ctx.Done()
		stop()
		sh.say("stopping: nothing more is claimed; a second signal ends it at once")
	})
	err := worker.Run(ctx)
	stop()
	group.Wait()
	sh.say("stopped. Since the start: %s", w.summary())
	if err != nil && !errors.Is(err, context.Canceled) {
		return &refusedError{exitInProgress, err.Error()}
	}
	return nil
}

// summary says what the worker did.
func (w *witness) summary() string {
	return fmt.Sprintf("%s completed, %d failed, %d cancelled, %d held for a person; %s left to a later time or another worker",
		counted(int(w.completed.Load()), "run"), w.failed.Load(), w.cancelled.Load(), w.held.Load(), counted(int(w.waiting.Load()), "time"))
}

// answer serves HTTP until ctx ends, and lets calls under way end.
func (sh *shell) answer(ctx context.Context, listener net.Listener, handler http.Handler) {
	s := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute}
	var ending sync.WaitGroup
	defer ending.Wait()
	ending.Go(func() {
		<-ctx.Done()
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaving)
		defer cancel()
		_ = s.Shutdown(limited) // what has not ended then ends with this process
	})
	if err := s.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		sh.say("HTTP triggers ended: %v", err)
	}
}
