package workflowfile

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Accept says that a risk of a step is known, and why it is taken. It changes
// nothing about a run, and is not part of the digest.
type Accept struct {
	Code   Code
	Reason string

	Line, Column int
}

// accept reads what a step accepts.
func (r *reader) accept(n *yaml.Node) []Accept {
	var all []Accept
	for _, n := range r.list(n, "accept") {
		m, ok := r.shape(n, "accept")
		if !ok {
			continue
		}
		a := Accept{Line: at(n).line, Column: at(n).column}
		if code := m["code"]; code != nil {
			a.Code = r.acceptedCode(code, all)
		} else if !r.has(n, "code") {
			r.wrong(n, CodeMissing, "add code: the name in brackets at the end of a finding", "accept names no code")
		}
		if reason := m["reason"]; reason != nil {
			if a.Reason, ok = r.text(reason, "reason"); ok && strings.TrimSpace(a.Reason) == "" {
				r.wrong(reason, CodeMissing, "say why the risk is taken", "the reason is empty")
			}
		} else if !r.has(n, "reason") {
			r.wrong(n, CodeMissing, "add reason: why the risk is taken", "accept gives no reason")
		}
		all = append(all, a)
	}
	return all
}

func (r *reader) acceptedCode(n *yaml.Node, before []Accept) Code {
	text, ok := r.text(n, "code")
	if !ok {
		return ""
	}
	if !acceptable(Code(text)) {
		var known []string
		for _, code := range Acceptable() {
			known = append(known, string(code))
		}
		r.wrong(n, CodeValue, Suggest(text, known), "%s is no risk that can be accepted", shown(text))
	}
	if slices.ContainsFunc(before, func(a Accept) bool { return a.Code == Code(text) }) {
		r.wrong(n, CodeDuplicate, "keep one of them", "%s is accepted already", text)
	}
	return Code(text)
}

// unaccepted takes out of the content of a list of steps what they accept.
func (c *node) unaccepted() {
	for _, step := range c.list {
		step.fields = slices.DeleteFunc(step.fields, func(f nodeField) bool { return f.name == "accept" })
		if inner := step.get("steps"); inner != nil {
			inner.unaccepted()
		}
	}
}
