package semel

import (
	"cmp"
	"slices"
	"time"
)

// Transition is one row of the state table.
type Transition struct {
	From State     // empty for an operation nobody claimed
	On   EventKind // what happened
	When string    // the condition, in words; empty for always
	To   State
	test test
	mark mark // raises an incident
}

// Incident reports whether the row raises an incident.
func (t Transition) Incident() bool { return t.mark != none }

// Transitions is the whole state table, in the order in which Apply reads it:
// the first row that matches decides. An event with no row cannot happen.
func Transitions() []Transition { return slices.Clone(transitions) }

var transitions = []Transition{
	{From: "", On: EvClaimed, To: InProgress},

	{From: InProgress, On: EvConfirmed, To: Completed},
	{From: InProgress, On: EvFound, To: Completed},
	{From: InProgress, On: EvRefused, When: "by the current attempt, no other open, no incident open", To: Failed, test: isCurrentAlone},
	{From: InProgress, On: EvRefused, When: "by the current attempt, an older one or an incident open", To: Unknown, test: isCurrent},
	{From: InProgress, On: EvRefused, When: "by an older attempt", To: InProgress},
	{From: InProgress, On: EvRetained, When: "by the current attempt, no incident open", To: Failed, test: isCurrentUndisputed},
	{From: InProgress, On: EvRetained, When: "by the current attempt, an incident open", To: Unknown, test: isCurrent},
	{From: InProgress, On: EvRetained, When: "by an older attempt", To: InProgress},
	{From: InProgress, On: EvLost, When: "by the current attempt; its answer contradicts what is on record", To: Unknown, test: isCurrentDispute, mark: dispute},
	{From: InProgress, On: EvLost, When: "by an older attempt; its answer contradicts what is on record", To: InProgress, test: isDispute, mark: dispute},
	{From: InProgress, On: EvLost, When: "by the current attempt", To: Unknown, test: isCurrent},
	{From: InProgress, On: EvLost, When: "by an older attempt", To: InProgress},
	{From: InProgress, On: EvLapsed, When: "the lease is over", To: Unknown, test: isLapsed},
	{From: InProgress, On: EvCancelAsked, To: InProgress},
	{From: InProgress, On: EvCancelled, When: "by the current attempt, no other open, no incident open", To: Failed, test: isCurrentAlone},
	{From: InProgress, On: EvCancelled, When: "by the current attempt, an older one or an incident open", To: Unknown, test: isCurrent},
	{From: InProgress, On: EvCancelled, When: "by an older attempt", To: InProgress},
	{From: InProgress, On: EvAbsent, To: InProgress},
	{From: InProgress, On: EvNoAnswer, To: InProgress},
	{From: InProgress, On: EvContradiction, To: InProgress, mark: contradiction},
	{From: InProgress, On: EvJoined, To: InProgress},

	{From: Failed, On: EvClaimed, When: "nothing blocks", To: InProgress, test: isUnblocked},
	{From: Failed, On: EvConfirmed, To: Unknown, mark: effectAfterFailure},
	{From: Failed, On: EvFound, To: Unknown, mark: effectAfterFailure},
	{From: Failed, On: EvContradiction, To: Unknown, mark: effectAfterFailure},
	{From: Failed, On: EvRefused, To: Failed},
	{From: Failed, On: EvRetained, To: Failed},
	{From: Failed, On: EvLost, When: "its answer contradicts what is on record", To: Unknown, test: isDispute, mark: dispute},
	{From: Failed, On: EvLost, To: Failed},
	{From: Failed, On: EvAbsent, To: Failed},
	{From: Failed, On: EvNoAnswer, To: Failed},
	{From: Failed, On: EvCancelAsked, To: Failed},
	{From: Failed, On: EvCancelled, To: Failed},
	{From: Failed, On: EvJoined, To: Failed},
	{From: Failed, On: EvExpired, To: Failed},

	{From: Unknown, On: EvClaimed, When: "it can be repeated, nothing blocks", To: InProgress, test: isRepeatable},
	{From: Unknown, On: EvConfirmed, When: "an incident is open", To: Unknown, test: hasIncident},
	{From: Unknown, On: EvConfirmed, To: Completed},
	{From: Unknown, On: EvFound, When: "an incident is open", To: Unknown, test: hasIncident},
	{From: Unknown, On: EvFound, To: Completed},
	{From: Unknown, On: EvAbsent, When: "absence is proven, no incident open", To: Failed, test: isProven},
	{From: Unknown, On: EvAbsent, To: Unknown},
	{From: Unknown, On: EvNoAnswer, To: Unknown},
	{From: Unknown, On: EvRefused, When: "it was the last open attempt, no incident open", To: Failed, test: isLastOpen},
	{From: Unknown, On: EvRefused, To: Unknown},
	{From: Unknown, On: EvRetained, When: "for the current key, no incident open", To: Failed, test: isRetained},
	{From: Unknown, On: EvRetained, To: Unknown},
	{From: Unknown, On: EvCancelled, When: "it was the last open attempt, no incident open", To: Failed, test: isLastOpen},
	{From: Unknown, On: EvCancelled, To: Unknown},
	{From: Unknown, On: EvLost, When: "its answer contradicts what is on record", To: Unknown, test: isDispute, mark: dispute},
	{From: Unknown, On: EvLost, To: Unknown},
	{From: Unknown, On: EvHappened, When: "no incident open", To: Completed, test: hasNoIncident},
	{From: Unknown, On: EvDidNotHappen, When: "absence had its time, or forced; no incident open", To: Failed, test: isSettleable},
	{From: Unknown, On: EvCancelAsked, To: Unknown},
	{From: Unknown, On: EvContradiction, To: Unknown, mark: contradiction},
	{From: Unknown, On: EvIncident, When: "found completed", To: Completed, test: correctsToCompleted},
	{From: Unknown, On: EvIncident, When: "found failed; absence had its time, or forced", To: Failed, test: correctsToFailed},
	{From: Unknown, On: EvIncident, When: "still unknown", To: Unknown, test: correctsToUnknown},
	{From: Unknown, On: EvJoined, To: Unknown},

	{From: Completed, On: EvConfirmed, When: "the same effect", To: Completed, test: isSameEffect},
	{From: Completed, On: EvConfirmed, When: "a second, different effect", To: Completed, mark: duplicateEffect},
	{From: Completed, On: EvFound, When: "the same effect", To: Completed, test: isSameEffect},
	{From: Completed, On: EvFound, When: "a second, different effect", To: Completed, mark: duplicateEffect},
	{From: Completed, On: EvRefused, When: "by the attempt that completed it, or the only one that could have", To: Completed, test: isCause, mark: contradiction},
	{From: Completed, On: EvRefused, To: Completed},
	{From: Completed, On: EvRetained, When: "for the current key", To: Completed, test: isCurrentKey, mark: contradiction},
	{From: Completed, On: EvRetained, To: Completed},
	{From: Completed, On: EvContradiction, To: Completed, mark: contradiction},
	{From: Completed, On: EvAbsent, When: "absence is proven", To: Completed, test: isMissing, mark: contradiction},
	{From: Completed, On: EvAbsent, To: Completed},
	{From: Completed, On: EvNoAnswer, To: Completed},
	{From: Completed, On: EvLost, When: "its answer contradicts what is on record", To: Completed, test: isDispute, mark: dispute},
	{From: Completed, On: EvLost, To: Completed},
	{From: Completed, On: EvCancelAsked, To: Completed},
	{From: Completed, On: EvCancelled, When: "by the attempt that completed it, or the only one that could have", To: Completed, test: isCause, mark: contradiction},
	{From: Completed, On: EvCancelled, To: Completed},
	{From: Completed, On: EvIncident, When: "it stands", To: Completed, test: correctsToCompleted},
	{From: Completed, On: EvIncident, When: "found failed; absence had its time, or forced", To: Failed, test: correctsToFailed},
	{From: Completed, On: EvIncident, When: "found unknown", To: Unknown, test: correctsToUnknown},
	{From: Completed, On: EvJoined, To: Completed},
	{From: Completed, On: EvExpired, When: "no incident open", To: Completed, test: hasNoIncident},
}

