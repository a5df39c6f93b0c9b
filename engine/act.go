package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/semel-dev/semel"
)

// do performs an effect as a step.
func (b *branch) do(path string, s *semel.DoStep, rec semel.StepRecord, recorded bool) (semel.StepRecord, error) {
	x := b.x
	c := s.Call
	if s.Keyless {
		c.Key = semel.StepKey(&x.run, path)
	}
	if c.Scope == "" {
		c.Scope = semel.ActionScope(x.w.e.opt.Tenant, c.Request.Connection, c.Action)
	}
	if c.Source == "" {
		c.Source = fmt.Sprintf("run %s %s, step %s", x.run.Workflow, x.run.ID, path)
	}
	if recorded && rec.What != "" && rec.What != c.Action {
		b.hold(path, fmt.Sprintf("changed code: step %s is recorded as action %s, and the code asks for %s", path, rec.What, c.Action))
	}
	id, err := x.w.e.identify(&c)
	switch {
	case err != nil && recorded: // what is on record may have happened
		b.hold(path, fmt.Sprintf("changed code: step %s is on record, and what the code asks for now cannot be sent: %v", path, err))
	case err != nil:
		return rec, &semel.FailedError{Path: path, Reason: err.Error()}
	}
	id.Run, id.Step = x.run.ID, path
	p := &pursuit{e: x.w.e, call: &c, branch: b, path: path}
	if recorded && rec.Operation == (semel.ID{}) {
		return b.commuted(p, s, id, rec)
	}
	if !s.Exempt {
		p.approval = b.covering(path, &id)
	}
	if recorded {
		return b.resume(p, s, rec)
	}
	return b.first(p, s, semel.Operation{Identity: id})
}

// first makes the first attempt. An effect that commutes needs no claim, but
// where a person approved it, the claim is what checks the approval.
func (b *branch) first(p *pursuit, s *semel.DoStep, o semel.Operation) (semel.StepRecord, error) {
	if p.call.Contract.Protection == semel.Commutes && p.approval == nil {
		return b.commute(p, s, o)
	}
	out, err := p.begin(o)
	if errors.Is(err, semel.ErrStale) {
		return b.meet(p, s)
	}
	return b.judge(p, s, &out, err)
}

// resume goes on with an operation that is on record: what is known about it
// decides.
func (b *branch) resume(p *pursuit, s *semel.DoStep, rec semel.StepRecord) (semel.StepRecord, error) {
	o := rec.Effect
	if o == nil {
		b.hold(p.path, "the operation of step "+p.path+" is not on record any more")
	}
	if o.Scope != p.call.Scope || o.Key != p.call.Key {
		b.hold(p.path, fmt.Sprintf("changed code: step %s began operation %q, and the code asks for %q", p.path, o.Key, p.call.Key))
	}
	if fields, same := p.same(o); !same && !o.Expired {
		b.conflict(p, fields)
	}
	return b.judge(p, s, &semel.Outcome{Status: semel.Status(o.StateAt(b.x.w.e.estimate())), Operation: *o, Replayed: true}, nil)
}

// meet goes on with an operation that somebody else began.
func (b *branch) meet(p *pursuit, s *semel.DoStep) (semel.StepRecord, error) {
	e := b.x.w.e
	o, err := e.store.Load(b.x.ctx, p.call.Scope, p.call.Key)
	if err != nil {
		return b.judge(p, s, &semel.Outcome{}, err)
	}
	if fields, same := p.same(&o); !same {
		b.conflict(p, fields)
	}
	if o.Run != b.x.run.ID || o.Step != p.path {
		o = e.join(b.x.ctx, o, p.call.Source)
	}
	if o.Run == b.x.run.ID && o.Step != p.path {
		e.log.Warn("two steps of one run have one key, and share one effect", "run", o.Run, "key", o.Key, "step", p.path, "began", o.Step)
	}
	b.keep(semel.StepRecord{Path: p.path, Kind: semel.StepAction, What: p.call.Action, Operation: o.ID, Outcome: semel.StepOpen, Effect: &o})
	out := semel.Outcome{Status: semel.Status(o.StateAt(e.estimate())), Operation: o, Replayed: true}
	if o.State == semel.Failed && o.Incident == "" && !o.Expired && !o.Cancelled && !o.Cancel && p.call.Contract.OnFailed != semel.ReturnFailed {
		out, err = p.anew(o) // a new run asks for it: nothing had happened
	}
	return b.judge(p, s, &out, err)
}

