package semel

import (
	"errors"
	"fmt"
	"strings"
)

// What a store answers.
var (
	// ErrNotFound: no operation has this identity.
	ErrNotFound = errors.New("no such operation")
	// ErrStale: the operation changed since it was read; read it and decide again.
	ErrStale = errors.New("the operation changed meanwhile")
	// ErrUnavailable: the store could not work and wrote nothing.
	ErrUnavailable = errors.New("the store is unavailable")
	// ErrRestored: the database lacks claims that were made, since it was
	// restored from an older copy; it takes no new ones until a person accepts
	// that. Wraps ErrUnavailable.
	ErrRestored = fmt.Errorf("%w: the database was restored from an older copy", ErrUnavailable)
	// ErrUnconfirmed: the store may have written; the same change with the same
	// token, repeated, tells.
	ErrUnconfirmed = errors.New("the store did not confirm the commit")
)

// InputError says that something given to Semel cannot be used, and how to
// mend it. Nothing was recorded or sent.
type InputError struct {
	Field   string // what is wrong, for example "key" or "body.amount"
	Problem string // what is wrong with it
	Hint    string // what to do next
}

func (e *InputError) Error() string {
	if e.Hint == "" {
		return e.Field + " " + e.Problem
	}
	return e.Field + " " + e.Problem + ": " + e.Hint
}

// TransitionError says that an event cannot happen to an operation in its
// state. Nothing was changed.
type TransitionError struct {
	State  State
	Event  EventKind
	Reason string
}

func (e *TransitionError) Error() string {
	return fmt.Sprintf("an operation that is %s cannot take %q: %s", e.State.Words(), e.Event, e.Reason)
}

// NotAskedError is the only error of Guard.Do and Action.Do. This call sent
// nothing, and it says nothing about earlier calls: the effect may have
// happened before. Ask again under the same key. It is never a reason to
// perform the effect in another way.
type NotAskedError struct {
	Scope Scope
	Key   Key
	Err   error // why Semel could not work
}

func (e *NotAskedError) Error() string {
	return fmt.Sprintf("not asked: %v; this call sent nothing, earlier ones may have: ask again under key %q", e.Err, e.Key)
}

// Unwrap returns why Semel could not work.
func (e *NotAskedError) Unwrap() error { return e.Err }

// fieldList renders names of fields for a conflict, at most ten of them.
func fieldList(fields []string) string {
	if len(fields) > 10 {
		return strings.Join(fields[:10], ", ") + fmt.Sprintf(" and %d more", len(fields)-10)
	}
	return strings.Join(fields, ", ")
}
