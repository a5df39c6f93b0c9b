package workflowfile

import (
	"bytes"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Parse reads the content of a workflow file; file is its name in messages. It
// returns every problem of the file, in the order of their places. The
// definition is nil if one of them is an error. Parse reads no file and asks
// no one but checks.
func Parse(file string, data []byte, checks Checks) (*Definition, []Problem) {
	r := &reader{
		file: file, lines: strings.Split(normal(data), "\n"), checks: checks, files: map[string]string{},
		broken: map[*yaml.Node]bool{}, places: map[string]int{}, unchecked: map[string]bool{},
	}
	d := &Definition{File: file, Text: bytes.Clone(data)}
	if root := r.document(data); root != nil {
		r.workflow(root, d)
	}
	problems := sorted(file, r.problems)
	if HasErrors(problems) {
		return nil, problems
	}
	return d, problems
}

func (r *reader) workflow(root *yaml.Node, d *Definition) {
	m, ok := r.shape(root, "workflow")
	if !ok {
		return
	}
	for _, required := range []struct{ name, fix string }{
		{"name", "add name: what_it_does"},
		{"version", "add version: 1"},
		{"steps", "add steps:"},
	} {
		if m[required.name] == nil && !r.has(root, required.name) {
			r.wrong(root, CodeMissing, required.fix, "the workflow has no %s", required.name)
		}
	}
	if n := m["name"]; n != nil {
		d.Name, _ = r.name(n, "name")
	}
	if n := m["version"]; n != nil {
		d.Version = r.count(n, "version", 1_000_000_000)
	}
	if n := m["owner"]; n != nil {
		d.Owner, _ = r.text(n, "owner")
	}
	if n := m["description"]; n != nil {
		d.Description = r.prose(n, "description")
	}
	if n := m["on"]; n != nil {
		r.triggers = r.on(n)
		d.Triggers = r.triggers
	}
	var defaults []*yaml.Node
	if n := m["inputs"]; n != nil {
		d.Inputs, defaults = r.inputs(n)
	}
	items := append(r.collect(m["steps"]), r.collect(m["on_failure"])...)
	language, err := newLanguage(d.Inputs, items)
	if err != nil {
		r.wrong(root, CodeType, "use other names for inputs and items", "the expressions cannot be read: %v", err)
		return
	}
	r.language = language
	r.defaults(d.Inputs, defaults)

	top := &scope{
		done: map[string]*Step{}, inputs: map[string]Input{},
		event: r.triggers.Event != nil, tick: r.triggers.Schedule != nil,
	}
	for _, in := range d.Inputs {
		top.inputs[in.Name] = in
	}
	if n := m["steps"]; n != nil {
		d.Steps = r.steps(n, "steps", top)
	}
	if n := m["on_failure"]; n != nil {
		after := top.inner("")
		after.failure = true
		d.OnFailure = r.steps(n, "on_failure", after)
	}
	d.files = r.files
	d.content = r.content(m)
	d.Digest = d.content.digest()
}

// has reports whether a mapping has the member at all, broken or not.
func (r *reader) has(n *yaml.Node, name string) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return true
		}
	}
	return false
}

// collect notes where the steps of a list and of the lists within are, and
// returns what their items are called.
func (r *reader) collect(n *yaml.Node) (items []string) {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	for _, step := range n.Content {
		if id := get(step, "id"); id != nil && r.places[id.Value] == 0 {
			r.places[id.Value] = id.Line
		}
		if as := get(get(step, "each"), "as"); as != nil && isItem(as.Value) {
			items = append(items, as.Value)
		}
		items = append(items, r.collect(get(step, "steps"))...)
	}
	return items
}

// get returns a member of a mapping, nil if there is none.
func get(n *yaml.Node, name string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

func isItem(s string) bool {
	return namePattern.MatchString(s) && len(s) <= maxName && !slices.Contains(reserved, s) && !slices.Contains([]string{"in", "true", "false", "null"}, s)
}
