package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-dev/semel"
)

// advice is what a person reads about an operation: what is known, what is
// not, and what to type next.
type advice struct {
	headline string   // the state, and what to do about it
	why      []string // none when the headline says it all
	next     []string // commands and acts, in order
}

// needsPerson reports whether only a person can move the operation on.
func needsPerson(o *semel.Operation, now time.Time) bool {
	switch o.StateAt(now) {
	case semel.Unknown:
		return semel.Decide(o, o.Contract, now).Kind == semel.MovePerson
	case semel.Failed:
		return o.Incident != "" || o.Cancelled
	case semel.InProgress, semel.Completed:
	}
	return o.Incident != ""
}

// advise puts an operation and its next move into words.
func (sh *shell) advise(o *semel.Operation, m semel.Move, now time.Time) advice {
	id := o.ID.String()
	settle := []string{
		"look at all evidence:            " + sh.command("op show "+id),
		"find out at the destination, then say what is true, one of:",
		"    " + sh.command("op settle "+id+" --happened --reason TEXT --reference WHERE"),
		"    " + sh.command("op settle "+id+" --did-not-happen --reason TEXT"),
	}
	if o.Incident != "" {
		return advice{
			headline: "Stopped by an incident: " + o.Incident,
			why:      []string{"Nothing is sent until a person has found out what is true."}, next: settle,
		}
	}
	switch o.StateAt(now) {
	case semel.Completed:
		return advice{headline: "Completed: it happened, and the answer is on record. The same request is never sent again."}
	case semel.Failed:
		return sh.adviseFailed(o, m)
	case semel.InProgress:
		until := ""
		if !o.LeaseUntil.IsZero() {
			until = fmt.Sprintf(" If its worker dies, this is known at %s.", moment(o.LeaseUntil))
		}
		return advice{
			headline: fmt.Sprintf("In progress: attempt %d is running.%s", o.Attempt, until),
			next:     []string{"wait, or ask again:              " + sh.command("op show "+id)},
		}
	case semel.Unknown:
		return sh.adviseUnknown(o, m, settle, now)
	}
	return advice{headline: "Nobody has asked for it yet."}
}

func (sh *shell) adviseFailed(o *semel.Operation, m semel.Move) advice {
	var why []string
	if o.Reason != "" {
		why = []string{"Because: " + o.Reason}
	}
	switch {
	case o.Expired:
		return advice{headline: "Failed: nothing happened. The details have expired.", why: why}
	case m.Kind == semel.MoveSend && len(o.Request.Withheld) > 0:
		return advice{
			headline: "Nothing happened; safe to try again.", why: why,
			next: []string{"run the same command again, with " + headerFlags(o.Request.Withheld) + " (such headers are never stored)"},
		}
	case m.Kind == semel.MoveSend:
		return advice{
			headline: "Nothing happened; safe to try again.", why: why,
			next: []string{"try again under the same key:    " + sh.command("op retry "+o.ID.String())},
		}
	}
	return advice{headline: "Failed: " + m.Reason + ".", why: why}
}

func (sh *shell) adviseUnknown(o *semel.Operation, m semel.Move, settle []string, now time.Time) advice {
	var why []string
	reason := reasonAt(o, now)
	if reason != "" {
		why = []string{"What is known: " + reason}
	}
	retry := "do it now:                       " + sh.command("op retry "+o.ID.String())
	if m.Caller {
		retry = "run the same command again, with " + headerFlags(o.Request.Withheld) + " (such headers are never stored)"
	}
	switch m.Kind {
	case semel.MoveResend:
		return advice{
			headline: "Confirmation unavailable; it may have happened. Safe to send again under the same key: the destination does it once.",
			why:      why, next: []string{retry},
		}
	case semel.MoveLookup:
		headline := "Confirmation unavailable; checking the original request. It may have happened; nothing is sent again."
		if proof, ok := o.ProofAt(o.Contract); ok && now.Before(proof) {
			headline += " \"Not found\" proves nothing before " + moment(proof) + "."
		}
		return advice{headline: headline, why: why, next: append([]string{retry}, settle[1:]...)}
	case semel.MovePerson:
		if m.Reason != reason {
			why = append(why, "Why: "+m.Reason)
		}
		return advice{
			headline: "Nobody can know yet: it may have happened. Nothing is sent again by machine; a person must find out.",
			why:      why, next: settle,
		}
	case semel.MoveSend, semel.MoveWait, semel.MoveDone:
	}
	return advice{headline: "Outcome unknown: " + m.Reason, why: why, next: settle}
}

// reasonAt is why the operation is in its state, as of now.
func reasonAt(o *semel.Operation, now time.Time) string {
	if o.State == semel.InProgress && o.StateAt(now) == semel.Unknown {
		return "the worker that sent it stopped reporting; it may have happened"
	}
	return o.Reason
}

func headerFlags(names []string) string {
	flags := make([]string, len(names))
	for i, name := range slices.Sorted(slices.Values(names)) {
		flags[i] = "--header '" + name + ": ...'"
	}
	return strings.Join(flags, " ")
}
