package workflowfile

import "slices"

// The codes of risks: what can go wrong with a workflow that is well formed.
// Package check finds them, and a step may accept one for a reason.
const (
	CodeRelative        Code = "relative_update"             // a change by an amount that may be counted twice
	CodeContradiction   Code = "kind_contradicts_protection" // sent again, it would happen again
	CodeWeakKey         Code = "weak_key"                    // a key of what two pieces of work can share
	CodeUnstableKey     Code = "unstable_key"                // a key that differs from try to try
	CodeSecretKey       Code = "secret_in_key"               // keys are stored and shown
	CodeRetry           Code = "unprotected_retry"           // tried again where no repeat is recognised
	CodeAfterWait       Code = "irreversible_after_wait"     // the same, long after anybody looked
	CodeWindow          Code = "window_too_short"            // a key that is forgotten before a person looks
	CodeRetryWindow     Code = "retry_outlasts_window"       // tries that come after the key is forgotten
	CodeTimeout         Code = "timeout_too_short"           // shorter than the destination may take
	CodeOwner           Code = "no_owner"                    // only a person can recover it, and nobody is told
	CodeExpires         Code = "approval_expires"            // an approval that ends before it is used
	CodeApproval        Code = "approval_not_covering"       // what is sent is not what was approved
	CodeTwoEffects      Code = "two_effects"                 // one outcome for two effects
	CodeStatusNotes     Code = "status_notifies"             // a repeatable change with a mail that is not
	CodeDelays          Code = "missing_delays"              // a lookup that proves nothing
	CodeLookup          Code = "lookup_not_unique"           // a lookup that may find another one's effect
	CodeSingleWriter    Code = "no_single_writer"            // a late write over somebody else's
	CodeDefer           Code = "consequential_defer"         // an effect of however a function ends
	CodeSharedKey       Code = "shared_key"                  // two steps that are one piece of work
	CodeUnstableSteps   Code = "unstable_steps"              // other steps when a run goes on
	CodeUnstableRequest Code = "unstable_request"            // another request when a run goes on
	CodeWrongContext    Code = "wrong_context"               // steps that no engine takes in this way
	CodeContract        Code = "invalid_contract"            // a contract that no engine takes
	CodeNotReached      Code = "not_reached"                 // an action that no dry run came to
	CodeUnusedAccept    Code = "unused_accept"               // what it accepts is not there
	CodeConfiguration   Code = "configuration"               // a problem of semel.yaml
)

// Acceptable lists the codes that a step may accept: all risks, and the
// warnings about keys.
func Acceptable() []Code {
	return []Code{
		CodeKey, CodeRelative, CodeContradiction, CodeWeakKey, CodeUnstableKey, CodeSecretKey, CodeRetry, CodeAfterWait, CodeWindow, CodeRetryWindow,
		CodeTimeout, CodeOwner, CodeExpires, CodeApproval, CodeTwoEffects, CodeStatusNotes, CodeDelays, CodeLookup, CodeSingleWriter, CodeDefer,
		CodeSharedKey, CodeNotReached,
	}
}

func acceptable(code Code) bool { return slices.Contains(Acceptable(), code) }