// conflict holds the branch: the key belongs to another request.
func (b *branch) conflict(p *pursuit, fields []string) {
	out := semel.Outcome{Status: semel.StatusConflict, Fields: fields}
	b.hold(p.path, "step "+p.path+": "+out.Refusal())
}

// judge turns what is known about an operation into what the code sees: its
// answer or a known failure. Everything else ends the goroutine.
func (b *branch) judge(p *pursuit, s *semel.DoStep, out *semel.Outcome, err error) (semel.StepRecord, error) {
	o := &out.Operation
	rec := semel.StepRecord{Path: p.path, Kind: semel.StepAction, What: p.call.Action, Operation: o.ID, Effect: o}
	switch {
	case errors.Is(err, semel.ErrNotApproved):
		b.hold(p.path, "step "+p.path+": no approval covers this request now: it was revoked, has expired, or is for another request; nothing was sent")
	case errors.Is(err, semel.ErrStopped):
		b.x.stopAsked()
		b.x.goOnSoon()
		b.exit()
	case err != nil:
		b.x.abort(err)
		b.exit()
	case o.Incident != "":
		b.hold(p.path, "step "+p.path+": "+o.Incident+"; a person must close the incident")
	case o.Expired:
		b.hold(p.path, "step "+p.path+": the record of this key has expired, so nobody can tell what it answered")
	}
	switch out.Status {
	case semel.StatusCompleted:
		b.x.record(rec)
		return rec, nil
	case semel.StatusFailed:
		return b.failed(p, s, rec)
	case semel.StatusUnknown, semel.StatusInProgress:
		b.x.record(rec)
		b.suspend(b.x.operationWait(p.path, o))
	case semel.StatusConflict, semel.StatusExpired, semel.StatusIncident, semel.StatusUnsafe:
	}
	b.hold(p.path, "step "+p.path+": "+out.Refusal())
	return rec, nil // not reached: hold ends the goroutine
}

// failed decides what follows a known failure: another attempt, now or later,
// or the error that the code gets. A failure that the code has already dealt
// with stays one.
func (b *branch) failed(p *pursuit, s *semel.DoStep, rec semel.StepRecord) (semel.StepRecord, error) {
	x, o := b.x, rec.Effect
	failure := &semel.FailedError{Path: p.path, Reason: o.Reason, Operation: *o}
	b.x.record(rec)
	if x.later(b.path) || p.call.Contract.OnFailed == semel.ReturnFailed {
		return rec, failure
	}
	if o.Cancelled {
		b.hold(p.path, "step "+p.path+" was cancelled before anything was sent: only a person may start it again (semel op retry "+o.ID.String()+")")
	}
	asked := x.run.CreatedAt // what others tried before is not this run's
	if x.run.RetriedAt.After(asked) {
		asked = x.run.RetriedAt
	}
	tried, refused, unsent := 0, 0, false
	for _, a := range o.Attempts {
		if a.ClaimedAt.After(asked) {
			tried++
			unsent = a.Unsent
		}
		if !a.Unsent && a.ClaimedAt.After(asked) && (a.Outcome == semel.EvRefused || a.Outcome == semel.EvRetained) {
			refused++
		}
	}
	limit := max(1, s.Retry.Attempts)
	switch {
	case refused >= limit:
		failure.Exhausted = s.Retry.Attempts > 1
		return rec, failure
	case tried >= limit+p.call.Contract.Budget():
		failure.Exhausted = true
		return rec, failure
	case tried > 0 && refused == 0 && !unsent && !o.Absent:
		return rec, failure // a person said that it did not happen
	case o.Cancel:
		b.hold(p.path, "step "+p.path+" was asked to stop, and nothing happened: only a person may start it again (semel op retry "+o.ID.String()+")")
	}
	if tried > 0 {
		b.check()
		now := x.w.e.estimate()
		if at := o.UpdatedAt.Add(s.Retry.Pause(max(1, refused))); at.After(now) {
			b.suspend(semel.RunWait{Path: p.path, Kind: semel.WaitTime, Until: at, Reason: again(p.path, o, refused, limit)})
		}
	}
	out, err := p.anew(*o)
	return b.judge(p, s, &out, err)
}

