package check

import (
	"fmt"
	"slices"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/workflowfile"
)

// risks are the rules about one effect. Each finds one thing at most.
var risks = []func(w *workflow, e *effect) (Finding, bool){
	invalidContract, relativeUpdate, kindContradicts, singleWriter, unprotectedRetry, windowTooShort, timeoutTooShort, missingDelays, lookupNotUnique, noOwner,
	approvalExpires, approvalNotCovering, twoEffects, weakKey, secretInKey, unstableKey, constantKey, consequentialDefer,
}

func found(code workflowfile.Code, s workflowfile.Severity, fix, message string, args ...any) (Finding, bool) {
	return Finding{Code: code, Severity: s, Fix: fix, Message: fmt.Sprintf(message, args...)}, true
}

// invalidContract: an engine that is asked for it sends nothing, and the step
// fails.
func invalidContract(_ *workflow, e *effect) (Finding, bool) {
	if e.refused == "" {
		return Finding{}, false
	}
	return found(workflowfile.CodeContract, workflowfile.SeverityError, "declare what the destination promises",
		"the contract of step %s is refused, and nothing is ever sent: %s", e.path, e.refused)
}

// refusal is why Semel does not take a contract; empty where it does.
func refusal(c *semel.Contract) string {
	if err := c.Validate(); err != nil {
		return err.Error()
	}
	return ""
}

// amounts are members that change a value by what they hold.
var amounts = []string{"delta", "increment", "increment_by", "decrement", "decrement_by"}

// relativeUpdate: a change by an amount counts again each time it is made, and
// the value does not tell how often that was.
func relativeUpdate(_ *workflow, e *effect) (Finding, bool) {
	const fix = "set the value it shall have, or use a key that the destination enforces, or a transaction"
	again := e.contract.Protection == semel.Absolute || e.contract.Protection == semel.Commutes
	if e.contract.Effect == semel.Changes && again {
		return found(workflowfile.CodeRelative, workflowfile.SeverityError, fix,
			"step %s changes a value by an amount, and protection %s lets it be sent again: it would be counted twice", e.path, e.contract.Protection)
	}
	if e.contract.Effect == semel.Changes && e.contract.Protection == semel.Unprotected {
		return found(workflowfile.CodeRelative, workflowfile.SeverityWarning, fix,
			"step %s changes a value by an amount, and after a lost answer the value does not tell whether it was counted", e.path)
	}
	for _, m := range e.request {
		if again && slices.Contains(amounts, m.name) {
			return found(workflowfile.CodeRelative, workflowfile.SeverityError, fix,
				"step %s sends %s, a change by an amount, and protection %s lets it be sent again: it would be counted twice", e.path, m.name, e.contract.Protection)
		}
	}
	return Finding{}, false
}

// kindContradicts: what makes another one each time cannot be what may be made
// any number of times.
func kindContradicts(_ *workflow, e *effect) (Finding, bool) {
	if !e.contradicts() {
		return Finding{}, false
	}
	return found(workflowfile.CodeContradiction, workflowfile.SeverityError,
		"use a key that the destination enforces, or a lookup, or protection none; or kind: absolute, if the same request leaves one effect however often it is made",
		"step %s has kind %s, and protection %s lets it be sent again: it would happen again", e.path, e.contract.Effect, e.contract.Protection)
}

// preconditions are members and headers by which a destination refuses a write
// that comes late.
var preconditions = []string{
	"if_match", "if_unmodified_since", "if_version", "version", "expected_version", "lock_version", "etag", "revision", "expected_revision",
}

// singleWriter: an absolute write may be sent late, over what somebody else
// wrote meanwhile.
func singleWriter(_ *workflow, e *effect) (Finding, bool) {
	if e.contract.Protection != semel.Absolute || e.contract.Effect == semel.Changes || e.contradicts() {
		return Finding{}, false
	}
	for _, m := range e.request {
		if slices.Contains(preconditions, m.name) || slices.Contains(amounts, m.name) {
			return Finding{}, false
		}
	}
	return found(workflowfile.CodeSingleWriter, workflowfile.SeverityWarning,
		"send the version that it replaces, such as if_match, or accept this and say who the only writer is",
		"step %s may set its value again, late, over what somebody else has set meanwhile", e.path)
}

