package workflowfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/semel-dev/semel"
)

// Actions makes the calls of steps. It must be safe for concurrent use.
type Actions interface {
	// Call is what a step asks for that uses CONNECTION.ACTION: request,
	// contract and destination. The step adds the key and what its effect says.
	// The same arguments give the same request. An error says that nothing can
	// be sent.
	Call(connection, action string, with map[string]any) (semel.Call, error)
}

// Workflow is the definition for a worker. Its engine needs a Resolver that
// finds the destinations of a: which ones the steps reach, only a run shows.
func (d *Definition) Workflow(a Actions) semel.WorkflowDefinition {
	w := semel.WorkflowDefinition{
		Name: d.Name, Version: d.Version, Owner: d.Owner, Digest: d.Digest, Text: d.bundle(),
		Run:  func(ctx semel.Context) error { return d.run(ctx, a) },
		Diff: d.changedFrom,
	}
	if d.Triggers.Schedule != nil {
		w.Schedules = []semel.Schedule{*d.Triggers.Schedule}
	}
	if d.Triggers.Event != nil {
		w.Events = []string{d.Triggers.Event.Name}
	}
	return w
}

// New asks for a run with the given inputs, a JSON object. It refuses those
// that no run could begin with; the error is an [semel.InputError].
func (d *Definition) New(key semel.Key, inputs []byte) (semel.NewRun, error) {
	n := semel.NewRun{Workflow: d.Name, Version: d.Version, Definition: d.Digest, Key: key, Input: inputs}
	if err := n.Validate(); err != nil {
		return n, err
	}
	given, err := decodeInputs(n.Input)
	if err != nil {
		return n, err
	}
	return n, errors.Join(d.checkInputs(given), d.checkDefaults(given))
}

// changedFrom says how the definition differs from the one with that text.
func (d *Definition) changedFrom(text []byte) []string {
	workflow, files := unbundle(text)
	old, _ := Parse(d.File, workflow, Checks{File: func(name string) ([]byte, error) { return files[name], nil }})
	if old == nil {
		return nil // it was written for another Semel
	}
	return Diff(old, d)
}

// vars are the variables of a run. Its inputs are resolved once.
func (d *Definition) vars(ctx semel.Context) (Vars, error) {
	run := ctx.Run()
	vars := Vars{"run": map[string]any{"key": string(run.Key), "workflow": run.Workflow}}
	if t := run.Trigger.Tick; t != nil {
		vars["tick"] = map[string]any{"date": t.Date, "at": t.At.UTC().Format(time.RFC3339), "label": t.Label}
	}
	given := map[string]any{}
	if e := run.Trigger.Event; e != nil {
		event, err := eventValue(e)
		if err != nil {
			return nil, fmt.Errorf("%s: event %s: %w", d.File, e.Name, err)
		}
		vars["event"] = event
	} else {
		var err error
		if given, err = decodeInputs(run.Input); err != nil {
			return nil, fmt.Errorf("%s: %w", d.File, err)
		}
	}
	var err error
	vars["inputs"], err = once(ctx, "resolve-inputs", func() (any, error) { return d.ResolveInputs(ctx, given, vars) })
	if err != nil {
		return nil, fmt.Errorf("%s: nothing was done: %w", d.File, err)
	}
	return vars, nil
}

// once computes a value and records it, so that the run sees no other. It is
// semel.Compute that keeps the digits of numbers.
func once(ctx semel.Context, name string, fn func() (any, error)) (any, error) {
	rec, err := semel.Take(ctx, name, &semel.ValueStep{Compute: func(time.Time, [16]byte) ([]byte, error) {
		v, err := fn()
		if err != nil {
			return nil, err
		}
		return json.Marshal(v)
	}})
	if err != nil {
		return nil, err
	}
	v, err := decode(rec.Result)
	if err != nil {
		return nil, &semel.UnreadableError{Path: rec.Path, Err: err}
	}
	return v, nil
}

// eventValue is an event as expressions see it.
func eventValue(e *semel.InboxEvent) (map[string]any, error) {
	v := map[string]any{"id": e.ID, "name": e.Name, "data": nil}
	if len(e.Data) == 0 {
		return v, nil
	}
	data, err := decode(e.Data)
	v["data"] = data
	return v, err
}

func decodeInputs(data []byte) (map[string]any, error) {
	v, err := decode(data)
	given, ok := v.(map[string]any)
	if err != nil || !ok {
		return nil, &semel.InputError{Field: "inputs", Problem: "are not a JSON object", Hint: `write {"name": value}`}
	}
	return given, nil
}

// decode reads one JSON value and keeps the digits of its numbers.
func decode(data []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("read JSON: there is more after its value")
	}
	return v, nil
}
