package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"time"

	"github.com/semel-dev/semel"
)

const (
	maxSteps       = 1000 // of one dry run: one that waits in a loop has no end
	maxSuspensions = 100
)

// dry is how one dry run differs from the first.
type dry struct {
	second bool // another run of the same work, at another time
	varied bool // another input, and other answers
	stopAt int  // the step at which it is suspended, from 1; 0 for none
}

// recorder is the semel.Executor of one dry run: it records every step, and
// performs none.
type recorder struct {
	plan *plan
	dry
	seen      map[string]bool
	names     map[string]string // what the answer at a path is called
	paths     []string          // of the steps, in their order
	does      []did
	approvals []asked
	pauses    []pause
	late      []string // paths of steps that were asked for after the suspension
	stopped   bool
	failed    error // what the workflow returned
	panicked  error
}

// did is an action that was asked for.
type did struct {
	path  string // without the keys of items
	step  *semel.DoStep
	after int    // pauses before it
	item  string // the path with them
}

// asked is an approval that was asked for.
type asked struct {
	step  *semel.ApprovalStep
	after int // pauses up to it
}

var _ semel.Executor = (*recorder)(nil)

// execute calls the workflow's function in a goroutine that a suspension may
// end.
func (r *recorder) execute() error {
	done := make(chan error, 1)
	go func() {
		var err error
		defer func() {
			if p := recover(); p != nil {
				r.panicked = fmt.Errorf("workflow %s panicked in a dry run: %v", r.plan.d.Name, p)
			}
			done <- err
		}()
		err = r.plan.d.Run(semel.NewContext(context.Background(), r, ""))
	}()
	return <-done
}

// Run is the run that is executed. A second one has another ID and attempt.
func (r *recorder) Run() *semel.Run {
	run := semel.Run{
		ID: semel.ID{0: 1, 6: 0x70, 8: 0x80}, Workflow: r.plan.d.Name, Version: r.plan.d.Version, Key: r.plan.key, Input: r.plan.input, Attempt: 1,
		State: semel.RunRunning, CreatedAt: begun,
	}
	if r.second {
		run.ID[15], run.Attempt = 1, 2
	}
	if r.varied {
		run.Key, run.Input = run.Key+"-2", vary(r.plan.input)
	}
	return &run
}

// begun is when a dry run begins, by the store's clock.
var begun = time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)

// Return takes the result of the run, and forgets it.
func (r *recorder) Return(value any) error {
	_, err := json.Marshal(value)
	return err
}

// Step records a step.
func (r *recorder) Step(ctx semel.Context, path string, s semel.Step) (semel.StepRecord, error) {
	at := plain(path)
	if r.stopped {
		r.late = append(r.late, at)
		runtime.Goexit()
	}
	r.paths = append(r.paths, at)
	if len(r.paths) == r.stopAt || len(r.paths) > maxSteps {
		r.stopped = true
		runtime.Goexit()
	}
	rec := semel.StepRecord{Path: path, Kind: semel.KindOf(s), Outcome: semel.StepCompleted, At: begun}
	switch s := s.(type) {
	case *semel.DoStep:
		name := s.Call.Request.Connection + "." + s.Call.Action
		rec.Result = r.answer(path, s.Call.Action, name)
		r.do(did{path: at, step: s, after: len(r.pauses), item: path})
		if err := r.plan.failure(at, s.Call.Action, name); err != nil {
			return rec, &semel.FailedError{Path: path, Reason: err.Error()}
		}
		return rec, nil
	case *semel.ValueStep:
		return r.value(rec, at, s)
	case *semel.SleepStep:
		d := s.For
		if !s.Until.IsZero() {
			d = max(time.Until(s.Until), 0)
		}
		r.pauses = append(r.pauses, pause{step: at, least: d, most: d})
		return rec, nil
	case *semel.EventStep:
		r.pauses = append(r.pauses, pause{step: at, most: s.Timeout})
		return r.event(rec, at, s)
	case *semel.ApprovalStep:
		r.pauses = append(r.pauses, pause{step: at, most: s.Ask.Timeout})
		r.approvals = append(r.approvals, asked{step: s, after: len(r.pauses)})
		return r.approval(rec, at, s)
	case *semel.ChildStep:
		r.pauses = append(r.pauses, pause{step: at})
		rec.Result = r.answer(path, s.Run.Workflow)
		if err := r.plan.failure(at, s.Run.Workflow); err != nil {
			return rec, &semel.ChildError{Path: path, State: semel.RunFailed, Reason: err.Error()}
		}
		return rec, nil
	case *semel.EachStep:
		return rec, r.each(ctx, path, s)
	}
	return rec, fmt.Errorf("step %s is of an unknown kind %T", path, s)
}

