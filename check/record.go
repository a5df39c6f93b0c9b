package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"sync"
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
	resume int  // the same run, gone through again from its beginning
}

// same reports whether it is the same run as the first, with its records.
func (d dry) same() bool { return !d.second && !d.varied }

// recorder records every step of one dry run, and performs none.
type recorder struct {
	plan *plan
	dry
	wrong chan struct{} // closed at a wrong use of a Context

	mu        sync.Mutex
	over      bool   // the run is, or has no use any more: nothing is recorded
	misuse    string // the first wrong use of a Context
	misused   string // the step that it was found at, without the keys of items
	seen      map[string]bool
	names     map[string]string // what the answer at a path is called
	steps     []requested
	does      []did
	approvals []asked
	pauses    []pause
	lists     map[string]*semel.EachStep
	late      []string // paths of steps that were asked for after the suspension
	stopped   bool
	failed    error // what the workflow returned
}

// requested is a step that was asked for.
type requested struct {
	path string // with the keys of items
	step semel.Step
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

// ending is how the function of a workflow ended.
type ending struct{ failed, panicked error }

// execute calls the workflow's function in a goroutine that a suspension may
// end. After a wrong use of a Context it may wait for ever, and is left alone.
func (r *recorder) execute() (end ending) {
	done := make(chan ending, 1)
	go func() {
		var end ending
		defer func() {
			if p := recover(); p != nil {
				end.panicked = fmt.Errorf("workflow %s panicked in a dry run: %v", r.plan.d.Name, p)
			}
			done <- end
		}()
		end.failed = r.plan.d.Run(semel.NewContext(context.Background(), r.strand(""), ""))
	}()
	select {
	case end = <-done:
	case <-r.wrong:
		select {
		case end = <-done:
		case <-time.After(stranded):
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over, r.failed = true, end.failed
	if r.misuse != "" {
		end.panicked = nil // what code makes of a wrong use is no news
	}
	return end
}

// Run is the run that is executed. A second one has another ID and attempt.
func (r *recorder) Run() *semel.Run {
	run := semel.Run{
		ID: semel.ID{0: 1, 6: 0x70, 8: 0x80}, Workflow: r.plan.d.Name, Version: r.plan.d.Version, Key: r.plan.key, Input: r.plan.input, Attempt: 1,
		State: semel.RunRunning, CreatedAt: begun,
	}
	run.Attempt += r.resume
	if r.second {
		run.ID[15], run.Attempt = 1, 2
	}
	if r.varied {
		run.ID[15] = 2
		run.Key, run.Input = run.Key+"-2", vary(r.plan.input)
	}
	return &run
}

// begun is when a dry run begins, by the store's clock.
var begun = time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)

// begin records that a step is asked for, and ends the goroutine where the run
// is suspended.
func (r *recorder) begin(path string, s semel.Step) {
	if r.stopped {
		r.late = append(r.late, plain(path))
		runtime.Goexit()
	}
	r.steps = append(r.steps, requested{path, s})
	if len(r.steps) == r.stopAt || len(r.steps) > maxSteps {
		r.stopped = true
		runtime.Goexit()
	}
}

// perform is what a step brings that runs no code of the workflow.
func (r *recorder) perform(path string, s semel.Step) (semel.StepRecord, error) {
	at := plain(path)
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

// known is a value that there is an answer or a record for: every other run of
// the same work gets what the first got.
func (r *recorder) known(path string) (result []byte, ok bool) {
	given, ok := r.plan.answers[plain(path)]
	if !ok && !r.varied {
		given, ok = r.plan.values[path]
	}
	if !ok {
		return nil, false
	}
	return r.varying(given), true
}

// clock is what a value is computed from.
func (r *recorder) clock() (now time.Time, random [16]byte) {
	if r.varied {
		return begun.AddDate(1, 1, 1), [16]byte{2}
	}
	return begun, [16]byte{1}
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

// action is the action that was asked for at a path with the keys of items.
func (r *recorder) action(path string) (*semel.DoStep, bool) {
	i := slices.IndexFunc(r.steps, func(s requested) bool { return s.path == path })
	if i < 0 {
		return nil, false
	}
	do, ok := r.steps[i].step.(*semel.DoStep)
	return do, ok
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
