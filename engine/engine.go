// Package engine performs operations: it claims them in a store before
// anything can be sent, sends through a destination, records what came back,
// and recovers what nobody knows.
//
// An [Engine] implements semel.Guard. It holds no rules of its own: what an
// event does to an operation is decided by Operation.Apply, and what is safe
// to do next by semel.Decide.
package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-dev/semel"
)

// Options of an Engine. The zero value is useful.
type Options struct {
	// Name of this worker in the evidence; empty means host and process.
	Name string
	// Tenant is the first part of every Action's scope; empty means "default".
	Tenant string
	// Lease is how long a claim is held unless renewed; 0 means 10 s. A killed
	// worker's operation is unknown when its lease is over.
	Lease time.Duration
	// Patience is how long the engine keeps trying to record an outcome while
	// the store is unavailable, before it goes to the spool; 0 means 30 s.
	Patience time.Duration
	// Spool keeps evidence that cannot reach the store. Nil loses it when the
	// process ends; the operation is unknown then.
	Spool Spool
	// Resolve finds the destination of a stored operation, and the contract it
	// has today. Nil: this engine recovers nothing by itself.
	Resolve Resolver
	// Late is whether evidence is awaited after an attempt's timeout. A
	// process that ends soon, such as a command, has no use for it.
	Late bool
	// Regenerated is how far back a new operation is compared with others of
	// the same request in its scope; 0 compares within this process only.
	Regenerated time.Duration
	// Forget is how long the store keeps records: a synthetic key minted
	// earlier that is not on record is refused as expired. 0 means for ever.
	Forget time.Duration
	// Linger is how long an outcome may wait to share a commit with what its run
	// does next; 0 means 1 ms, less than 0 not at all. A block, a wait and the
	// end of the run never wait for it.
	Linger time.Duration
	// Clock is this process's own clock, for its deadlines; nil means time.Now.
	// A drill moves it.
	Clock func() time.Time
	// Logger takes what nobody is waiting to hear; nil means slog.Default().
	Logger *slog.Logger
}

// Spool keeps evidence that could not reach the store yet.
type Spool interface {
	// Put makes the evidence durable.
	Put(semel.Evidence) error
	// Each hands over what was put, oldest first, and forgets what use accepts.
	// It goes on after an error of use, unless that is semel.ErrUnavailable,
	// and returns all of them.
	Each(ctx context.Context, use func(semel.Evidence) error) error
}

// Engine performs operations. All its methods may be called concurrently.
type Engine struct {
	store    semel.Store
	opt      Options
	log      *slog.Logger
	clock    func() time.Time
	offset   atomic.Int64 // of the store's clock from ours, in nanoseconds
	ctx      context.Context
	stop     context.CancelFunc
	attempts sync.WaitGroup
	flights  flights
	arrivals arrivals
	recent   recent
	actions  actions
	lines    lines
	unkept   sync.Once // says that no limit is kept
}

// New makes an engine over store and takes in what the spool holds. Close it
// before the store.
func New(ctx context.Context, store semel.Store, o Options) (*Engine, error) {
	if o.Lease < 0 || o.Patience < 0 {
		return nil, &semel.InputError{Field: "lease", Problem: "is negative", Hint: "give a duration such as 10s"}
	}
	if o.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "localhost"
		}
		o.Name = fmt.Sprintf("%s/%d", host, os.Getpid())
	}
	if o.Tenant == "" {
		o.Tenant = "default"
	}
	if o.Lease == 0 {
		o.Lease = 10 * time.Second
	}
	if o.Patience == 0 {
		o.Patience = 30 * time.Second
	}
	if o.Linger == 0 {
		o.Linger = time.Millisecond
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	e := &Engine{clock: o.Clock, store: store, opt: o, log: o.Logger}
	e.ctx, e.stop = context.WithCancel(context.Background())
	if _, err := e.now(ctx); err != nil {
		e.stop()
		return nil, fmt.Errorf("read the store's clock: %w", err)
	}
	switch err := e.ingest(ctx); {
	case errors.Is(err, semel.ErrUnavailable), errors.Is(err, semel.ErrUnconfirmed):
		e.stop()
		return nil, err
	case err != nil:
		e.log.Error("some evidence stays in the spool", "err", err)
	}
	return e, nil
}

