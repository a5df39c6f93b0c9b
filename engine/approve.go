package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/semel-dev/semel"
)

// approve waits for a person's decision about one exact request.
func (b *branch) approve(path string, s *semel.ApprovalStep, rec semel.StepRecord, recorded bool) (semel.StepRecord, error) {
	x, e := b.x, b.x.w.e
	c := s.Call
	if s.Keyless {
		b.hold(path, "step "+path+": an approval covers one operation, so its action needs a key of its own")
	}
	if c.Scope == "" {
		c.Scope = semel.ActionScope(e.opt.Tenant, c.Request.Connection, c.Action)
	}
	id, err := e.identify(&c)
	if err != nil {
		return rec, &semel.FailedError{Path: path, Reason: err.Error()}
	}
	digest := semel.ApprovalDigest(id.Scope, id.Key, id.Fingerprint)
	if recorded && !b.asksAnew(rec) {
		return b.decided(path, rec, digest)
	}
	now := e.estimate()
	was, waited := x.waited(path)
	if !waited || was.Kind != semel.WaitApproval {
		a := semel.Approval{
			ID: e.newID(), Run: x.run.ID, Path: path, Digest: digest, Scope: id.Scope, Key: id.Key, Request: id.Request,
			Ask: s.Ask, State: semel.ApprovalPending, AskedAt: now,
		}
		w := semel.RunWait{Path: path, Kind: semel.WaitApproval, Target: a.ID, Approval: &a, Reason: "step " + path + ": waits for approval " + a.ID.String()}
		if s.Ask.Timeout > 0 {
			w.Until = now.Add(s.Ask.Timeout)
		}
		b.suspend(w)
	}
	a, err := x.w.runs.Approval(x.ctx, was.Target)
	if err != nil {
		x.abort(err)
		b.exit()
	}
	if a.Digest != digest {
		b.hold(path, staleApproval(path, &a, &id))
	}
	if a.State == semel.ApprovalPending && !was.Until.IsZero() && !was.Until.After(now) {
		a = b.closeApproval(&a)
	}
	if a.State == semel.ApprovalPending {
		b.suspend(was)
	}
	outcome := semel.StepRejected
	switch a.State {
	case semel.ApprovalGiven:
		outcome = semel.StepCompleted
	case semel.ApprovalClosed:
		outcome = semel.StepTimedOut
	case semel.ApprovalPending, semel.ApprovalRejected, semel.ApprovalRevoked:
	}
	result, err := json.Marshal(&a)
	if err != nil {
		b.hold(path, "the approval of step "+path+" cannot be kept: "+err.Error())
	}
	failure := ""
	if outcome == semel.StepRejected {
		failure = fmt.Sprintf("%s by %s at %s: %s", a.State, a.By, a.DecidedAt.Format(time.RFC3339), a.Reason)
	}
	rec = b.keep(semel.StepRecord{Path: path, Kind: semel.StepApproval, What: digest, Outcome: outcome, Result: result, Failure: failure})
	return b.decided(path, rec, digest)
}

// asksAnew reports whether a person wants a run to go on whose approval has
// ended: then somebody is asked again.
func (b *branch) asksAnew(rec semel.StepRecord) bool {
	x := b.x
	var a semel.Approval
	if rec.Outcome != semel.StepCompleted || !x.run.RetriedAt.After(rec.At) || json.Unmarshal(rec.Result, &a) != nil {
		return false
	}
	now, err := x.w.runs.Approval(x.ctx, a.ID)
	if err != nil {
		x.abort(err)
		b.exit()
	}
	return !now.Covers(a.Digest, x.w.e.estimate())
}

// decided hands back a recorded decision, which covers one digest.
func (b *branch) decided(path string, rec semel.StepRecord, digest string) (semel.StepRecord, error) {
	var a semel.Approval
	if err := json.Unmarshal(rec.Result, &a); err != nil {
		b.hold(path, "the approval of step "+path+" cannot be read: "+err.Error())
	}
	b.x.mu.Lock()
	b.x.approvals = append(b.x.approvals, a)
	b.x.mu.Unlock()
	if rec.What != digest {
		b.hold(path, "step "+path+": the approval is stale: the code now asks for another request than was put to a person; nothing was sent")
	}
	return rec, nil
}

func staleApproval(path string, a *semel.Approval, id *semel.Identity) string {
	fields := a.Request.Diff(&id.Request)
	if a.Key != id.Key {
		fields = append([]string{"key"}, fields...)
	}
	return fmt.Sprintf("step %s: the approval that was asked for is stale, the request differs in %v; nothing was sent", path, fields)
}

// closeApproval ends a question that nobody answered in time. A decision that
// comes at the same moment counts if it comes first.
func (b *branch) closeApproval(a *semel.Approval) semel.Approval {
	closed, err := b.x.w.runs.Decide(b.x.ctx, a.ID, semel.Decision{State: semel.ApprovalClosed, By: b.x.w.e.opt.Name, Reason: "nobody decided in time", Digest: a.Digest})
	if state, ok := errors.AsType[*semel.ApprovalStateError](err); ok {
		return state.Approval
	}
	if err != nil {
		b.x.abort(err)
		b.exit()
	}
	return closed
}