// do keeps the first of the effects that have one path: those of the other
// items are like it.
func (r *recorder) do(d did) {
	if !r.seen[d.path] {
		r.seen[d.path] = true
		r.does = append(r.does, d)
	}
}

// value computes a value once: every other run of the same work gets what the
// first got, as from a record.
func (r *recorder) value(rec semel.StepRecord, at string, s *semel.ValueStep) (semel.StepRecord, error) {
	if err := r.plan.failure(at); err != nil {
		return rec, err
	}
	given, ok := r.plan.answers[at]
	if !ok && !r.varied {
		given, ok = r.plan.values[rec.Path]
	}
	if ok {
		rec.Result = r.varying(given)
		return rec, nil
	}
	now, random := begun, [16]byte{1}
	if r.varied {
		now, random = begun.AddDate(1, 1, 1), [16]byte{2}
	}
	result, err := s.Compute(now, random)
	if err == nil && !r.varied {
		r.plan.values[rec.Path] = result
	}
	rec.Result = result
	return rec, err
}

func (r *recorder) event(rec semel.StepRecord, at string, s *semel.EventStep) (semel.StepRecord, error) {
	switch err := r.plan.failure(at, s.Name); {
	case errors.Is(err, semel.ErrTimedOut):
		rec.Outcome = semel.StepTimedOut
		return rec, nil
	case err != nil:
		return rec, err
	}
	e := semel.InboxEvent{ID: "check", Name: s.Name, Match: s.Match, Data: r.answer(rec.Path, s.Name), At: begun}
	data, err := json.Marshal(e)
	rec.Result = data
	return rec, err
}

func (r *recorder) approval(rec semel.StepRecord, at string, s *semel.ApprovalStep) (semel.StepRecord, error) {
	switch err := r.plan.failure(at); {
	case errors.Is(err, semel.ErrTimedOut):
		rec.Outcome = semel.StepTimedOut
		return rec, nil
	case err != nil:
		rec.Outcome, rec.Failure = semel.StepRejected, err.Error()
		return rec, nil
	}
	data, err := json.Marshal(semel.Approval{Path: at, Request: s.Call.Request, Ask: s.Ask, State: semel.ApprovalGiven, By: "check"})
	rec.Result = data
	return rec, err
}

// each runs the branches one after the other.
func (r *recorder) each(ctx semel.Context, path string, s *semel.EachStep) error {
	failed := &semel.ItemsError{Path: path, Total: len(s.Keys)}
	for i, k := range s.Keys {
		err := s.Body(semel.NewContext(ctx.Context, r, path+"["+k+"]"), s.Items[i])
		if _, unreadable := errors.AsType[*semel.UnreadableError](err); unreadable {
			return err
		}
		if err != nil {
			failed.Failed = append(failed.Failed, semel.ItemFailure{Key: k, Reason: err.Error()})
		}
	}
	if len(failed.Failed) > 0 {
		return failed
	}
	return nil
}

func (r *recorder) sent(path string) (did, bool) {
	for _, d := range r.does {
		if d.path == path {
			return d, true
		}
	}
	return did{}, false
}

var itemKey = regexp.MustCompile(`\[[^\]]*\]`)

// plain is a path without the keys of items.
func plain(path string) string { return itemKey.ReplaceAllString(path, "") }