// unprotectedRetry: a further attempt where no repeat is recognised is as safe
// as the destination's word that nothing happened.
func unprotectedRetry(_ *workflow, e *effect) (Finding, bool) {
	if e.contract.Protection != semel.Unprotected || !e.irreversible() || e.retry.Attempts < 2 || e.contract.KeyHeader != "" {
		return Finding{}, false
	}
	if len(e.after) > 0 {
		return found(workflowfile.CodeAfterWait, workflowfile.SeverityWarning,
			"leave retry out, or put the step before the wait, or use a destination that knows a key or can be asked",
			"step %s must not happen twice, and is tried up to %d times after the wait %s, when nobody is looking: if \"refused\" is ever wrong, it happens twice",
			e.path, e.retry.Attempts, e.after[len(e.after)-1].step)
	}
	return found(workflowfile.CodeRetry, workflowfile.SeverityWarning,
		"leave retry out, or use a destination that knows a key or can be asked",
		"step %s must not happen twice, and is tried up to %d times: if \"refused\" is ever wrong, it happens twice", e.path, e.retry.Attempts)
}

// windowTooShort compares how long the destination knows a key with how long it
// may be needed. Waits before the step do not count: the window begins when the
// step is first sent.
func windowTooShort(w *workflow, e *effect) (Finding, bool) {
	if e.contract.Protection != semel.Keyed || e.looksUp() {
		return Finding{}, false
	}
	switch automatic, usable := e.automatic(), e.usable(); {
	case automatic > usable:
		return found(workflowfile.CodeRetryWindow, workflowfile.SeverityWarning,
			"make fewer attempts, or shorter pauses, or declare a lookup",
			"step %s may be tried for %s, but its key can be used for %s only: the last attempts are never made, and a person is asked instead",
			e.path, span(automatic), span(usable))
	case automatic+w.operator > usable:
		return found(workflowfile.CodeWindow, workflowfile.SeverityWarning,
			"declare a lookup, or a longer window where the destination grants it, or see to it that somebody looks sooner",
			"step %s can be sent again under its key for %s, but its attempts take up to %s and a person up to %s more: by then the destination may have forgotten it",
			e.path, span(usable), span(automatic), span(w.operator))
	}
	return Finding{}, false
}

// timeoutTooShort: who stops waiting before the destination does makes an
// unknown of what would have succeeded.
func timeoutTooShort(_ *workflow, e *effect) (Finding, bool) {
	c := &e.contract
	if c.Timeout == 0 || c.Timeout >= c.MaxProcessing {
		return Finding{}, false
	}
	return found(workflowfile.CodeTimeout, workflowfile.SeverityWarning, fmt.Sprintf("wait for %s or longer", span(c.MaxProcessing)),
		"step %s waits %s for an answer, but the destination may take %s: a slow success becomes an unknown outcome", e.path, span(c.Timeout), span(c.MaxProcessing))
}

// missingDelays: absence proves nothing until a request can no longer be under
// way, and until what it did can be seen.
func missingDelays(_ *workflow, e *effect) (Finding, bool) {
	c := &e.contract
	switch {
	case c.Check != "" || c.Protection != semel.Lookup:
	case c.MaxProcessing == 0:
		return found(workflowfile.CodeDelays, workflowfile.SeverityWarning,
			"declare max_processing, visible_after and absence_is_proof",
			"step %s is looked up, but nothing says how long a request may take: \"not found\" never proves that nothing happened, and a person is asked", e.path)
	case !c.AbsenceIsProof:
		return found(workflowfile.CodeDelays, workflowfile.SeverityWarning,
			"declare absence_is_proof and visible_after, if the destination promises it",
			"step %s is looked up, but \"not found\" is not declared to be proof: what did not happen is left to a person", e.path)
	case c.VisibleAfter == 0:
		return found(workflowfile.CodeDelays, Note, "declare visible_after, as it was measured",
			"step %s takes \"not found\" for proof at once: a destination that shows new things later would get a second one", e.path)
	}
	return Finding{}, false
}

// noOwner: what is left to a person needs one.
func noOwner(_ *workflow, e *effect) (Finding, bool) {
	const fix = "add owner: who is told"
	c := &e.contract
	if c.Owner != "" {
		return Finding{}, false
	}
	switch c.Protection {
	case semel.Unprotected:
		return found(workflowfile.CodeOwner, workflowfile.SeverityWarning, fix,
			"after a lost answer of step %s only a person can tell what happened, and nobody is named", e.path)
	case semel.Keyed, semel.Lookup:
		return found(workflowfile.CodeOwner, Note, fix, "what recovery cannot settle of step %s is left to a person, and nobody is named", e.path)
	case semel.Transactional, semel.Commutes, semel.Absolute:
	}
	return Finding{}, false
}

// consequentialDefer: a deferred function runs however the workflow ends.
func consequentialDefer(_ *workflow, e *effect) (Finding, bool) {
	if !e.deferred {
		return Finding{}, false
	}
	return found(workflowfile.CodeDefer, workflowfile.SeverityError, "call it where it belongs, and after a known failure where that returns",
		"step %s is called by a deferred function: it acts however the workflow ends, after a failure and after a panic, too", e.path)
}
