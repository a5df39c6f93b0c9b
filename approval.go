package semel

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// Approve waits until a person approves the exact request that Do would send
// for in: scope, key, endpoint, body and given headers. Do of this action is
// then covered by the approval, and by nothing else: a request that differs
// holds the run. An error wraps ErrRejected or ErrTimedOut; nothing was sent.
func Approve[In, Out any](ctx Context, a Action[In, Out], in In, ask Ask) error {
	call, keyless, err := a.stepCall(in)
	if err != nil {
		return err
	}
	rec, err := ctx.step("approve-"+a.Name, &ApprovalStep{Call: call, Keyless: keyless, Ask: ask})
	switch {
	case err != nil:
		return err
	case rec.Outcome == StepTimedOut:
		return fmt.Errorf("approval of %s: %w", a.Name, ErrTimedOut)
	case rec.Outcome == StepRejected:
		return fmt.Errorf("%s: %w: %s", a.Name, ErrRejected, rec.Failure)
	}
	return nil
}

// Ask says how an approval is asked for.
type Ask struct {
	// Of says who may decide, in words; Semel shows it.
	Of string
	// Summary says what is to be approved, in words.
	Summary string
	// Timeout is how long to wait for a decision; 0 means for ever.
	Timeout time.Duration
	// Valid is how long an approval holds once given; 0 means for ever.
	Valid time.Duration
}

// ApprovalState is where an approval stands.
type ApprovalState string

// The states of an approval.
const (
	ApprovalPending  ApprovalState = "pending"
	ApprovalGiven    ApprovalState = "approved"
	ApprovalRejected ApprovalState = "rejected"
	ApprovalRevoked  ApprovalState = "revoked" // given and taken back
	ApprovalClosed   ApprovalState = "closed"  // nobody decided in time, or the run has ended
)

// Approval is one question to a person about one exact request.
type Approval struct {
	ID     ID
	Run    ID
	Path   string // of the step that asks
	Digest string
	// What is to be sent.
	Scope   Scope
	Key     Key
	Request Request
	Ask     Ask
	State   ApprovalState
	AskedAt time.Time
	// The decision.
	By        string
	Reason    string
	DecidedAt time.Time
	// Until is when the approval ends; zero for never.
	Until time.Time
}

// Covers reports whether the approval allows sending at a time.
func (a *Approval) Covers(digest string, now time.Time) bool {
	return a.State == ApprovalGiven && a.Digest == digest && (a.Until.IsZero() || now.Before(a.Until))
}

// ApprovalDigest identifies one exact request of one operation. The fingerprint
// covers method, endpoint, headers and body.
func ApprovalDigest(scope Scope, key Key, fp Fingerprint) string {
	sum := sha256.Sum256([]byte(prefixed("semel-approval-1", string(scope), string(key), string(fp[:]))))
	return hex.EncodeToString(sum[:])
}

// Decision is a person's answer to an Approval.
type Decision struct {
	// State is ApprovalGiven, ApprovalRejected or ApprovalRevoked, or, from the
	// run that asked, ApprovalClosed.
	State  ApprovalState
	By     string
	Reason string
	// Digest is what the person saw: another one refuses the decision.
	Digest string
}

// Decide is the approval after the decision, made at a time by the store's
// clock. It fails with *ApprovalStateError where the approval does not take it:
// one that is pending gets one answer, and one that was given can be revoked.
func (a Approval) Decide(d Decision, now time.Time) (Approval, error) {
	if problem := a.problem(d, now); problem != "" {
		return a, &ApprovalStateError{Approval: a, Problem: problem}
	}
	a.State, a.By, a.Reason, a.DecidedAt = d.State, d.By, d.Reason, now
	if d.State == ApprovalGiven && a.Ask.Valid > 0 {
		a.Until = now.Add(a.Ask.Valid)
	}
	return a, nil
}

func (a *Approval) problem(d Decision, now time.Time) string {
	name := "approval " + a.ID.String()
	decided := fmt.Sprintf(" by %s at %s", a.By, a.DecidedAt.Format(time.RFC3339))
	switch d.State {
	case ApprovalGiven, ApprovalRejected, ApprovalRevoked, ApprovalClosed:
	case ApprovalPending:
		fallthrough
	default:
		return fmt.Sprintf("%q is no decision: approve, reject or revoke", d.State)
	}
	switch {
	case a.State == ApprovalClosed:
		return name + " is closed: its time is over or its run has ended, and nobody waits for it any more"
	case a.State == ApprovalRejected || a.State == ApprovalRevoked:
		return name + " was " + string(a.State) + decided
	case a.State == ApprovalGiven && d.State != ApprovalRevoked:
		return name + " was given" + decided + ": it can only be revoked"
	case a.State == ApprovalPending && d.State == ApprovalRevoked:
		return name + " is pending: nothing was given that could be revoked"
	case d.State == ApprovalGiven && a.Ask.Timeout > 0 && !now.Before(a.AskedAt.Add(a.Ask.Timeout)):
		return name + " was asked until " + a.AskedAt.Add(a.Ask.Timeout).Format(time.RFC3339) + ": its time is over"
	case d.Digest != a.Digest:
		return name + " is about another request than the one that was shown: look again"
	}
	return ""
}
