package main

import (
	"fmt"
	"strings"

	"github.com/semel-dev/semel"
)

// sentence tells one piece of evidence as a person reads it; before holds the
// earlier ones.
func sentence(o *semel.Operation, before []semel.Event, ev *semel.Event) string {
	text := occurrence(o, before, ev)
	if ev.Reason != "" {
		text += ": " + ev.Reason
	}
	reference := ev.Reference
	if ev.Result != nil && ev.Result.Reference != "" {
		reference = ev.Result.Reference
	}
	if reference != "" {
		text += fmt.Sprintf(" (reference %s)", reference)
	}
	return oneLine(text)
}

func occurrence(o *semel.Operation, before []semel.Event, ev *semel.Event) string {
	switch ev.Kind {
	case semel.EvClaimed:
		return claimed(o, before, ev)
	case semel.EvConfirmed:
		return fmt.Sprintf("attempt %d was confirmed: it happened%s", ev.Attempt, answerWords(o, ev.Result))
	case semel.EvRefused:
		return fmt.Sprintf("attempt %d had no effect", ev.Attempt)
	case semel.EvRetained:
		return fmt.Sprintf("attempt %d got the destination's lasting error for this key: nothing happened under it", ev.Attempt)
	case semel.EvLost:
		return fmt.Sprintf("attempt %d got no answer that tells: it may have happened", ev.Attempt)
	case semel.EvLapsed:
		return fmt.Sprintf("the lease of attempt %d ran out", ev.Attempt)
	case semel.EvFound:
		return "a lookup found it: it happened"
	case semel.EvAbsent:
		return "a lookup found nothing" + afterAbsence(o, before, ev)
	case semel.EvNoAnswer:
		return "a lookup gave no evidence"
	case semel.EvHappened:
		return "a person decided: it happened"
	case semel.EvDidNotHappen:
		text := "a person decided: it did not happen"
		if ev.Force {
			text += " (forced, before the request could no longer be running)"
		}
		return text
	case semel.EvCancelAsked:
		return "somebody asked to stop it"
	case semel.EvCancelled:
		return fmt.Sprintf("attempt %d was stopped before it sent anything", ev.Attempt)
	case semel.EvContradiction:
		return "evidence from outside contradicts the outcome"
	case semel.EvIncident:
		return "a person closed the incident and found: " + ev.Correction.Words()
	case semel.EvJoined:
		return "asked again: got the recorded answer, nothing was sent"
	case semel.EvExpired:
		return "the details expired; that it was asked stays on record"
	}
	return string(ev.Kind)
}

// claimed says what a claim was for.
func claimed(o *semel.Operation, before []semel.Event, ev *semel.Event) string {
	what := "sends"
	if o.Request.Kind == commandKind {
		what = "starts the program"
	}
	if len(before) > 0 {
		what += " again"
		if o.Contract.KeyHeader != "" {
			what += " under the same key"
		}
	}
	by := ev.At.Add(min(ev.SendWithin, ev.Lease))
	if ev.Attempt >= 1 && ev.Attempt <= len(o.Attempts) {
		by = o.Attempts[ev.Attempt-1].SendBy // the window may end earlier
	}
	return fmt.Sprintf("attempt %d is claimed and %s, at the latest by %s", ev.Attempt, what, by.UTC().Format("15:04:05"))
}

// afterAbsence says whether the absence proved anything.
func afterAbsence(o *semel.Operation, before []semel.Event, ev *semel.Event) string {
	was, err := semel.Replay(o.Identity, before)
	if err != nil {
		return ""
	}
	is, err := was.Apply(*ev)
	if err == nil && is.State == semel.Failed && was.State == semel.Unknown {
		return ", and the contract makes that proof: it did not happen"
	}
	return ", which proves nothing yet"
}

func answerWords(o *semel.Operation, r *semel.Result) string {
	switch {
	case r == nil:
		return ""
	case o.Request.Kind == commandKind:
		return fmt.Sprintf(", exit code %d", r.Status)
	case r.Status != 0:
		return strings.TrimRight(fmt.Sprintf(", status %d", r.Status), " ")
	}
	return ""
}