// again says why a step is tried again: after a failure, as often as its Retry
// says, and where nothing had arrived, since that is nobody's refusal.
func again(path string, o *semel.Operation, refused, limit int) string {
	if o.Absent || refused == 0 {
		return fmt.Sprintf("step %s: the attempt had no effect, and is made again: %s", path, o.Reason)
	}
	return fmt.Sprintf("step %s failed, nothing happened: %s; attempt %d of %d", path, o.Reason, refused+1, limit)
}

// begin claims a new operation and performs its first attempt.
func (p *pursuit) begin(o semel.Operation) (semel.Outcome, error) {
	ctx := p.branch.x.ctx
	if known, err := p.onRecord(ctx); err != nil {
		return semel.Outcome{}, err
	} else if known {
		return semel.Outcome{}, semel.ErrStale
	}
	if _, err := p.place(ctx); err != nil {
		return semel.Outcome{}, err
	}
	defer p.leave()
	claimed, held, err := p.claim(context.Background(), o, o.Contract, semel.ID{})
	if err != nil {
		return semel.Outcome{}, err
	}
	out, err := p.attempt(context.Background(), claimed, held)
	if err == nil && !out.Replayed {
		for _, warning := range p.e.regenerated(p.branch.x.ctx, &out.Operation) {
			p.e.log.Warn("the key of a step may have been made anew", "run", p.branch.x.run.ID, "step", p.path, "finding", warning)
		}
	}
	return out, err
}

// anew claims the next attempt of an operation that failed.
func (p *pursuit) anew(o semel.Operation) (semel.Outcome, error) {
	if _, err := p.place(p.branch.x.ctx); err != nil {
		return semel.Outcome{Operation: o}, err
	}
	defer p.leave()
	claimed, held, err := p.claim(context.Background(), o, o.Contract.Stricter(p.call.Contract), p.e.newID())
	if err != nil {
		if errors.Is(err, semel.ErrStale) {
			err = fmt.Errorf("operation %s changed meanwhile: %w", o.ID, semel.ErrUnavailable)
		}
		return semel.Outcome{Operation: o}, err
	}
	return p.attempt(context.Background(), claimed, held)
}

// stopAsked takes note that the store refused a claim because of a request to
// stop, or because the run is another's.
func (x *execution) stopAsked() {
	if x.fenced.Load() {
		return
	}
	r, err := x.w.runs.LoadRun(x.ctx, x.run.ID)
	if err != nil {
		x.abort(err)
		return
	}
	x.cancel.Store(r.Cancel)
	x.pause.Store(r.Paused)
	if r.Attempt != x.run.Attempt || r.LeaseUntil.IsZero() {
		x.lose()
	}
}

// maxUnanswered is how often an effect that commutes is sent again before a
// person must look.
const maxUnanswered = semel.DefaultAttempts

// commute performs an effect that may be repeated in any order: no claim is
// written before it, and its answer is recorded with the next commit.
func (b *branch) commute(p *pursuit, s *semel.DoStep, o semel.Operation) (semel.StepRecord, error) {
	x, e := b.x, b.x.w.e
	was, waited := x.waited(p.path)
	if waited && was.Kind == semel.WaitTime && was.Until.After(e.estimate()) {
		b.suspend(was)
	}
	if err := b.settle(); err != nil {
		x.abort(err)
		b.exit()
	}
	if _, err := p.place(x.ctx); err != nil {
		x.abort(err)
		b.exit()
	}
	defer p.leave()
	claimed, err := o.Apply(semel.Event{Kind: semel.EvClaimed, Attempt: 1, At: e.estimate(), By: e.opt.Name, Lease: e.opt.Lease, SendWithin: e.opt.Lease})
	if err != nil {
		return semel.StepRecord{}, &semel.FailedError{Path: p.path, Reason: err.Error()}
	}
	h := &held{e: e, from: e.clock(), stop: b.stopping}
	h.sendBy = h.from.Add(x.until.left(e.clock()))
	h.until.set(h.sendBy)
	ev := p.perform(claimed, h)
	p.leave() // before the answer is kept
	rec := semel.StepRecord{Path: p.path, Kind: semel.StepAction, What: p.call.Action, Outcome: semel.StepCompleted}
	tries := was.Version + 1
	switch {
	case ev.Kind == semel.EvConfirmed:
		result := ev.Result
		if result == nil {
			result = &semel.Result{}
		}
		if rec.Result, err = json.Marshal(repeated{result, o.Fingerprint.String()}); err != nil {
			b.hold(p.path, "the answer of step "+p.path+" cannot be kept: "+err.Error())
		}
		rec.Effect = &semel.Operation{State: semel.Completed, Result: result}
		return b.keep(rec), nil
	case ev.Kind == semel.EvCancelled, ev.Unsent: // nothing was tried
		b.check()
		x.abort(errors.New(ev.Reason))
		b.exit()
	case ev.Kind == semel.EvLost:
		limit := maxUnanswered
		if n := p.call.Contract.Attempts; n > 0 {
			limit = n
		}
		if tries >= limit {
			b.hold(p.path, fmt.Sprintf("step %s got no answer %d times: %s", p.path, tries, ev.Reason))
		}
		pause := semel.Retry{Backoff: p.call.Contract.Backoff}.Pause(tries)
		b.suspend(semel.RunWait{Path: p.path, Kind: semel.WaitTime, Until: e.estimate().Add(pause), Version: tries, Reason: "step " + p.path + " got no answer, and is repeated, which changes nothing: " + ev.Reason})
	case tries < s.Retry.Attempts:
		b.suspend(semel.RunWait{
			Path: p.path, Kind: semel.WaitTime, Until: e.estimate().Add(s.Retry.Pause(tries)), Version: tries,
			Reason: fmt.Sprintf("step %s failed, nothing happened: %s; attempt %d of %d", p.path, ev.Reason, tries+1, s.Retry.Attempts),
		})
	}
	rec.Outcome, rec.Failure = semel.StepFailed, ev.Reason
	b.keep(rec)
	return rec, &semel.FailedError{Path: p.path, Reason: ev.Reason, Operation: semel.Operation{Attempt: tries}, Exhausted: s.Retry.Attempts > 1}
}