// test is the condition of a row, and mark the incident that it raises. They
// are names and not functions, so that Apply needs no memory for what it asks.
type (
	test int
	mark int
)

const (
	always test = iota
	isCurrent
	isCurrentAlone
	isCurrentUndisputed
	isCurrentDispute
	isDispute
	isLapsed
	hasIncident
	hasNoIncident
	isUnblocked
	isRepeatable
	isCurrentKey
	isRetained
	isCause
	isLastOpen
	isProven
	isMissing
	isSettleable
	correctsToCompleted
	correctsToFailed
	correctsToUnknown
	isSameEffect
)

const (
	none mark = iota
	effectAfterFailure
	dispute
	duplicateEffect
	contradiction
)

// holds reports whether the test is true of an event that meets o.
func (t test) holds(o *Operation, ev *Event) bool {
	switch t {
	case always:
		return true
	case isCurrent:
		return ev.Attempt == o.Attempt
	case isCurrentAlone:
		return ev.Attempt == o.Attempt && o.Incident == "" && !o.openBesides(ev.Attempt)
	case isCurrentUndisputed:
		return ev.Attempt == o.Attempt && o.Incident == ""
	case isCurrentDispute:
		return ev.Attempt == o.Attempt && ev.Incident != ""
	case isDispute:
		return ev.Incident != ""
	case isLapsed:
		return !ev.At.Before(o.LeaseUntil)
	case hasIncident:
		return o.Incident != ""
	case hasNoIncident:
		return o.Incident == ""
	case isUnblocked:
		return o.unblocked(ev)
	case isRepeatable:
		// It says nothing about a key's window: the claim's SendBy ends within
		// it, and a claim that came too late sends nothing.
		return o.Contract.Protection.Repeatable() && o.unblocked(ev)
	case isCurrentKey:
		return o.currentKey(ev)
	case isRetained:
		return o.Incident == "" && o.currentKey(ev)
	case isCause:
		return o.cause(ev)
	case isLastOpen:
		return o.Incident == "" && !o.openBesides(ev.Attempt) && o.has(ev.Attempt)
	case isProven:
		return o.proven(ev)
	case isMissing:
		return o.missing(ev)
	case isSettleable:
		return o.Incident == "" && o.hadItsTime(ev)
	case correctsToCompleted:
		return o.Incident != "" && ev.Correction == Completed
	case correctsToFailed:
		return o.Incident != "" && ev.Correction == Failed && o.hadItsTime(ev)
	case correctsToUnknown:
		return o.Incident != "" && ev.Correction == Unknown
	case isSameEffect:
		return o.sameEffect(ev)
	}
	return false
}

