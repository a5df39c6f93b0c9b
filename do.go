package semel

import (
	"errors"
	"fmt"
)

// Do performs an action as a step of a run and returns the destination's
// answer. The error is a *FailedError: nothing happened. An outcome that nobody
// knows suspends the run until it is settled; a request that differs from the
// recorded one, an expired record, an open incident or an answer that cannot be
// read holds it for a person.
func Do[In, Out any](ctx Context, a Action[In, Out], in In) (Out, error) {
	return Retrying(ctx, a, in, Retry{})
}

// Retrying is Do that tries again after a known failure. When the attempts are
// used up, the error is a *FailedError with Exhausted: a run that returns it is
// held, and can be retried under the same keys.
func Retrying[In, Out any](ctx Context, a Action[In, Out], in In, r Retry) (Out, error) {
	var out Out
	call, keyless, err := a.stepCall(in)
	if err != nil {
		return out, err
	}
	taken := false
	read := func(answer *Result) (err error) {
		taken = true
		out, err = a.read(answer)
		return err
	}
	rec, err := ctx.step(a.Name, &DoStep{Call: call, Keyless: keyless, Retry: r, Read: read})
	if err != nil || taken {
		return out, err
	}
	if err := read(rec.Answer()); err != nil {
		return out, &UnreadableError{Path: rec.Path, Err: err}
	}
	return out, nil
}

// stepCall is call for a step of a run: an action without a Key is named by
// the run.
func (a Action[In, Out]) stepCall(in In) (call Call, keyless bool, err error) {
	if a.Key == nil {
		keyless = true
		a.Key = func(In) string { return "-" }
	}
	call, err = a.call(in)
	return call, keyless, err
}

// FailedError says that a step failed, and that nothing happened. Of an effect
// that commutes and has no operation, it says so of the last try: an earlier one
// whose answer was lost may have happened.
type FailedError struct {
	Path   string
	Reason string
	// Operation is zero for a step without one.
	Operation Operation
	// Exhausted: all attempts that its Retry allows were made.
	Exhausted bool
}

func (e *FailedError) Error() string {
	tries := ""
	if e.Exhausted {
		tries = fmt.Sprintf(" after %d attempts", e.Operation.Attempt)
	}
	return fmt.Sprintf("step %s failed%s, nothing happened: %s", e.Path, tries, e.Reason)
}

// UnreadableError says that an effect happened, and that its recorded answer
// could not be read. A run that returns it is held: the effect is not undone.
type UnreadableError struct {
	Path string
	Err  error
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("step %s happened, but its answer cannot be read: %v", e.Path, e.Err)
}

// Unwrap returns why the answer cannot be read.
func (e *UnreadableError) Unwrap() error { return e.Err }

// Errors of steps that have no effect.
var (
	// ErrTimedOut: what the step waited for did not come in time.
	ErrTimedOut = errors.New("it did not come in time")
	// ErrRejected: a person did not approve.
	ErrRejected = errors.New("it was not approved")
)