// Close asks running attempts to stop, waits until each has recorded what it
// knows, or until ctx ends, and leaves the store open.
func (e *Engine) Close(ctx context.Context) error {
	e.stop()
	done := make(chan struct{})
	go func() {
		e.attempts.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("attempts are still running: %w", ctx.Err())
	}
}

// now asks the store for its time.
func (e *Engine) now(ctx context.Context) (time.Time, error) {
	at, err := e.store.Now(ctx)
	if err == nil {
		e.offset.Store(int64(at.Sub(e.clock())))
	}
	return at, err
}

// estimate is the store's time as far as it is known here: good enough to
// prepare a change, which the store then stamps itself.
func (e *Engine) estimate() time.Time {
	return e.clock().Add(time.Duration(e.offset.Load())).UTC()
}

// commit prepares and commits one event.
func (e *Engine) commit(ctx context.Context, o semel.Operation, ev semel.Event, token semel.ID) (semel.Operation, error) {
	ev.At = e.estimate()
	change, err := o.Change(ev, token)
	if err != nil {
		return o, err
	}
	next, err := e.store.Commit(ctx, change)
	if err != nil {
		return o, err
	}
	e.offset.Store(int64(next.UpdatedAt.Sub(e.clock())))
	return next, nil
}

// newID mints an identifier on the store's time.
func (e *Engine) newID() semel.ID {
	var random [10]byte
	_, _ = rand.Read(random[:]) // never fails, see crypto/rand
	return semel.NewID(e.estimate(), random)
}

// ingest brings spooled evidence to the store, each piece for as long as the
// engine's patience lasts: what the store never takes holds up nothing else.
func (e *Engine) ingest(ctx context.Context) error {
	if e.opt.Spool == nil {
		return nil
	}
	err := e.opt.Spool.Each(ctx, func(ev semel.Evidence) error {
		ctx, cancel := context.WithTimeout(ctx, e.opt.Patience)
		defer cancel()
		o, err := e.store.Load(ctx, ev.Scope, ev.Key)
		if errors.Is(err, semel.ErrNotFound) && ev.Event.Kind == semel.EvRefused {
			return nil // it says that nothing was sent, about a claim that never reached the store
		}
		if err != nil {
			return err
		}
		said, ok := ev.Event, true
		if n := said.Attempt; o.ID != ev.ID || n < 1 || n > len(o.Attempts) || o.Attempts[n-1].Token != ev.Token {
			said, ok = unclaimed(&o, ev.Event)
		}
		if !ok {
			return nil
		}
		_, err = e.record(ctx, o, said)
		if _, never := errors.AsType[*semel.TransitionError](err); never {
			e.log.Error("spooled evidence does not fit its operation", "operation", o.ID, "err", err)
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("take in spooled evidence: %w", err)
	}
	return nil
}

const restored = "the database was restored from an older copy, or lost what it had acknowledged"

// unclaimed is what evidence about an attempt whose claim is not on record says
// of the operation as it is now. Either the claim never reached the store, and
// nothing was sent, or the store lost it, and the effect may be there beside
// another one. ok is false for evidence that nothing happened, and where a
// second effect is none.
func unclaimed(o *semel.Operation, ev semel.Event) (said semel.Event, ok bool) {
	once := o.Contract.Protection.Repeatable() || o.Contract.Protection == semel.Transactional
	switch {
	case ev.Kind == semel.EvConfirmed && once:
		ev.Attempt = 0
		return ev, true
	case ev.Kind == semel.EvConfirmed:
		return semel.Event{Kind: semel.EvContradiction, By: ev.By, Reference: ev.Reference, Result: ev.Result, Reason: "an attempt that is not on record happened: " + restored}, true
	case ev.Kind == semel.EvLost && !once:
		return semel.Event{Kind: semel.EvLost, By: ev.By, Reason: ev.Reason, Incident: "an attempt that is not on record may have happened: " + restored}, true
	}
	return semel.Event{}, false
}
