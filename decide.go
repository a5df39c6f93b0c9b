package semel

import (
	"fmt"
	"strings"
	"time"
)

// MoveKind names what is safe to do next.
type MoveKind string

// The moves.
const (
	MoveSend   MoveKind = "send"   // claim and send: nothing is known to have happened
	MoveResend MoveKind = "resend" // send again under the same destination key
	MoveLookup MoveKind = "lookup" // ask the destination what became of it
	MoveWait   MoveKind = "wait"   // an attempt is running
	MovePerson MoveKind = "person" // only a person can tell
	MoveDone   MoveKind = "done"   // nothing is left to do
)

// Move is what Decide answers.
type Move struct {
	Kind MoveKind
	// At is when: for a resend or lookup the earliest time at which recovery
	// does it by itself, for a wait the time to ask again.
	At time.Time
	// Caller: only a caller who gives the withheld headers again can send.
	Caller bool
	// Reason says why, in words for people.
	Reason string
}

// Decide says what is safe to do next with o as of now, by the store's clock,
// under contract c. It is what recovery follows by itself: it keeps pauses and
// budgets.
func Decide(o *Operation, c Contract, now time.Time) Move { return decide(o, c, now, false) }

// DecideAsked is Decide for somebody who asks now: a person or a caller who
// tries again. Pauses and budgets do not bind it; windows and proof do.
func DecideAsked(o *Operation, c Contract, now time.Time) Move { return decide(o, c, now, true) }

func decide(o *Operation, c Contract, now time.Time, asked bool) Move {
	state := o.StateAt(now)
	if o.Incident != "" {
		return Move{Kind: MovePerson, Reason: o.Incident + "; nothing is sent until a person closes this incident"}
	}
	switch state {
	case InProgress:
		return Move{Kind: MoveWait, At: o.LeaseUntil, Reason: "an attempt is running"}
	case Completed:
		if o.Expired {
			return Move{Kind: MoveDone, Reason: "it happened; its record has expired, and the answer with it"}
		}
		return Move{Kind: MoveDone, Reason: "it happened; the recorded answer is handed back"}
	case Failed:
		return decideFailed(o, c)
	case Unknown:
		return decideUnknown(o, c, now, asked)
	}
	return Move{Kind: MoveSend, Reason: "nobody has claimed it"}
}

func decideFailed(o *Operation, c Contract) Move {
	switch {
	case o.Expired:
		return Move{Kind: MoveDone, Reason: "nothing happened; its record has expired"}
	case o.Cancelled || o.Cancel:
		return Move{Kind: MovePerson, Reason: "it was cancelled before anything was sent; only a person may start it again"}
	case c.OnFailed == ReturnFailed:
		return Move{Kind: MoveDone, Reason: "nothing happened, and the contract hands this failure back"}
	}
	return Move{Kind: MoveSend, Reason: "nothing happened; safe to try again"}
}

func decideUnknown(o *Operation, c Contract, now time.Time, asked bool) Move {
	if o.Person && o.Reason != "" {
		return Move{Kind: MovePerson, Reason: o.Reason}
	}
	if o.Person {
		return Move{Kind: MovePerson, Reason: "the evidence is such that only a person can tell whether it happened"}
	}
	if m, ok := decideResend(o, c, now, asked); ok {
		return m
	}
	if m, ok := decideLookup(o, c, now, asked); ok {
		return m
	}
	return Move{Kind: MovePerson, Reason: whyPerson(o, c, now)}
}

func decideResend(o *Operation, c Contract, now time.Time, asked bool) (Move, bool) {
	why := ""
	switch c.Protection {
	case Commutes:
		why = "sending it again changes nothing"
	case Absolute:
		why = "it sets the same value again"
	case Keyed:
		if !now.Before(o.WindowEnd(c)) {
			return Move{}, false
		}
		why = "the destination knows the key until " + o.KeySince.Add(c.Window).UTC().Format(time.RFC3339)
	case Transactional, Lookup, Unprotected:
		return Move{}, false
	}
	if o.Cancel || !asked && o.Attempt >= c.Budget() || !o.approvedAt(now) {
		return Move{}, false
	}
	at := later(o.triedAt.Add(c.backoff(o.Attempt)), o.notBefore)
	if asked {
		at = now
	}
	if c.Protection == Keyed && !at.Before(o.WindowEnd(c)) || !o.approvedAt(at) {
		return Move{}, false
	}
	m := Move{Kind: MoveResend, At: at, Reason: "confirmation unavailable; the original request is sent again under the same key: " + why}
	if len(o.Request.Withheld) > 0 {
		m.Caller = true
		m.Reason += "; it needs " + strings.Join(o.Request.Withheld, ", ") + ", which is not stored: run the same command again"
	}
	return m, true
}

func decideLookup(o *Operation, c Contract, now time.Time, asked bool) (Move, bool) {
	if !c.looksUp() {
		return Move{}, false
	}
	proof, provable := o.ProofAt(c)
	if !asked && o.Looks >= c.Budget() && (!provable || !o.lookedAt.Before(proof)) {
		return Move{}, false
	}
	at := later(o.triedAt.Add(c.backoff(o.Looks+1)), o.notBefore)
	if provable && (o.Looks >= 3 || at.Before(proof) && at.Add(c.backoff(o.Looks+2)).After(proof)) {
		at = later(at, proof)
	}
	if provable && o.lookedAt.Before(proof) && at.After(proof) {
		at = later(proof, o.notBefore) // however often it was asked for before, the first look that can prove is not put off
	}
	if asked {
		at = now
	}
	reason := "confirmation unavailable; the destination is asked what became of the original request"
	if provable && now.Before(proof) {
		reason += fmt.Sprintf("; \"not found\" proves nothing before %s", proof.UTC().Format(time.RFC3339))
	}
	m := Move{Kind: MoveLookup, At: at, Reason: reason}
	if len(o.Request.Withheld) > 0 {
		m.Caller = true
		m.Reason += "; it needs " + strings.Join(o.Request.Withheld, ", ") + ", which is not stored: run the same command again"
	}
	return m, true
}

func whyPerson(o *Operation, c Contract, now time.Time) string {
	switch {
	case !o.approvedAt(now):
		return "its approval has ended, so nothing is sent again"
	case c.Protection == Keyed && !now.Before(o.WindowEnd(c)):
		return "the destination may have forgotten the key, so sending again could make it happen twice, and no lookup settles it"
	case o.Cancel:
		return "it was asked to stop after it may have been sent"
	case c.looksUp():
		return "lookups gave no proof"
	case o.Attempt >= c.Budget() && c.Protection != Unprotected:
		return "sending again did not bring an answer"
	}
	return "it may have happened; the destination offers no key and no lookup, so nothing is sent again by machine"
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// approvedAt reports whether the approval of the operation, if it needs one,
// still allows sending.
func (o *Operation) approvedAt(now time.Time) bool {
	return !o.Unapproved && (o.ApprovedUntil.IsZero() || now.Before(o.ApprovedUntil))
}
