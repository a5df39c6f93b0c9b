package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/semel-dev/semel/sandbox"
)

// Options of Run. Zero fields take up what the directory holds, or the defaults
// of a new night: 300 invoices, a fifth of the answers lost, 2 workers killed.
type Options struct {
	Invoices int
	Lose     *float64 // the share of charges and transfers that lose their answer
	Kill     *int     // how many workers are killed
	Seed     uint64   // what gets lost and who dies; 0 is 1
	Dir      string   // ledgers and database; empty is Dir()
	DB       string   // sqlite:PATH or postgres://...; empty is a file in Dir
	Fresh    bool     // forget the night that Dir holds
	Stay     bool     // keep the destinations up until the context ends
	JSON     bool     // end with the report as one line

	// Out takes the screen, or the report if JSON; then the screen goes to Log.
	Out io.Writer
	// Log takes progress; nil discards it.
	Log io.Writer
	// Program is how a person calls semel; empty is "semel".
	Program string
	// Worker is the command line, after the program's own name, that calls Work;
	// empty is "demo worker".
	Worker []string
}

// SettingsError says that the night cannot be as Options describe it.
type SettingsError struct{ text string }

func (e *SettingsError) Error() string { return e.text }

// ErrInterrupted says that the context ended before the night was over. The same call
// goes on where it stopped.
var ErrInterrupted = errors.New("interrupted: nothing is lost, run the same command again and the night goes on")

// watching is how often progress is told.
const watching = time.Second

func (o *Options) program() string {
	if o.Program == "" {
		return "semel"
	}
	return o.Program
}

func (o *Options) validate() error {
	switch {
	case o.Invoices < 0 || o.Invoices > MaxInvoices:
		return &SettingsError{fmt.Sprintf("--invoices is %d: give a number from 1 to %d", o.Invoices, MaxInvoices)}
	case o.Lose != nil && !(*o.Lose >= 0 && *o.Lose <= 1):
		return &SettingsError{fmt.Sprintf("--lose is %v: give a share from 0 to 1, for example 0.2", *o.Lose)}
	case o.Kill != nil && *o.Kill < 0:
		return &SettingsError{fmt.Sprintf("--kill is %d: give a number from 0", *o.Kill)}
	}
	return nil
}

// Run runs the night, or what is left of it, prints what the destinations
// counted, and returns it. Unknown outcomes that only a person can settle are
// no error.
func Run(ctx context.Context, o Options) (r Report, err error) {
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.Worker == nil {
		o.Worker = []string{"demo", "worker"}
	}
	if err := o.validate(); err != nil {
		return Report{}, err
	}
	dir := o.Dir
	if dir == "" {
		if dir, err = Dir(); err != nil {
			return Report{}, err
		}
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return Report{}, err
	}
	n, doors, err := begin(&o, dir)
	if err != nil {
		return Report{}, err
	}
	return n.run(ctx, &o, doors)
}

func (n *night) run(ctx context.Context, o *Options, doors [2]net.Listener) (r Report, err error) {
	due, err := invoices(n.Invoices)
	if err != nil {
		closeAll(doors)
		return Report{}, err
	}
	usual, err := open(n, due, usualLedger, usualKills, doors[0])
	if err != nil {
		closeAll(doors)
		return Report{}, err
	}
	defer func() { err = errors.Join(err, usual.close()) }()
	guarded, err := open(n, due, semelLedger, semelKills, doors[1])
	if err != nil {
		doors[1].Close()
		return Report{}, err
	}
	defer func() { err = errors.Join(err, guarded.close()) }()
	database, err := n.database(o.DB)
	if err != nil {
		return Report{}, err
	}
	fmt.Fprintf(o.Log, "%s due in %s\n", many(n.Invoices, "invoice"), n.dir)
	began := time.Now()
	t, err := n.both(ctx, o, due, database, usual, guarded)
	if ctx.Err() != nil {
		return Report{}, ErrInterrupted
	}
	if err != nil {
		return Report{}, err
	}
	fmt.Fprintf(o.Log, "the night took %.1fs\n\n", time.Since(began).Seconds())
	return n.tell(ctx, o, database, t, usual, guarded)
}