func (o *Operation) unblocked(ev *Event) bool {
	return o.Incident == "" && !o.Expired && (ev.Force || !o.Cancel && !o.Cancelled)
}

func (o *Operation) currentKey(ev *Event) bool { return o.generation(ev.Attempt) == o.Generation }

// cause: the attempt completed the operation, or a lookup or a person did
// and it is the only one that could have had the effect.
func (o *Operation) cause(ev *Event) bool {
	if o.winner != 0 || !o.has(ev.Attempt) {
		return ev.Attempt != 0 && ev.Attempt == o.winner
	}
	return o.Attempts[ev.Attempt-1].Open && !o.openBesides(ev.Attempt)
}

func (o *Operation) proven(ev *Event) bool {
	at, ok := o.ProofAt(o.Contract)
	return ok && o.Incident == "" && !ev.AskedAt.IsZero() && !ev.AskedAt.Before(at)
}

// missing: absence is proven, over every attempt that could have had the
// effect of a completed operation.
func (o *Operation) missing(ev *Event) bool {
	all := *o
	all.Attempts = slices.Clone(o.Attempts)
	for i := range all.Attempts {
		a := &all.Attempts[i]
		a.Open = a.Outcome != EvRefused && a.Outcome != EvCancelled
	}
	return all.proven(ev)
}

// hadItsTime: a person's "it did not happen" needs the time after which no
// attempt can still act, or an explicit override with a reason.
func (o *Operation) hadItsTime(ev *Event) bool {
	return ev.Force && ev.Reason != "" || !ev.At.Before(o.QuietAt())
}

// sameEffect: the same identifier, the same attempt speaking twice, a lookup
// that names no identifier, or a destination that promises one effect. Where
// doing it again changes nothing, each time may have an identifier of its own.
func (o *Operation) sameEffect(ev *Event) bool {
	if p := o.Contract.Protection; p == Commutes || p == Absolute {
		return true
	}
	known, told := "", ev.reference()
	if o.Result != nil {
		known = o.Result.Reference
	}
	if known != "" && told != "" {
		return known == told
	}
	if ev.Kind == EvFound {
		return true
	}
	switch o.Contract.Protection {
	case Transactional:
		return true
	case Keyed:
		return o.generation(ev.Attempt) == o.generation(o.winner) // one effect per key
	case Commutes, Absolute, Lookup, Unprotected:
	}
	if o.winner != 0 && ev.Attempt != 0 {
		return o.winner == ev.Attempt
	}
	could := 0 // attempts that either report may speak of
	for _, a := range o.Attempts {
		if a.Open || a.Number == o.winner || a.Number == ev.Attempt {
			could++
		}
	}
	return could <= 1
}

func (o *Operation) has(attempt int) bool { return attempt >= 1 && attempt <= len(o.Attempts) }

// QuietAt is the first moment at which no open attempt can still act, as far
// as the contract declares it: the last moment its bytes could leave plus the
// longest processing, or the attempt timeout where that is undeclared.
func (o *Operation) QuietAt() time.Time {
	var at time.Time
	for _, a := range o.Attempts {
		if !a.Open {
			continue
		}
		sent := a.ClosedAt
		if sent.IsZero() {
			sent = a.SendBy.Add(o.Contract.writeTimeout())
		}
		if sent.After(at) {
			at = sent
		}
	}
	if at.IsZero() {
		return at
	}
	return at.Add(o.Contract.processing()).Add(o.Contract.VisibleAfter).Add(o.Contract.skew())
}

// raise puts the row's incident on o.
func (m mark) raise(o *Operation, ev *Event) {
	switch m {
	case none:
		return
	case dispute:
		o.Incident = ev.Incident
		return
	case effectAfterFailure:
		o.Incident = "an effect was reported after the operation was settled as failed"
	case duplicateEffect:
		o.Incident = "duplicate effect: a second, different effect was reported"
	case contradiction:
		o.Incident = "contradicting evidence: " + cmp.Or(ev.Reason, string(ev.Kind))
	}
	if r := ev.reference(); r != "" {
		o.Incident += " (" + r + ")"
	}
}
