package semel

import (
	"context"
	"iter"
	"time"
)

// Store keeps operations. It owns time: every time it stamps or compares is
// its own clock's, which never runs back for one operation. All methods may be
// called concurrently. Errors wrap ErrNotFound, ErrStale, ErrUnavailable or
// ErrUnconfirmed.
type Store interface {
	// Now is the store's clock.
	Now(ctx context.Context) (time.Time, error)
	// Commit makes one change durable, atomically and exactly as often as its
	// token appears: repeating a change with its token after a lost
	// acknowledgement returns the same answer. It returns the operation with
	// the event stamped. ErrStale: another change came first, or, for a first
	// claim, the identity exists. ErrUnavailable: nothing was written.
	// ErrUnconfirmed: it may have been written.
	Commit(ctx context.Context, c Change) (Operation, error)
	// Renew extends the lease of the current attempt to lease from now, if it
	// has not lapsed; ErrStale otherwise.
	Renew(ctx context.Context, id ID, attempt int, lease time.Duration) (Renewal, error)
	// Load and LoadID read one operation; ErrNotFound if there is none.
	Load(ctx context.Context, scope Scope, key Key) (Operation, error)
	LoadID(ctx context.Context, id ID) (Operation, error)
	// Events reads all evidence of an operation, in order.
	Events(ctx context.Context, id ID) ([]Event, error)
	// Due lists up to limit operations that recovery should look at now:
	// unknown ones whose CheckAt has come, and in-progress ones whose lease
	// has lapsed.
	Due(ctx context.Context, limit int) ([]Operation, error)
	// List lists operations, newest first. An in-progress operation whose
	// lease has lapsed counts as unknown.
	List(ctx context.Context, f Filter) iter.Seq2[Operation, error]
	// Close waits for commits under way and releases the store.
	Close() error
}

// Renewal is the answer to Store.Renew.
type Renewal struct {
	Until  time.Time // the new end of the lease
	Cancel bool      // somebody asked to stop the operation
}

// Filter selects operations. Zero fields select everything.
type Filter struct {
	State       State       // as of now, lapsed leases counted as unknown
	Review      bool        // only what waits for a person: unknown without automatic move, and open incidents
	Scope       Scope       // exactly this scope
	Fingerprint Fingerprint // exactly this request
	Since       time.Time   // created at or after
	Limit       int         // at most so many; 0 for all
}

// Change is one event about to be committed: what a store compares and what it
// appends. Make one with Operation.Change.
type Change struct {
	Before Operation
	Event  Event
	After  Operation // as far as the event's time is known before the commit
	Token  ID        // tells this change from every other, also after a lost acknowledgement
}

// Change prepares the event for a commit. The event's At is an estimate of the
// store's clock. It fails with *TransitionError where the state table has no
// such transition.
func (o Operation) Change(ev Event, token ID) (Change, error) {
	after, err := o.Apply(ev)
	if err != nil {
		return Change{}, err
	}
	return Change{Before: o, Event: ev, After: after, Token: token}, nil
}

// Stamped is the operation after the change, with the time at which the store
// committed it.
func (c Change) Stamped(at time.Time) Operation {
	c.Event.At = at
	after, err := c.Before.Apply(c.Event)
	if err != nil || after.State != c.After.State {
		return c.After // a clock difference of an instant never undoes what is durable
	}
	return after
}