// tell prints what the night came to, and stays if it is to.
func (n *night) tell(ctx context.Context, o *Options, database string, t *totals, usual, guarded *provider) (Report, error) {
	people := o.Out
	if o.JSON {
		people = o.Log
	}
	screen(people, o, n, database, t)
	r := t.report()
	if o.JSON {
		line, err := json.Marshal(r)
		if err != nil {
			return r, err
		}
		if _, err := fmt.Fprintf(o.Out, "%s\n", line); err != nil {
			return r, fmt.Errorf("print the report: %w", err)
		}
	}
	if o.Stay {
		stays(people, o, database, usual, guarded)
		<-ctx.Done()
	}
	return r, nil
}

// both runs the two halves, side by side, and counts.
func (n *night) both(ctx context.Context, o *Options, due []invoice, database string, usual, guarded *provider) (t *totals, err error) {
	store, err := openStore(ctx, database)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	books, err := openBooks(ctx, n.path(booksFile), due)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, books.close()) }()
	known, err := operations(ctx, store, n.tenant())
	if err != nil {
		return nil, err
	}
	before := orders(guarded)
	t = &totals{again: before > 0, forgot: before > 0 && len(known) == 0}
	if t.forgot && !n.Forgotten {
		n.Forgotten = true
		if err := n.write(os.Rename); err != nil {
			return nil, err
		}
	}

	var halves sync.WaitGroup
	var usualErr, semelErr error
	halves.Go(func() { usualErr = n.half(ctx, o, "the usual way", usual, assignment{Base: usual.base}) })
	halves.Go(func() {
		semelErr = n.half(ctx, o, "with semel", guarded, assignment{Base: guarded.base, Semel: true, DB: database})
	})
	halves.Wait()
	if err := errors.Join(usualErr, semelErr); err != nil {
		return nil, err
	}
	if t.run, err = readRun(ctx, store, n, due[0].Due); err != nil {
		return nil, err
	}
	if t.paid, err = books.count(ctx); err != nil {
		return nil, err
	}
	if known, err = operations(ctx, store, n.tenant()); err != nil {
		return nil, err
	}
	if t.believedDone, t.believedNot, err = believed(n); err != nil {
		return nil, err
	}
	t.usual, t.semel = tally(usual, due, nil), tally(guarded, due, known)
	t.twins, t.twinsOnce = twins(guarded, due)
	t.usualKilled, t.semelKilled = usual.dead(), guarded.dead()
	t.night = due[0].Due
	t.sent = orders(guarded) - before
	return t, nil
}

// half runs one half of the night with worker processes, and waits for effects
// that come late.
func (n *night) half(ctx context.Context, o *Options, title string, p *provider, work assignment) (err error) {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program, to start it as a worker: %w", err)
	}
	log, err := os.OpenFile(n.path(logFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the workers' log: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	work.Dir, work.Night, work.Due = n.dir, n.ID, n.Invoices
	c := &crew{program: program, args: o.Worker, log: log, work: work, said: make(chan struct{}), sends: map[string]*worker{}}
	p.hire(c)
	watch, stop := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		p.watch(watch, o.Log, title)
	}()
	err = c.run(ctx)
	stop()
	<-watched
	if err != nil {
		return fmt.Errorf("%s: %w", title, err)
	}
	return p.FinishLate()
}

// orders is how many requests asked the provider for an effect.
func orders(p *provider) int {
	all := 0
	for _, s := range p.Summary() {
		all += s.Requests
	}
	return all
}

// watch tells how far the night is.
func (p *provider) watch(ctx context.Context, w io.Writer, title string) {
	tick := time.NewTicker(watching)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			p.progress(w, title)
			return
		case <-tick.C:
			p.progress(w, title)
		}
	}
}

func (p *provider) progress(w io.Writer, title string) {
	happened := map[sandbox.Resource]int{}
	for _, e := range p.Effects() {
		happened[e.Resource]++
	}
	fmt.Fprintf(w, "%s: %d charges, %d transfers and %d receipts at the destination, %s killed\n",
		title, happened[sandbox.Charges], happened[sandbox.Transfers], happened[sandbox.Messages], many(p.dead(), "worker"))
}
