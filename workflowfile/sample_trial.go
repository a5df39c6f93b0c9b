package workflowfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/semel-dev/semel"
)

// mostTried bounds the steps of a trial.
const mostTried = 10_000

var errTooMany = fmt.Errorf("the sample has more than %d steps", mostTried)

// own are the values that are given instead of inferred ones.
type own struct {
	inputs  map[string]any
	answers map[string]any // by path, with or without item keys
	events  map[string]any // by path, without item keys; null for none
	start   *any           // the data of the event that starts the run
}

// trial executes a definition with inferred and given values, and collects
// those that it used. It is the Executor of its run.
type trial struct {
	s        *sampling
	own      own
	sample   Sample
	run      semel.Run
	branches map[string]branch
	reached  map[string]bool
	asked    map[string]bool // the paths of requests, with item keys
	keys     map[semel.Key]operation
	tried    int
}

// branch is where the steps of one item are: their path without keys, and the
// places of the items.
type branch struct {
	path  string
	index []int
}

type operation struct{ path, request string }

var (
	_ semel.Executor = (*trial)(nil)
	_ Actions        = (*trial)(nil)
)

// try makes the sample and tries it.
func (s *sampling) try(o own) Sample {
	t := &trial{
		s: s, own: o, branches: map[string]branch{"": {}}, reached: map[string]bool{}, asked: map[string]bool{}, keys: map[semel.Key]operation{},
		sample: Sample{Trigger: semel.Trigger{Kind: s.trigger}, Answers: map[string]json.RawMessage{}},
	}
	t.start()
	ctx := semel.NewContext(context.Background(), t, "")
	vars, err := s.d.vars(ctx)
	var after error
	if err == nil {
		l := list{d: s.d, actions: t}.inner(vars)
		err = l.run(ctx, s.d.Steps)
		after = l.afterFailure(ctx, errors.New("a sample of a failure"))
	}
	t.judge(err, after)
	t.unused()
	return t.sample
}

// start fills in what the run begins with.
func (t *trial) start() {
	d := t.s.d
	t.run = semel.Run{Workflow: d.Name, Version: d.Version, Definition: d.Digest, Key: sampleKey}
	switch t.s.trigger {
	case semel.ByEvent:
		e := semel.InboxEvent{ID: sampleKey, Name: d.Triggers.Event.Name, At: sampleTime}
		if t.own.start != nil {
			e.Data = encoded(*t.own.start)
		} else if t.s.event.kind != "" {
			e.Data = encoded(new(values).of(t.s.event, nil))
		}
		t.sample.Trigger.Event = &e
		t.sample.Input = json.RawMessage("{}")
	default:
		if t.s.trigger == semel.BySchedule {
			t.sample.Trigger.Tick = &semel.Tick{At: sampleTime, Label: sampleKey, Date: sampleTime.Format(time.DateOnly)}
		}
		t.sample.Input = encoded(t.inputs())
	}
	t.run.Trigger, t.run.Input = t.sample.Trigger, t.sample.Input
}

// inputs are what the starter gives: all but what the trigger does.
func (t *trial) inputs() map[string]any {
	inputs := map[string]any{}
	for _, in := range t.s.d.Inputs {
		if value, ok := t.own.inputs[in.Name]; ok {
			inputs[in.Name] = value
			continue
		}
		g := t.s.inputs[in.Name]
		if t.s.trigger == semel.ByPerson || in.Default == nil || g.given != nil {
			inputs[in.Name] = new(values).of(g, nil)
		}
	}
	return inputs
}

func encoded(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // a JSON value always marshals
	}
	return data
}

// Call is the request of a step, for no destination.
func (t *trial) Call(connection, action string, with map[string]any) (semel.Call, error) {
	return semel.Call{Action: connection + "." + action, Request: semel.Request{Body: encoded(with)}}, nil
}

func (t *trial) Run() *semel.Run { return &t.run }

func (t *trial) Return(any) error { return nil }

// Step performs a step with what the sample has for it.
func (t *trial) Step(ctx semel.Context, path string, step semel.Step) (semel.StepRecord, error) {
	in := t.branches[ctx.Branch()]
	bare := strings.TrimPrefix(strings.TrimPrefix(path, ctx.Branch()), "/")
	if in.path != "" {
		bare = in.path + "/" + bare
	}
	t.reached[bare] = true
	record := semel.StepRecord{Path: path}
	if t.tried++; t.tried > mostTried {
		return record, errTooMany
	}
	var err error
	switch step := step.(type) {
	case *semel.ValueStep:
		record.Result, err = step.Compute(sampleTime, [16]byte{})
	case *semel.EventStep:
		err = t.wait(&record, bare, in.index, step)
	case *semel.ApprovalStep:
		record.Result = encoded(semel.Approval{By: "ann", Reason: "it is right"})
	case *semel.EachStep:
		err = t.each(ctx, path, bare, in.index, step)
	case *semel.DoStep:
		if err = t.once(path, step.Call); err == nil {
			record.Effect = &semel.Operation{Result: &semel.Result{MediaType: "application/json", Body: t.answer(path, bare, in.index)}}
		}
	}
	return record, err
}

// once refuses two requests that the sample would make one operation.
func (t *trial) once(path string, call semel.Call) error {
	key := semel.Key(call.Action + " " + string(call.Key))
	this := operation{path, string(call.Request.Body)}
	if before, twice := t.keys[key]; twice && before.request != this.request {
		return fmt.Errorf("the sample gives it the key %s, which step %s has for another request", shown(string(call.Key)), before.path)
	}
	t.keys[key] = this
	return nil
}

