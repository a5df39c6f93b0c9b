package workflowfile

import (
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"go.yaml.in/yaml/v4"
)

var kinds = []string{"uses", "each", "wait", "sleep", "approve"}

// steps reads one list of steps.
func (r *reader) steps(n *yaml.Node, what string, s *scope) []*Step {
	nodes := r.list(n, what)
	s.lines = map[string]int{}
	for _, n := range nodes {
		if id := get(n, "id"); id != nil && s.lines[id.Value] == 0 {
			s.lines[id.Value] = id.Line
		}
	}
	var steps []*Step
	for _, n := range nodes {
		m, ok := r.shape(n, "step")
		if !ok {
			continue
		}
		step := &Step{Line: at(n).line, Column: at(n).column}
		r.id(n, m, s, step)
		r.step(n, m, s, step)
		steps = append(steps, step)
		if step.ID != "" {
			s.done[step.ID] = step
		}
	}
	for i, step := range steps {
		if step.Approve != nil && step.Approve.Step != "" {
			r.approved(steps, i)
		}
	}
	return steps
}

func (r *reader) id(n *yaml.Node, m members, s *scope, step *Step) {
	id := m["id"]
	if id == nil {
		if !r.has(n, "id") {
			r.wrong(n, CodeMissing, "add id: a_name", "the step has no id")
		}
		return
	}
	text, ok := r.name(id, "id")
	if !ok {
		return
	}
	if _, twice := s.done[text]; twice {
		r.wrong(id, CodeDuplicate, "give it another id", "step %s is in this list already, in line %d", text, s.lines[text])
		return
	}
	if line := s.outer.later(text); line > 0 {
		r.wrong(id, CodeDuplicate, "give it another id", "step %s would hide the step of line %d", text, line)
		return
	}
	step.ID = text
}

func (r *reader) step(n *yaml.Node, m members, s *scope, step *Step) {
	if n := m["if"]; n != nil {
		step.If = r.bare(n, use{what: "if", scope: s, wants: "true or false", types: []*cel.Type{cel.BoolType}})
	}
	var given []string
	for _, kind := range kinds {
		if r.has(n, kind) {
			given = append(given, kind)
		}
	}
	switch {
	case len(given) == 0:
		r.wrong(n, CodeMissing, "add one of "+strings.Join(kinds, ", "), "the step does nothing")
	case len(given) > 1 && !slices.Equal(given, []string{"uses", "approve"}):
		r.wrong(n, CodeStructure, "make them steps of their own", "the step has %s", strings.Join(given, " and "))
	}
	for _, belongs := range []struct{ member, kind string }{
		{"with", "uses"}, {"effect", "uses"}, {"retry", "uses"}, {"timeout", "uses"}, {"steps", "each"},
	} {
		if m[belongs.member] != nil && !r.has(n, belongs.kind) {
			r.wrong(m[belongs.member], CodeField, "add "+belongs.kind+", or leave it out", "%s belongs to %s", belongs.member, belongs.kind)
		}
	}
	if n := m["accept"]; n != nil {
		step.Accept = r.accept(n)
	}
	if n := m["uses"]; n != nil {
		step.Uses = r.uses(n, m, s)
	}
	if n := m["wait"]; n != nil {
		step.Wait = r.wait(n, s)
	}
	if n := m["sleep"]; n != nil {
		step.Sleep = r.sleep(n, s)
	}
	if n := m["approve"]; n != nil {
		step.Approve = r.approve(n, step)
	}
	if n := m["each"]; n != nil {
		step.Each = r.each(n, m["steps"], s)
	}
}

func (r *reader) each(n, list *yaml.Node, s *scope) *Each {
	e := &Each{AtOnce: 1}
	m, ok := r.shape(n, "each")
	if !ok {
		m = members{}
	}
	if as := m["as"]; as != nil {
		e.As, _ = r.name(as, "as")
		switch {
		case e.As == "":
		case slices.Contains(reserved, e.As):
			r.wrong(as, CodeValue, "use another name", "as %s is a word of the expression language", e.As)
		case slices.Contains(s.items(), e.As):
			r.wrong(as, CodeDuplicate, "use another name", "as %s would hide the item of an outer each", e.As)
		}
	}
	if in := m["in"]; in != nil {
		e.In = r.bare(in, use{what: "in", scope: s, wants: "a list", types: []*cel.Type{cel.ListType(cel.DynType)}})
	}
	for _, required := range []struct{ name, fix string }{
		{"in", "add in: steps.ID.rows"}, {"as", "add as: what an item is called"}, {"key", "add key: what names an item, such as invoice.id"},
	} {
		if ok && !r.has(n, required.name) {
			r.wrong(n, CodeMissing, required.fix, "each has no %s", required.name)
		}
	}
	if n := m["at_once"]; n != nil {
		e.AtOnce = r.count(n, "at_once", 10_000)
	}
	inner := s.inner(e.As)
	if key := m["key"]; key != nil {
		e.Key = r.bare(key, use{what: "key", scope: inner, key: true, wants: "a text or an integer", types: keyTypes})
		if e.Key != nil && e.As != "" && !uses(e.Key.Refs, e.As) {
			r.wrong(key, CodeKey, "use a member of "+e.As+" that names it", "key does not use %s, so all items would have one key", e.As)
		}
	}
	if list == nil {
		r.wrong(n, CodeMissing, "add steps: beside each:", "each has no steps")
		return e
	}
	e.Steps = r.steps(list, "steps", inner)
	return e
}

// uses reports whether one of the paths begins with the variable or member.
func uses(refs []string, path string) bool {
	return slices.ContainsFunc(refs, func(ref string) bool { return ref == path || strings.HasPrefix(ref, path+".") })
}
