package sqldest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/semel-dev/semel"
)

// What Options mean where they say nothing.
const (
	DefaultTimeout = 30 * time.Second
	DefaultMaxRows = 10_000
	DefaultAtOnce  = 4
)

// Options say how a database is used. The zero value is useful.
type Options struct {
	// Name is the connection's name, part of the scope of its actions.
	Name string
	// Timeout bounds one transaction, from its begin to the answer to its
	// commit; 0 means DefaultTimeout. A PostgreSQL server enforces it too.
	Timeout time.Duration
	// MaxRows is the most rows that a statement may return; 0 means
	// DefaultMaxRows.
	MaxRows int
	// AtOnce is the most connections of this process, and the most effects and
	// queries of all engines over one store, see Limit; 0 means DefaultAtOnce
	// connections and no limit.
	AtOnce int
	// Password, if not nil, is asked for each new connection to PostgreSQL. It
	// replaces that of the URL.
	Password func(context.Context) (string, error)
	// Contract says more about the effects than Contract knows by itself: its
	// Owner, Effect, OnFailed, Attempts and Backoff are used.
	Contract semel.Contract
}

// Database performs effects in one database. It is safe for concurrent use.
// Close it.
type Database struct {
	options  Options
	location string // without credentials; part of every request
	limited  semel.Limit
	backend  backend

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
	life    context.Context //nolint:containedctx // ends when Close has waited long enough
	end     context.CancelFunc
}

var (
	_ semel.Destination = (*Database)(nil)
	_ semel.Looker      = (*Database)(nil)
)

// backend is one kind of database.
type backend interface {
	// ready makes sure that the table of receipts exists.
	ready(ctx context.Context) error
	// begin starts a transaction that changes nothing yet.
	begin(ctx context.Context, a access, limit time.Duration) (transaction, error)
	close()
}

// access is what a transaction may do.
type access string

const (
	reading access = "read"
	writing access = "write"
)

// transaction is one transaction of a backend. Every error but *lostCommit
// means that it can never take effect.
type transaction interface {
	// take inserts r; false: there is a receipt with its key, committed. It
	// waits for a transaction that has inserted one and is not over.
	take(ctx context.Context, r *receipt) (bool, error)
	// find returns the receipt with a key, nil for none. A transaction that
	// writes holds it until it is over.
	find(ctx context.Context, key string) (*receipt, error)
	// replace writes the receipt that this transaction took or found.
	replace(ctx context.Context, r *receipt) error
	// run runs the user's statement.
	run(ctx context.Context, st *statement, t *table) error
	commit(ctx context.Context) error
	// abandon rolls back, unless commit was called, and gives the connection
	// up.
	abandon()
}

// lostCommit says that a commit was sent and not answered.
type lostCommit struct{ error }

func (e *lostCommit) Unwrap() error { return e.error }

// New makes a Database from a URL: postgres://user@host/name with the
// parameters of libpq, or sqlite:///path/of/file with an optional
// ?_pragma=foreign_keys(1). Nothing is connected before the first use. The
// error is *semel.InputError and never repeats the URL.
func New(address string, o Options) (*Database, error) {
	if o.Timeout < 0 || o.MaxRows < 0 || o.AtOnce < 0 {
		return nil, &semel.InputError{Field: "limits", Problem: "are negative", Hint: "leave out a limit that is not meant"}
	}
	limited := semel.Limit{Name: o.Name, AtOnce: o.AtOnce}
	if o.Name == "" {
		limited.AtOnce = 0
	}
	o.Timeout, o.MaxRows, o.AtOnce = cmp.Or(o.Timeout, DefaultTimeout), cmp.Or(o.MaxRows, DefaultMaxRows), cmp.Or(o.AtOnce, DefaultAtOnce)
	u, err := url.Parse(address)
	if err != nil {
		return nil, urlError("cannot be read as a URL")
	}
	d := &Database{options: o, limited: limited}
	switch u.Scheme {
	case "postgres", "postgresql":
		d.backend, d.location, err = newPostgres(address, o)
	case "sqlite":
		d.backend, d.location, err = newSQLite(u, o)
	default:
		err = urlError("is for no database that is known")
	}
	if err != nil {
		return nil, err
	}
	d.life, d.end = context.WithCancel(context.Background())
	return d, nil
}

func urlError(problem string) error {
	return &semel.InputError{Field: "url", Problem: problem, Hint: "write it as postgres://user@host/name or sqlite:///path/of/file"}
}

// Contract is what effects in this database promise: a receipt in the same
// transaction, and a lookup whose "not found" is proof.
func (d *Database) Contract() semel.Contract {
	c := d.options.Contract
	return semel.Contract{
		Protection: semel.Transactional, Effect: c.Effect, Owner: c.Owner, OnFailed: c.OnFailed, Attempts: c.Attempts, Backoff: c.Backoff,
		AbsenceIsProof: true, MaxProcessing: d.options.Timeout, Timeout: d.options.Timeout,
	}
}

// Limit is what all engines over one store keep to together: AtOnce, where it
// was given. A database without a name has none.
func (d *Database) Limit() semel.Limit { return d.limited }

// QueryContract is what queries promise: they change nothing, so they may be
// repeated.
func (d *Database) QueryContract() semel.Contract {
	return semel.Contract{Protection: semel.Commutes, Owner: d.options.Contract.Owner, Timeout: d.options.Timeout}
}

// Close refuses new attempts, waits for those that run until ctx ends, and
// then breaks them off; what is known of them is still delivered.
func (d *Database) Close(ctx context.Context) error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	stop := context.AfterFunc(ctx, d.end)
	defer stop()
	d.running.Wait()
	d.end()
	d.backend.close()
	return nil
}

// enter makes Close wait for one more transaction, unless it has begun. The
// context that it returns ends with the transaction's time.
func (d *Database) enter(ctx context.Context, limit time.Duration) (context.Context, func(), error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, nil, errors.New("the database is closed")
	}
	d.running.Add(1)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no end within %v", limit))
	stop := context.AfterFunc(d.life, cancel)
	return ctx, func() { stop(); cancel(); d.running.Done() }, nil
}

// limit is how long an attempt may take: the shorter of the connection's and
// the operation's own limit.
func (d *Database) limit(s *semel.Send) time.Duration {
	if own := s.Operation.Contract.Timeout; own > 0 {
		return min(own, d.options.Timeout)
	}
	return d.options.Timeout
}

// statement reads what s asks for. A request that was made for another
// database is not sent to this one, nor looked up in it.
func (d *Database) statement(s *semel.Send) (*statement, error) {
	if s.Operation.Request.URL != d.location {
		return nil, fmt.Errorf("the request is for %s, and the connection leads to %s: point it back, or let a person decide", s.Operation.Request.URL, d.location)
	}
	return statementOf(&s.Operation.Request)
}

// texts are the arguments of a statement, each read by one of argument's
// methods.
func texts(args []json.RawMessage, read func(argument) (any, error)) ([]any, error) {
	out := make([]any, len(args))
	for i, raw := range args {
		v, err := read(argument(raw))
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
		out[i] = v
	}
	return out, nil
}
