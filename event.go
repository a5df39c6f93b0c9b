package semel

import "time"

// State is what is known about an operation.
type State string

// The four states. There are never fewer: a timeout is not a failure.
const (
	InProgress State = "in_progress" // an attempt holds the claim
	Completed  State = "completed"   // effect and result are established
	Failed     State = "failed"      // evidence that nothing happened
	Unknown    State = "unknown"     // nobody knows yet
)

// Words is the state as people read it.
func (s State) Words() string {
	switch s {
	case InProgress:
		return "in progress"
	case Completed:
		return "completed"
	case Failed:
		return "failed, nothing happened"
	case Unknown:
		return "outcome unknown"
	}
	return "not claimed"
}

// EventKind names one sort of evidence.
type EventKind string

// The kinds of evidence.
const (
	EvClaimed   EventKind = "claimed"   // an attempt begins; committed before the first byte can leave
	EvConfirmed EventKind = "confirmed" // an attempt's answer, late answer or callback: it happened
	EvRefused   EventKind = "refused"   // this attempt had no effect
	EvRetained  EventKind = "retained"  // the destination's error for this key: speaks for all attempts
	EvLost      EventKind = "lost"      // this attempt ended without an answer that tells
	EvLapsed    EventKind = "lapsed"    // the lease of the current attempt ran out
	EvFound     EventKind = "found"     // a lookup found the effect
	EvAbsent    EventKind = "absent"    // a lookup found nothing
	EvNoAnswer  EventKind = "no_answer" // a lookup gave no evidence

	EvHappened      EventKind = "happened"         // a person: it happened
	EvDidNotHappen  EventKind = "did_not_happen"   // a person: it did not happen
	EvCancelAsked   EventKind = "cancel_requested" // somebody wants it stopped
	EvCancelled     EventKind = "cancelled"        // stopped before the first byte
	EvContradiction EventKind = "contradiction"    // evidence against the outcome, from outside
	EvIncident      EventKind = "incident_closed"  // a person closed the open incident
	EvJoined        EventKind = "joined"           // another request was absorbed by this operation
	EvExpired       EventKind = "expired"          // retention is over; body and result are gone
)

// Event is one recorded fact about an operation. Evidence is append-only. The
// store stamps At with its own clock when it commits the event.
type Event struct {
	Kind EventKind `json:"kind"`
	At   time.Time `json:"-"`
	// Attempt is the attempt that the event speaks of; 0 for none.
	Attempt int `json:"attempt,omitzero"`
	// By is who says so: a worker, a person, a source.
	By string `json:"by,omitzero"`
	// Reason says why, in words for people.
	Reason string `json:"reason,omitzero"`
	// Reference is the destination's identifier, or a person's proof. A
	// Reference in Result goes before it.
	Reference string `json:"reference,omitzero"`
	// Result is set for EvConfirmed, EvFound, EvHappened and, where the
	// destination answered, for EvRefused, EvRetained and EvLost.
	Result *Result `json:"result,omitzero"`

	// Unsent belongs to EvRefused: the attempt ended before it tried to send.
	Unsent bool `json:"unsent,omitzero"`

	// Lease and SendWithin belong to EvClaimed: how long the claim is held
	// unless renewed, and how long after it the first byte may leave.
	Lease      time.Duration `json:"lease,omitzero"`
	SendWithin time.Duration `json:"send_within,omitzero"`
	// Token belongs to EvClaimed: what tells this claim from another's with the
	// same number. Zero for the first attempt, whose token is the ID.
	Token ID `json:"token,omitzero"`
	// Approval belongs to EvClaimed: what allows this attempt, if it needs to be
	// allowed. The store checks it inside the claim. ApprovedUntil is its end.
	Approval      ID        `json:"approval,omitzero"`
	ApprovedUntil time.Time `json:"approved_until,omitzero"`
	// Unapproved belongs to EvLost: the approval of the operation has ended, so
	// nothing is sent again.
	Unapproved bool `json:"unapproved,omitzero"`
	// Incident belongs to EvLost: the answer contradicts what is on record, for
	// example a key that the destination saw with another request.
	Incident string `json:"incident,omitzero"`
	// Closed belongs to EvLost: the attempt's own worker saw its connection
	// closed, so nothing more can leave.
	Closed bool `json:"closed,omitzero"`
	// CheckAfter belongs to EvLost: when the destination asked to be asked
	// again, because it is still working.
	CheckAfter time.Duration `json:"check_after,omitzero"`
	// Person belongs to EvLost and EvNoAnswer: no machine can settle this, for
	// example a partial answer, or a lookup that found something else.
	Person bool `json:"person,omitzero"`
	// AskedAt belongs to EvFound, EvAbsent and EvNoAnswer: when the lookup was
	// sent, by the store's clock.
	AskedAt time.Time `json:"asked_at,omitzero"`
	// Force belongs to EvDidNotHappen and EvIncident, where a person overrides
	// the time that absence needs and must give a Reason, and to EvClaimed,
	// where a person restarts what was cancelled.
	Force bool `json:"force,omitzero"`
	// NewKey belongs to EvDidNotHappen and EvIncident: the next attempt uses a
	// new destination key.
	NewKey bool `json:"new_key,omitzero"`
	// Correction belongs to EvIncident: the state that a person found true.
	Correction State `json:"correction,omitzero"`
}

// reference is the identifier that the event names.
func (ev *Event) reference() string {
	if ev.Result != nil && ev.Result.Reference != "" {
		return ev.Result.Reference
	}
	return ev.Reference
}

// result is what the event says of the effect, with its identifier; nil when
// it says nothing. It shares no memory with the event but the body's bytes.
func (ev *Event) result() *Result {
	r := Result{}
	if ev.Result != nil {
		r = *ev.Result
	} else if ev.Reference == "" {
		return nil
	}
	r.Reference = ev.reference()
	return &r
}
