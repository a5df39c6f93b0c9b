package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/semel-dev/semel/engine"
	"github.com/semel-dev/semel/sandbox"
	"github.com/semel-dev/semel/server"
)

const devHelp = `Write workflows with everything in one process: a database of its own, a worker,
HTTP triggers, and a sandbox beside it, a provider that loses your answers. What
runs do is shown as it happens. Ctrl-C ends it; run again, it goes on.

Database and ledger are kept in DIR/.semel; --db names another database. The
sandbox listens at 127.0.0.1:8089, so that semel.yaml may say
  base: http://127.0.0.1:8089
and what really happened is at http://127.0.0.1:8089/ledger.

A file is read again as soon as it is saved. One with errors keeps what it said
before, and the errors are shown. Where a file is changed under the same version,
new runs begin with the new text, and runs that had begun are held.

` + projectHelp

// devOptions are the flags of dev.
type devOptions struct {
	listen, sandbox string
	lose            float64
}

func newDev(sh *shell) *cobra.Command {
	var o devOptions
	cmd := &cobra.Command{
		Use: "dev [DIR]", Short: "Write workflows: worker, sandbox and database in one, read again on save", Long: devHelp,
		Example: "  semel dev\n  semel dev workflows --lose 0.3", Args: atMostOneDir,
		RunE: ours(func(cmd *cobra.Command, args []string) error {
			dir, err := projectDir(args)
			if err != nil {
				return err
			}
			return sh.dev(cmd.Context(), dir, &o)
		}),
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.listen, "listen", "127.0.0.1:8088", "loopback address for HTTP triggers; port 0 takes a free one")
	f.StringVar(&o.sandbox, "sandbox", "127.0.0.1:8089", "loopback address of the sandbox; port 0 takes a free one")
	f.Var(&share{to: &o.lose}, "lose", "share of references, 0 to 1, whose first request to the sandbox misbehaves")
	return cmd
}

// dev starts everything and reads files again until a signal.
func (sh *shell) dev(ctx context.Context, dir string, o *devOptions) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)                       // a second signal ends this process
	listener, err := listen(ctx, "--listen", o.listen) // first: what is refused makes no database
	if err != nil {
		return err
	}
	defer listener.Close()
	home := filepath.Join(dir, ".semel")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return fmt.Errorf("make the directory of the database: %w", err)
	}
	if sh.db == "" {
		abs, err := filepath.Abs(home)
		if err != nil {
			return err
		}
		sh.db, sh.create = "sqlite:"+filepath.Join(abs, "dev.db"), true
	}
	var group sync.WaitGroup
	defer group.Wait()
	around, end := context.WithCancel(context.WithoutCancel(ctx)) // of what the worker needs until its end
	defer end()
	provider, err := sh.beside(around, &group, home, o)
	if err != nil {
		return err
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
	w.sees = &narrator{herald{sh: sh, w: w}}
	b := &workbench{sh: sh, dir: dir, w: w, good: map[string]workflowText{}}
	defer b.close(ctx)
	b.read()
	e, err := sh.workerEngine(ctx, w, engine.Options{Tenant: b.tenant(), Spool: spool, Resolve: b.resolve})
	if err != nil {
		return err
	}
	defer sh.closeEngine(ctx, e)
	b.e = e
	group.Go(func() { sh.answer(around, listener, server.New(runs, b, findIn(b.definitions), sh.logger())) })
	sh.say("sandbox at %s, what really happened: %s/ledger", provider, provider)
	sh.say("HTTP triggers at http://%s/workflows/NAME/runs", listener.Addr())
	sh.say("in another terminal: %s", sh.command("run list"))
	b.work(ctx)
	sh.say("stopped. The same command goes on where this ended")
	return nil
}

// beside starts the sandbox and returns its address.
func (sh *shell) beside(ctx context.Context, group *sync.WaitGroup, home string, o *devOptions) (string, error) {
	listener, err := listen(ctx, "--sandbox", o.sandbox)
	if err != nil {
		return "", err
	}
	s, err := sandbox.New(sandbox.Options{LedgerPath: filepath.Join(home, "ledger.jsonl"), Faults: sandbox.Rate{First: o.lose}})
	if err != nil {
		_ = listener.Close()
		return "", usagef("%v", err)
	}
	group.Go(func() {
		if err := s.Run(ctx, listener); err != nil {
			sh.say("the sandbox ended: %v", err)
		}
		sh.shut("the sandbox", s.Close)
	})
	return "http://" + listener.Addr().String(), nil
}