// repeated is the record of an effect that commutes: its answer, and what was
// asked.
type repeated struct {
	*semel.Result
	Request string `json:"request,omitzero"`
}

// commuted hands back the record of an effect that has no operation.
func (b *branch) commuted(p *pursuit, s *semel.DoStep, id semel.Identity, rec semel.StepRecord) (semel.StepRecord, error) {
	if rec.Outcome != semel.StepFailed {
		var was repeated
		if err := json.Unmarshal(rec.Result, &was); err == nil && was.Request != "" && was.Request != id.Fingerprint.String() {
			b.hold(p.path, "step "+p.path+" is on record with another request: two requests need two names (Context.Named), and changed code a new version")
		}
		return rec, nil
	}
	if !b.x.later(b.path) && b.x.run.RetriedAt.After(rec.At) {
		if !s.Exempt {
			p.approval = b.covering(p.path, &id)
		}
		return b.first(p, s, semel.Operation{Identity: id})
	}
	return rec, &semel.FailedError{Path: p.path, Reason: rec.Failure, Exhausted: s.Retry.Attempts > 1}
}

// stopping says why nothing may be sent on behalf of the run, if so.
func (b *branch) stopping() error {
	switch {
	case b.x.cancel.Load():
		return errCancelled
	case b.x.pause.Load():
		return errPaused
	case b.x.fenced.Load(), b.poisoned.Load():
		return errFenced
	case b.x.aborted.Load():
		return errNotKept
	}
	return nil
}

// covering is the approval that allows an operation, where its action was put
// to a person in this run. A request that no approval covers holds the branch.
func (b *branch) covering(path string, id *semel.Identity) *semel.Approval {
	b.x.mu.Lock()
	approvals := slices.Clone(b.x.approvals)
	b.x.mu.Unlock()
	if len(approvals) == 0 {
		return nil
	}
	digest := semel.ApprovalDigest(id.Scope, id.Key, id.Fingerprint)
	var other *semel.Approval
	for i := range approvals {
		a := &approvals[i]
		if a.Scope != id.Scope {
			continue
		}
		if a.Digest == digest {
			return a
		}
		if other == nil || a.Key == id.Key {
			other = a
		}
	}
	if other == nil {
		return nil
	}
	what := fmt.Sprintf("it is for key %q, and the code asks for %q", other.Key, id.Key)
	if other.Key == id.Key {
		out := semel.Outcome{Status: semel.StatusConflict, Fields: other.Request.Diff(&id.Request)}
		what = fmt.Sprintf("the request differs in %v", out.Fields)
	}
	b.hold(path, "step "+path+": the approval is stale: "+what+"; nothing was sent")
	return nil // not reached: hold ends the goroutine
}
