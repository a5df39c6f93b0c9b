package workflowfile

import (
	"context"
	"errors"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/semel-dev/semel"
)

// SampleFile is where [Definition.ReadSample] expects values of one's own,
// beside the workflow file: drill/NAME.yaml.
func (d *Definition) SampleFile() string { return "drill/" + d.Name + ".yaml" }

// ReadSample derives a sample as [Definition.Sample] does, with some of its
// values given in a YAML file:
//
//	input: {day: "2027-01-31"}
//	answers:
//	  due: {rows: [{id: "4417", customer: c-1, email: ann@example.com, amount: 12.50}]}
//	  bill/charge: {id: ch_1}
//	  bill[4418]/charge: {id: ch_2}
//	events:
//	  reply: {text: yes please}
//	  reminder: null
//
// Input gives single inputs. An answer replaces the whole inferred answer of
// its step, for all items or, with item keys, for one. Events give the data of
// what a wait gets, by its path or for all waits of that name, and of the event
// that starts the run; null for none, so that the wait times out. What is not
// given is inferred, and what is inferred for items follows the items given.
//
// Reading is strict: all problems are reported at once. The sample is of use
// only if there is none.
func (d *Definition) ReadSample(file string, data []byte) (Sample, []Problem) {
	r := &reader{
		file: file, lines: strings.Split(string(data), "\n"),
		broken: map[*yaml.Node]bool{}, places: map[string]int{}, unchecked: map[string]bool{},
	}
	s := newSampling(d)
	o := own{inputs: map[string]any{}, answers: map[string]any{}, events: map[string]any{}}
	root := r.document(data)
	if root == nil {
		r.problems = slices.DeleteFunc(r.problems, func(p Problem) bool { return p.Code == CodeMissing }) // it is empty
	} else if r.isMapping(root, "the sample") {
		r.sample(root, s, &o)
	}
	if HasErrors(r.problems) {
		return Sample{}, sorted(file, r.problems)
	}
	return s.try(o), nil
}

func (r *reader) sample(root *yaml.Node, s *sampling, o *own) {
	read := map[string]func(key, value *yaml.Node){
		"input":   func(key, value *yaml.Node) { r.ownInput(key, value, s, o) },
		"answers": func(key, value *yaml.Node) { r.ownAnswer(key, value, s, o) },
		"events":  func(key, value *yaml.Node) { r.ownEvent(key, value, s, o) },
	}
	for key, value := range r.pairs(root) {
		member := read[key.Value]
		if member == nil {
			r.wrong(key, CodeField, Suggest(key.Value, []string{"input", "answers", "events"}), "the sample has no member %s", shown(key.Value))
			continue
		}
		if !r.isMapping(value, key.Value) {
			continue
		}
		for key, value := range r.pairs(value) {
			member(key, value)
		}
	}
}

func (r *reader) ownInput(key, n *yaml.Node, s *sampling, o *own) {
	var names []string
	for _, in := range s.d.Inputs {
		names = append(names, in.Name)
		if in.Name != key.Value {
			continue
		}
		if s.trigger == semel.ByEvent {
			r.wrong(key, CodeValue, "write events: {"+s.d.Triggers.Event.Name+": ...}", "an event starts the run, whose inputs are their defaults")
			return
		}
		value, ok := r.plain(n, "input "+key.Value)
		if !ok {
			return
		}
		if e, wrong := errors.AsType[*semel.InputError](in.Check(value)); wrong {
			r.wrong(n, CodeType, e.Hint, "input %s %s", key.Value, e.Problem)
		}
		o.inputs[key.Value] = value
		return
	}
	r.wrong(key, CodeReference, Suggest(key.Value, names), "there is no input %s", shown(key.Value))
}

func (r *reader) ownAnswer(key, n *yaml.Node, s *sampling, o *own) {
	var paths []string
	for _, p := range s.paths {
		if p.step.Uses != nil {
			paths = append(paths, p.path)
		} else if p.path == key.Value {
			r.wrong(key, CodeReference, "leave it out", "step %s asks no destination, so there is no answer to it", key.Value)
			return
		}
	}
	if !slices.Contains(paths, withoutItems(key.Value)) {
		r.wrong(key, CodeReference, Suggest(key.Value, paths), "there is no step %s", shown(key.Value))
		return
	}
	if value, ok := r.plain(n, "the answer to "+key.Value); ok {
		o.answers[key.Value] = value
	}
}

func (r *reader) ownEvent(key, n *yaml.Node, s *sampling, o *own) {
	value, ok := r.plain(n, "event "+key.Value)
	var names []string
	found := false
	for _, p := range s.paths {
		if p.step.Wait == nil {
			continue
		}
		names = append(names, p.path, p.step.Wait.Event)
		_, own := o.events[p.path]
		switch key.Value {
		case p.path:
			o.events[p.path], found = value, true
		case p.step.Wait.Event:
			found = true
			if !own { // the path says more than the name
				o.events[p.path] = value
			}
		}
	}
	if s.trigger == semel.ByEvent {
		names = append(names, s.d.Triggers.Event.Name)
		if key.Value == s.d.Triggers.Event.Name {
			o.start, found = &value, true
			if ok && value == nil {
				r.wrong(n, CodeValue, "give its data", "event %s starts the run", key.Value)
			}
		}
	}
	if !found {
		slices.Sort(names)
		r.wrong(key, CodeReference, Suggest(key.Value, slices.Compact(names)), "no step waits for event %s", shown(key.Value))
	}
}

// plain reads a value without expressions.
func (r *reader) plain(n *yaml.Node, what string) (value any, ok bool) {
	before := len(r.problems)
	r.constants(n, what)
	if len(r.problems) > before {
		return nil, false
	}
	v := r.value(n, use{what: what})
	if v == nil || len(r.problems) > before {
		return nil, false
	}
	value, err := v.Eval(context.Background(), nil)
	return value, err == nil
}

// constants refuses expressions.
func (r *reader) constants(n *yaml.Node, what string) {
	if n.Kind == yaml.ScalarNode && strings.Contains(n.Value, "${{") && !r.broken[n] {
		r.wrong(n, CodeValue, "write the value itself", "%s holds an expression", what)
	}
	for _, child := range n.Content {
		r.constants(child, what)
	}
}
