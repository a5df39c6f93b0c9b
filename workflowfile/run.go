package workflowfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/semel-dev/semel"
)

// aside begins the paths of what is done after a failure. It is a list of its
// own: the failed step can be tried again later, as nothing came after it.
const aside = "on_failure/"

// run executes the definition as a workflow function.
func (d *Definition) run(ctx semel.Context, a Actions) error {
	vars, err := d.vars(ctx)
	if err != nil {
		return err
	}
	l := list{d: d, actions: a}.inner(vars)
	failed := l.run(ctx, d.Steps)
	if failed == nil {
		return nil
	}
	if _, happened := errors.AsType[*semel.UnreadableError](failed); happened || len(d.OnFailure) == 0 {
		return failed
	}
	if err := ctx.Err(); err != nil {
		return err // another worker goes on
	}
	if err := l.afterFailure(ctx, failed); err != nil {
		if ctx.Err() != nil {
			return err
		}
		return fmt.Errorf("%w; on_failure: %w", failed, err)
	}
	return failed
}

// afterFailure runs on_failure, once for a run: what failed is recorded, so
// that a run that is retried tells nobody a second time.
func (l list) afterFailure(ctx semel.Context, failed error) error {
	failure := map[string]any{"step": "", "message": failed.Error()}
	if e, ok := errors.AsType[*stepError](failed); ok {
		failure["step"], failure["message"] = e.step.ID, e.err.Error()
	}
	recorded, err := once(ctx, aside+"known-failure", func() (any, error) { return failure, nil })
	if err != nil {
		return err
	}
	l = l.inner(l.vars)
	l.vars["failure"], l.prefix = recorded, aside
	return l.run(ctx, l.d.OnFailure)
}

// list executes one list of steps.
type list struct {
	d       *Definition
	actions Actions
	prefix  string // of the names of its steps
	vars    Vars   // its own
	results map[string]any
}

// inner is a list within, which sees what is known now.
func (l list) inner(vars Vars) list {
	l.vars, l.results, l.prefix = maps.Clone(vars), map[string]any{}, ""
	if outer, ok := vars["steps"].(map[string]any); ok {
		l.results = maps.Clone(outer)
	}
	l.vars["steps"] = l.results
	return l
}

func (l list) run(ctx semel.Context, steps []*Step) error {
	for i, s := range steps {
		due, err := true, error(nil)
		if s.If != nil {
			due, err = s.If.Bool(ctx, l.vars)
		}
		var result map[string]any
		if due && err == nil {
			result, err = l.step(ctx, s, steps[i:])
		}
		if result != nil {
			l.results[s.ID] = result
		}
		if err != nil {
			return &stepError{file: l.d.File, step: s, err: err}
		}
	}
	return nil
}

// step performs one step and returns what it adds to its variable, nil for
// nothing; following are the steps from this one on.
func (l list) step(ctx semel.Context, s *Step, following []*Step) (map[string]any, error) {
	switch {
	case s.Uses != nil:
		return l.uses(ctx, s)
	case s.Each != nil:
		return l.each(ctx, s)
	case s.Wait != nil:
		return l.wait(ctx, s)
	case s.Sleep != nil:
		return nil, l.sleep(ctx, s)
	}
	for _, later := range following {
		if later.ID == s.Approve.Step {
			return l.approve(ctx, s.ID, later, s.Approve.Ask)
		}
	}
	return nil, fmt.Errorf("there is no step %s to approve", s.Approve.Step)
}

// each performs the steps within for every item.
func (l list) each(ctx semel.Context, s *Step) (map[string]any, error) {
	items, err := s.Each.In.List(ctx, l.vars)
	if err != nil {
		return nil, err
	}
	step := &semel.EachStep{AtOnce: s.Each.AtOnce, Keys: make([]string, len(items)), Items: make([][]byte, len(items))}
	vars := maps.Clone(l.vars)
	for i, item := range items {
		vars[s.Each.As] = item
		if step.Keys[i], err = s.Each.Key.Key(ctx, vars); err != nil {
			return nil, err
		}
		if step.Items[i], err = json.Marshal(item); err != nil {
			return nil, err
		}
	}
	step.Body = func(ctx semel.Context, data []byte) error {
		item, err := decode(data)
		if err != nil {
			return &semel.UnreadableError{Path: ctx.Branch(), Err: err}
		}
		inner := l.inner(l.vars)
		inner.vars[s.Each.As] = item
		return inner.run(ctx, s.Each.Steps)
	}
	total, failed := len(items), 0
	_, err = semel.Take(ctx, l.prefix+s.ID, step)
	if e, ok := errors.AsType[*semel.ItemsError](err); ok {
		total, failed = e.Total, len(e.Failed)
	} else if err != nil {
		return nil, err
	}
	return result(map[string]any{"total": count(total), "failed": count(failed)}), err
}

// wait waits for an event.
func (l list) wait(ctx semel.Context, s *Step) (map[string]any, error) {
	step := &semel.EventStep{Name: s.Wait.Event, Timeout: s.Wait.Timeout}
	if s.Wait.Match != nil {
		var err error
		if step.Match, err = s.Wait.Match.Key(ctx, l.vars); err != nil {
			return nil, err
		}
	}
	rec, err := semel.Take(ctx, l.prefix+s.ID, step)
	if err != nil {
		return nil, err
	}
	if rec.Outcome == semel.StepTimedOut {
		return result(nil), nil
	}
	var e semel.InboxEvent
	if err := json.Unmarshal(rec.Result, &e); err != nil {
		return nil, &semel.UnreadableError{Path: rec.Path, Err: err}
	}
	v, err := eventValue(&e)
	if err != nil {
		return nil, &semel.UnreadableError{Path: rec.Path, Err: err}
	}
	return result(v), nil
}

func (l list) sleep(ctx semel.Context, s *Step) error {
	step := &semel.SleepStep{}
	var err error
	if s.Sleep.For != nil {
		step.For, err = s.Sleep.For.Duration(ctx, l.vars)
		if err == nil && (step.For < 0 || step.For > semel.MaxSleep) {
			err = fmt.Errorf("%v is not from 0 to 100 years", step.For)
		}
	} else {
		step.Until, err = s.Sleep.Until.Time(ctx, l.vars)
	}
	if err != nil {
		return err
	}
	_, err = semel.Take(ctx, l.prefix+s.ID, step)
	return err
}

// stepError says which step failed, and where it stands.
type stepError struct {
	file string
	step *Step
	err  error
}

func (e *stepError) Error() string {
	place := fmt.Sprintf("%s:%d: ", e.file, e.step.Line)
	_, failed := errors.AsType[*semel.FailedError](e.err)
	_, unreadable := errors.AsType[*semel.UnreadableError](e.err)
	_, items := errors.AsType[*semel.ItemsError](e.err)
	if failed || unreadable || items {
		return place + e.err.Error() // it says which step
	}
	return place + "step " + e.step.ID + ": " + e.err.Error()
}

func (e *stepError) Unwrap() error { return e.err }

func result(v any) map[string]any { return map[string]any{"result": v} }

func count(n int) json.Number { return json.Number(fmt.Sprint(n)) }
