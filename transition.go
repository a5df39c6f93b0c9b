package semel

import (
	"slices"
	"time"
)

// Transition is one row of the state table.
type Transition struct {
	From State     // empty for an operation nobody claimed
	On   EventKind // what happened
	When string    // the condition, in words; empty for always
	To   State
	test func(o *Operation, ev *Event) bool
	mark func(o *Operation, ev *Event) // raises an incident
}

// Incident reports whether the row raises an incident.
func (t Transition) Incident() bool { return t.mark != nil }

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
	{From: Unknown, On: EvIncident, When: "found completed", To: Completed, test: corrects(Completed)},
	{From: Unknown, On: EvIncident, When: "found failed; absence had its time, or forced", To: Failed, test: correctsToFailed},
	{From: Unknown, On: EvIncident, When: "still unknown", To: Unknown, test: corrects(Unknown)},
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
	{From: Completed, On: EvIncident, When: "it stands", To: Completed, test: corrects(Completed)},
	{From: Completed, On: EvIncident, When: "found failed; absence had its time, or forced", To: Failed, test: correctsToFailed},
	{From: Completed, On: EvIncident, When: "found unknown", To: Unknown, test: corrects(Unknown)},
	{From: Completed, On: EvJoined, To: Completed},
	{From: Completed, On: EvExpired, When: "no incident open", To: Completed, test: hasNoIncident},
}

func isCurrent(o *Operation, ev *Event) bool { return ev.Attempt == o.Attempt }
func isCurrentAlone(o *Operation, ev *Event) bool {
	return isCurrentUndisputed(o, ev) && !o.openBesides(ev.Attempt)
}

func isCurrentUndisputed(o *Operation, ev *Event) bool { return isCurrent(o, ev) && o.Incident == "" }
func isLapsed(o *Operation, ev *Event) bool            { return !ev.At.Before(o.LeaseUntil) }
func hasIncident(o *Operation, _ *Event) bool          { return o.Incident != "" }
func hasNoIncident(o *Operation, _ *Event) bool        { return o.Incident == "" }
func isUnblocked(o *Operation, ev *Event) bool {
	return o.Incident == "" && !o.Expired && (ev.Force || !o.Cancel && !o.Cancelled)
}

// isRepeatable says nothing about a key's window: the claim's SendBy ends
// within it, and a claim that came too late sends nothing.
func isRepeatable(o *Operation, ev *Event) bool {
	return o.Contract.Protection.Repeatable() && isUnblocked(o, ev)
}

func isCurrentKey(o *Operation, ev *Event) bool { return o.generation(ev.Attempt) == o.Generation }
func isRetained(o *Operation, ev *Event) bool   { return o.Incident == "" && isCurrentKey(o, ev) }

func isDispute(_ *Operation, ev *Event) bool        { return ev.Incident != "" }
func isCurrentDispute(o *Operation, ev *Event) bool { return isCurrent(o, ev) && isDispute(o, ev) }

// isCause: the attempt completed the operation, or a lookup or a person did
// and it is the only one that could have had the effect.
func isCause(o *Operation, ev *Event) bool {
	if o.winner != 0 || !o.has(ev.Attempt) {
		return ev.Attempt != 0 && ev.Attempt == o.winner
	}
	return o.Attempts[ev.Attempt-1].Open && !o.openBesides(ev.Attempt)
}

func isLastOpen(o *Operation, ev *Event) bool {
	return o.Incident == "" && !o.openBesides(ev.Attempt) && o.has(ev.Attempt)
}

func isProven(o *Operation, ev *Event) bool {
	at, ok := o.ProofAt(o.Contract)
	return ok && o.Incident == "" && !ev.AskedAt.IsZero() && !ev.AskedAt.Before(at)
}

// isMissing: absence is proven, over every attempt that could have had the
// effect of a completed operation.
func isMissing(o *Operation, ev *Event) bool {
	all := *o
	all.Attempts = slices.Clone(o.Attempts)
	for i := range all.Attempts {
		a := &all.Attempts[i]
		a.Open = a.Outcome != EvRefused && a.Outcome != EvCancelled
	}
	return isProven(&all, ev)
}

// isSettleable: a person's "it did not happen" needs the time after which no
// attempt can still act, or an explicit override with a reason.
func isSettleable(o *Operation, ev *Event) bool { return o.Incident == "" && hadItsTime(o, ev) }

func hadItsTime(o *Operation, ev *Event) bool {
	return ev.Force && ev.Reason != "" || !ev.At.Before(o.QuietAt())
}

func correctsToFailed(o *Operation, ev *Event) bool {
	return corrects(Failed)(o, ev) && hadItsTime(o, ev)
}

func corrects(s State) func(*Operation, *Event) bool {
	return func(o *Operation, ev *Event) bool { return o.Incident != "" && ev.Correction == s }
}

// isSameEffect: the same identifier, the same attempt speaking twice, a lookup
// that names no identifier, or a destination that promises one effect.
func isSameEffect(o *Operation, ev *Event) bool {
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
	case Transactional, Commutes, Absolute:
		return true
	case Keyed:
		return o.generation(ev.Attempt) == o.generation(o.winner) // one effect per key
	case Lookup, Unprotected:
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

func effectAfterFailure(o *Operation, ev *Event) {
	o.Incident = "an effect was reported after the operation was settled as failed"
	contradictedBy(o, ev)
}

func dispute(o *Operation, ev *Event) { o.Incident = ev.Incident }

func duplicateEffect(o *Operation, ev *Event) {
	o.Incident = "duplicate effect: a second, different effect was reported"
	contradictedBy(o, ev)
}

func contradiction(o *Operation, ev *Event) {
	o.Incident = "contradicting evidence: "
	if ev.Reason != "" {
		o.Incident += ev.Reason
	} else {
		o.Incident += string(ev.Kind)
	}
	contradictedBy(o, ev)
}

func contradictedBy(o *Operation, ev *Event) {
	if r := ev.reference(); r != "" {
		o.Incident += " (" + r + ")"
	}
}
