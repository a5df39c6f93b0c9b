package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/semel-dev/semel"
)

// value computes a value once.
func (b *branch) value(path string, s *semel.ValueStep, rec semel.StepRecord, recorded bool) (semel.StepRecord, error) {
	if recorded {
		return rec, nil
	}
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails, see crypto/rand
	result, err := s.Compute(b.x.w.e.estimate(), random)
	if err == nil {
		err = fits("value of step "+path, result)
	}
	if err != nil {
		return rec, err
	}
	return b.keep(semel.StepRecord{Path: path, Kind: semel.StepValue, Outcome: semel.StepCompleted, Result: result}), nil
}

// sleep waits for a time.
func (b *branch) sleep(path string, s *semel.SleepStep, rec semel.StepRecord, recorded bool) (semel.StepRecord, error) {
	if recorded {
		return rec, nil
	}
	now := b.x.w.e.estimate()
	until := s.Until
	if was, waited := b.x.waited(path); waited && was.Kind == semel.WaitTime {
		until = was.Until
	} else if until.IsZero() {
		until = now.Add(s.For)
	}
	if until.After(now) {
		b.suspend(semel.RunWait{Path: path, Kind: semel.WaitTime, Until: until, Reason: "step " + path + ": sleeps"})
	}
	return b.keep(semel.StepRecord{Path: path, Kind: semel.StepSleep, Outcome: semel.StepCompleted}), nil
}

// event waits for an event, which may be there already.
func (b *branch) event(path string, s *semel.EventStep, rec semel.StepRecord, recorded bool) (semel.StepRecord, error) {
	what := s.Name + " " + s.Match
	if recorded {
		if rec.What != what {
			b.hold(path, fmt.Sprintf("changed code: step %s waited for event %q, and the code asks for %q", path, rec.What, what))
		}
		return rec, nil
	}
	w := semel.RunWait{Path: path, Kind: semel.WaitEvent, Event: s.Name, Match: s.Match, Reason: "step " + path + ": waits for event " + what}
	if was, waited := b.x.waited(path); waited && was.Kind == semel.WaitEvent {
		if was.Event != s.Name || was.Match != s.Match {
			b.hold(path, fmt.Sprintf("changed code: step %s waits for event %q, and the code asks for %q", path, was.Event+" "+was.Match, what))
		}
		w.Until, w.Since = was.Until, was.Since
	} else if s.Timeout > 0 {
		w.Until = b.x.w.e.estimate().Add(s.Timeout)
	}
	if err := b.settle(); err != nil {
		b.x.abort(err)
		b.exit()
	}
	rec, err := b.x.w.runs.TakeEvent(context.Background(), semel.EventClaim{
		RunFence: b.x.fence(), Path: path, Workflow: b.x.run.Workflow, Name: s.Name, Match: s.Match, Until: w.Until,
	})
	switch {
	case errors.Is(err, semel.ErrNotFound):
		b.suspend(w)
	case errors.Is(err, semel.ErrStale):
		b.x.lose()
		b.exit()
	case err != nil:
		b.x.abort(err)
		b.exit()
	}
	b.x.record(rec)
	return rec, nil
}

// child starts a run and waits for its end.
func (b *branch) child(path string, s *semel.ChildStep, rec semel.StepRecord, recorded bool) (semel.StepRecord, error) {
	x, n := b.x, s.Run
	what := n.Workflow + " " + string(n.Key)
	if recorded && rec.What != what {
		b.hold(path, fmt.Sprintf("changed code: step %s started run %q, and the code asks for %q", path, rec.What, what))
	}
	if recorded && (rec.Outcome == semel.StepCompleted || x.later(b.path) || !x.run.RetriedAt.After(rec.At)) {
		return childEnd(rec)
	}
	r, err := x.w.runs.FindRun(x.ctx, n.Workflow, n.Key)
	was, waited := x.waited(path)
	switch begun := waited && was.Kind == semel.WaitRun; {
	case begun && (errors.Is(err, semel.ErrNotFound) || err == nil && r.ID != was.Target):
		b.hold(path, fmt.Sprintf("changed code: step %s waits for run %s, and the code asks for %q, which would be another run", path, was.Target, what))
	case errors.Is(err, semel.ErrNotFound):
		n.ID = x.w.e.newID()
		n.Parent, n.ParentStep, n.Priority = x.run.ID, path, x.run.Priority
		n.Trigger = semel.Trigger{Kind: semel.ByRun, By: "run " + x.run.ID.String()}
		b.suspend(semel.RunWait{Path: path, Kind: semel.WaitRun, Target: n.ID, Child: &n, Reason: "step " + path + ": waits for run " + what})
	case err != nil:
		x.abort(err)
		b.exit()
	}
	above, err := b.above(r.ID)
	if err != nil {
		x.abort(err)
		b.exit()
	}
	if above {
		b.hold(path, "step "+path+" waits for a run that waits for this one, so neither can end: start another run")
	}
	if fields := r.DiffInput(n.Input); len(fields) > 0 {
		b.hold(path, (&semel.RunConflictError{Run: r, Fields: fields}).Error())
	}
	if r.State == semel.RunFailed && recorded && !r.EndedAt.After(x.run.RetriedAt) {
		if _, err := x.w.runs.ChangeRun(x.ctx, r.ID, semel.RunCommand{Verb: semel.RetryRun, By: x.w.e.opt.Name, Reason: "run " + x.run.ID.String() + " was retried"}); err != nil {
			x.abort(err)
			b.exit()
		}
		r.State = semel.RunRunning
	}
	if !r.State.Ended() {
		b.suspend(semel.RunWait{Path: path, Kind: semel.WaitRun, Target: r.ID, Reason: "step " + path + ": waits for run " + what})
	}
	rec = semel.StepRecord{Path: path, Kind: semel.StepChild, What: what, Outcome: semel.StepCompleted, Result: r.Result}
	if r.State != semel.RunCompleted {
		rec.Outcome, rec.Failure = semel.StepFailed, string(r.State)
		if r.Reason != "" {
			rec.Failure += ": " + r.Reason
		}
		rec.Result = []byte(`"` + r.ID.String() + `"`)
	}
	return childEnd(b.keep(rec))
}

func childEnd(rec semel.StepRecord) (semel.StepRecord, error) {
	if rec.Outcome == semel.StepCompleted {
		return rec, nil
	}
	id, _ := semel.ParseID(string(rec.Result[1 : len(rec.Result)-1])) // as child wrote it
	state, reason, _ := strings.Cut(rec.Failure, ": ")
	return semel.StepRecord{}, &semel.ChildError{Path: rec.Path, Run: id, State: semel.RunState(state), Reason: reason}
}

// above reports whether the run is this one, or one that waits for it.
func (b *branch) above(id semel.ID) (bool, error) {
	r := b.x.run
	for range maxDepth {
		if r.ID == id {
			return true, nil
		}
		if r.Parent == (semel.ID{}) {
			return false, nil
		}
		parent, err := b.x.w.runs.LoadRun(b.x.ctx, r.Parent)
		if errors.Is(err, semel.ErrNotFound) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		r = parent
	}
	return false, nil
}

// maxDepth is how far runs above a run are looked at.
const maxDepth = 32
