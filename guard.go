package semel

import (
	"context"
	"time"
)

// Guard performs operations: package engine implements it. The only error of
// Do is *NotAskedError; every outcome is a state to read.
type Guard interface {
	Do(ctx context.Context, c Call) (Outcome, error)
}

// Call is one request to perform an operation.
type Call struct {
	// Scope is used as it is. Empty, it is made of the guard's tenant,
	// Request.Connection and Action.
	Scope   Scope
	Action  string
	Key     Key
	Request Request
	// Contract binds a new operation; an old one keeps the contract of its
	// first claim, where this one is not stricter.
	Contract    Contract
	Destination Destination
	// Withheld holds the values of the headers that Request.Withheld names.
	Withheld map[string]string
	// Wait is how long to wait for an attempt that somebody else is running.
	Wait time.Duration
	// Source says where the request came from, for the record of work that one
	// key absorbed.
	Source string
}

// Status is what a caller can read from an Outcome: the four states, or why
// the request was refused.
type Status string

// The statuses. The last four say that this request was refused.
const (
	StatusCompleted  Status = "completed"
	StatusFailed     Status = "failed"
	StatusUnknown    Status = "unknown"
	StatusInProgress Status = "in_progress"
	StatusConflict   Status = "conflict" // the key was used for another request
	StatusExpired    Status = "expired"  // the record of this key has expired
	StatusIncident   Status = "incident" // contradicting evidence, a person must look
	StatusUnsafe     Status = "unsafe"   // what was asked could make it happen twice
)

// Outcome is what is known after a request.
type Outcome struct {
	Status    Status
	Operation Operation
	// Replayed: this request sent nothing, the answer was on record.
	Replayed bool
	// Fields names what differs, for StatusConflict.
	Fields []string
	// Next is what happens next, and why.
	Next Move
	// Warnings are findings that a person should see, for example the same
	// request under a fresh key.
	Warnings []string
}

// Refusal is the sentence for a status that refused the request, empty for the
// four states.
func (o *Outcome) Refusal() string {
	switch o.Status {
	case StatusConflict:
		return "this key belongs to another request; different: " + fieldList(o.Fields) + "; the first request is unchanged, and nothing was sent"
	case StatusExpired:
		return "the record of this key has expired, so nobody can tell whether it happened; nothing was sent"
	case StatusIncident:
		return o.Operation.Incident + "; nothing was sent, a person must close the incident"
	case StatusUnsafe:
		return o.Next.Reason
	case StatusCompleted, StatusFailed, StatusUnknown, StatusInProgress:
	}
	return ""
}
