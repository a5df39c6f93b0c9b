package semel

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
)

// Effect says how an effect is sent and what its contract is.
type Effect[In, Out any] struct {
	// Connection names the logical destination; it is part of the scope.
	Connection  string
	Contract    Contract
	Destination Destination
	// Request turns the input into the bytes that every attempt sends. Nil
	// sends the input as JSON to a destination of kind "call".
	Request func(In) (Request, error)
	// Result reads the destination's answer, which is never nil, but empty where
	// nobody recorded one. A nil Result reads its body as JSON.
	Result func(*Result) (Out, error)
}

// Action is a consequential action: what identifies one, and how it is sent.
// An Action is a value; declare it once, as a variable.
type Action[In, Out any] struct {
	Name string
	// Owner is told about an outcome that only a person can settle.
	Owner string
	// Key names the work that the input describes. It must depend on nothing
	// else: it is called twice, and must agree with itself.
	Key  func(In) string
	Send Effect[In, Out]
	// Volatile names members of the JSON body that differ from call to call
	// and are not part of the request's identity.
	Volatile []string
}

// Done is the Outcome of an Action.
type Done[Out any] struct {
	Outcome
	value Out
	err   error
}

// Value is the destination's answer. ok is false unless the operation is
// completed and its recorded answer can be read as an Out.
func (d Done[Out]) Value() (out Out, ok bool) {
	return d.value, d.Status == StatusCompleted && d.err == nil
}

// Unreadable says why the recorded answer of a completed operation could not
// be read; nil otherwise. The effect did happen.
func (d Done[Out]) Unreadable() error { return d.err }

// Do performs the action for in, or hands back what is known about it: the
// same input is the same operation, however often and wherever it is asked
// for. The error, always *NotAskedError, says only that this call sent
// nothing; everything else is a status to read.
func (a Action[In, Out]) Do(ctx context.Context, g Guard, in In) (Done[Out], error) {
	call, err := a.call(in)
	if err != nil {
		return Done[Out]{}, &NotAskedError{Key: call.Key, Err: err}
	}
	outcome, err := g.Do(ctx, call)
	if err != nil {
		return Done[Out]{}, err
	}
	done := Done[Out]{Outcome: outcome}
	if outcome.Status != StatusCompleted {
		return done, nil
	}
	done.value, done.err = a.read(outcome.Operation.Result)
	return done, nil
}

func (a Action[In, Out]) call(in In) (Call, error) {
	if a.Name == "" || a.Key == nil {
		return Call{}, &InputError{Field: "action", Problem: "has no Name or no Key", Hint: "both identify the operation"}
	}
	key := a.Key(in)
	if again := a.Key(in); again != key {
		return Call{}, &InputError{
			Field: "key", Problem: fmt.Sprintf("is %q and then %q for one input", key, again),
			Hint: "make it from the input alone, without time, randomness or counters",
		}
	}
	request, err := a.request(in)
	if err != nil {
		return Call{Key: Key(key)}, err
	}
	d := a.Definition()
	request.Connection, request.Action = d.Connection, d.Action
	request.Volatile = slices.Concat(request.Volatile, a.Volatile)
	return Call{Action: d.Action, Key: Key(key), Request: request, Contract: d.Contract, Destination: d.Destination}, nil
}

// Definition is what recovery needs to know of an Action: how an operation
// that it started is sent and looked up.
type Definition struct {
	Connection, Action string
	Contract           Contract
	Destination        Destination
}

// Definition returns the untyped part of the action.
func (a Action[In, Out]) Definition() Definition {
	contract := a.Send.Contract
	if a.Owner != "" {
		contract.Owner = a.Owner
	}
	return Definition{Connection: a.Send.Connection, Action: a.Name, Contract: contract, Destination: a.Send.Destination}
}

func (a Action[In, Out]) request(in In) (Request, error) {
	if a.Send.Request != nil {
		return a.Send.Request(in)
	}
	body, err := json.Marshal(in)
	if err != nil {
		return Request{}, fmt.Errorf("encode input: %w", err)
	}
	return Request{Kind: "call", Body: body, MediaType: "application/json"}, nil
}

func (a Action[In, Out]) read(r *Result) (Out, error) {
	if a.Send.Result != nil {
		if r == nil {
			r = &Result{} // a person said that it happened, and not more
		}
		return a.Send.Result(r)
	}
	var out Out
	if r == nil || len(r.Body) == 0 {
		return out, nil
	}
	if r.Truncated() {
		return out, fmt.Errorf("the answer of %d bytes was kept only in part", r.Size)
	}
	err := json.Unmarshal(r.Body, &out)
	return out, err
}