// answer is what the destination says, noted by the path without item keys,
// and by the whole path where it differs.
func (t *trial) answer(path, bare string, index []int) json.RawMessage {
	t.asked[path] = true
	a, given := t.own.answers[path]
	if !given {
		a, given = t.own.answers[bare]
	}
	if !given {
		a = map[string]any{}
		if g := t.s.answers[bare]; g != nil && g.said() {
			a = new(values).of(g, index)
		}
	}
	data := encoded(a)
	if first, ok := t.sample.Answers[bare]; !ok {
		t.sample.Answers[bare] = data
	} else if string(first) != string(data) || withoutItems(path) != bare {
		t.sample.Answers[path] = data
	}
	return data
}

// wait brings the event of a wait, or its timeout.
func (t *trial) wait(record *semel.StepRecord, bare string, index []int, step *semel.EventStep) error {
	e := semel.InboxEvent{ID: record.Path, Name: step.Name, Match: step.Match, At: sampleTime}
	data, given := t.own.events[bare]
	g := t.s.answers[bare]
	if !given {
		result, _ := new(values).of(g, index).(map[string]any)
		if data = result["data"]; g.members["data"].kind == "" && result != nil {
			data = map[string]any{}
		}
	}
	if data == nil {
		if step.Timeout == 0 {
			return errors.New("the sample brings no event, and the wait has no timeout")
		}
		record.Outcome = semel.StepTimedOut
		return nil
	}
	e.Data = encoded(data)
	t.sample.Events = append(t.sample.Events, SampleEvent{Path: record.Path, Name: e.Name, Match: e.Match, Data: e.Data})
	record.Result = encoded(e)
	return nil
}

func (t *trial) each(ctx semel.Context, path, bare string, index []int, step *semel.EachStep) error {
	if err := step.Validate(path); err != nil {
		return err
	}
	for i, key := range step.Keys {
		within := path + "[" + key + "]"
		t.branches[within] = branch{bare, append(slices.Clone(index), i)}
		if err := step.Body(semel.NewContext(ctx, t, within), step.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// judge says what was not reached, and why: what comes after a step that
// failed is not known.
func (t *trial) judge(failed ...error) {
	known := len(t.s.paths)
	for _, err := range failed {
		if err == nil {
			continue
		}
		i := t.failing(err)
		var hint string
		if i >= 0 {
			known = min(known, i)
			hint = t.write(t.s.paths[i].step.refs(), t.s.paths[i].scope)
		} else {
			known, hint = 0, t.write(nil, nil)
		}
		t.unsure("%v: %s", err, hint)
	}
	for _, p := range t.s.paths[:known] {
		outer := p.path[:max(strings.LastIndexByte(p.path, '/'), 0)]
		if t.reached[p.path] || outer != "" && outer+"/" != aside && !t.reached[outer] {
			continue
		}
		at := fmt.Sprintf("%s:%d:%d: step %s is not reached", t.s.d.File, p.step.Line, p.step.Column, p.path)
		if p.step.If != nil {
			t.unsure("%s, as its if is not true: %s: %s", at, p.step.If.Text, t.write(p.step.If.Refs, p.scope))
		} else {
			t.unsure("%s: its list has no item for it", at)
		}
	}
}

// unused says which answers are for items that are not there.
func (t *trial) unused() {
	for _, path := range slices.Sorted(maps.Keys(t.own.answers)) {
		if bare := withoutItems(path); bare != path && !t.asked[path] && t.reached[bare] {
			t.unsure("answers.%s is not used: no item has this key", path)
		}
	}
}

func (t *trial) unsure(format string, args ...any) {
	t.sample.Unsure = append(t.sample.Unsure, fmt.Sprintf(format, args...))
}

// failing is the place of the step that failed, -1 for none.
func (t *trial) failing(err error) int {
	var step *Step
	for e, ok := errors.AsType[*stepError](err); ok; e, ok = errors.AsType[*stepError](e.err) {
		step = e.step
	}
	return slices.IndexFunc(t.s.paths, func(p stepPath) bool { return p.step == step })
}

// write names the members of a file of own values that variables come from.
func (t *trial) write(refs []string, scope *reading) string {
	all := map[string]bool{}
	for _, ref := range refs {
		path := strings.Split(ref, ".")
		switch {
		case path[0] == "event":
			all["events."+t.s.d.Triggers.Event.Name] = true
		case path[0] == "inputs" && len(path) > 1 && t.s.trigger == semel.ByPerson:
			all["input."+path[1]] = true
		case path[0] == "steps" && len(path) > 1 && scope.steps[path[1]] != nil:
			t.source(scope.steps[path[1]].result, all)
		case scope.items[path[0]] != nil:
			t.source(scope.items[path[0]], all)
		}
	}
	if len(all) == 0 {
		return "change what it uses"
	}
	return "write " + strings.Join(slices.Sorted(maps.Keys(all)), " or ") + " in " + t.s.d.SampleFile()
}

// source is the member of such a file that gives g.
func (t *trial) source(g *guess, all map[string]bool) {
	for ; g != nil; g = g.parent {
		for name, input := range t.s.inputs {
			if input == g {
				all["input."+name] = true
			}
		}
		for path, answer := range t.s.answers {
			switch {
			case answer != g:
			case answer.members["name"] != nil && answer.members["name"].fixed:
				all["events."+path] = true
			default:
				all["answers."+path] = true
			}
		}
		if g == t.s.event {
			all["events."+t.s.d.Triggers.Event.Name] = true
		}
	}
}
