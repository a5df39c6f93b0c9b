package workflowfile

import (
	"errors"
	"slices"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"go.yaml.in/yaml/v4"

	"github.com/semel-dev/semel"
)

func (r *reader) wait(n *yaml.Node, s *scope) *Wait {
	w := &Wait{}
	m, ok := r.shape(n, "wait")
	if !ok {
		return w
	}
	if e := m["event"]; e != nil {
		w.Event = r.eventName(e)
	} else if !r.has(n, "event") {
		r.wrong(n, CodeMissing, "add event: its name", "wait has no event")
	}
	if n := m["match"]; n != nil {
		if _, ok := r.text(n, "match"); ok {
			w.Match = r.value(n, use{what: "match", scope: s, key: true, wants: "a text or an integer", types: keyTypes})
		}
	}
	if n := m["timeout"]; n != nil {
		w.Timeout = r.duration(n, "timeout")
	}
	return w
}

// eventName reads the name of an event.
func (r *reader) eventName(n *yaml.Node) string {
	s, ok := r.text(n, "event")
	if !ok {
		return ""
	}
	if e, ok := errors.AsType[*semel.InputError](semel.ValidateStepName(s)); ok {
		r.wrong(n, CodeValue, e.Hint, "event name %s", e.Problem)
	}
	return s
}

func (r *reader) sleep(n *yaml.Node, s *scope) *Sleep {
	sleep := &Sleep{}
	if n.Kind == yaml.ScalarNode && n.ShortTag() != "!!null" && !r.broken[n] {
		r.wrong(n, CodeStructure, "write sleep: {for: 72h}, in hours, minutes and seconds", "sleep is not a mapping")
		return sleep
	}
	m, ok := r.shape(n, "sleep")
	if !ok {
		return sleep
	}
	f, u := m["for"], m["until"]
	switch {
	case f == nil && u == nil && len(n.Content) == 0:
		r.wrong(n, CodeMissing, "add for: 72h", "sleep has neither for nor until")
	case f != nil && u != nil:
		r.wrong(u, CodeStructure, "keep one of them", "sleep has both for and until")
	}
	if f != nil {
		if strings.Contains(f.Value, "${{") {
			sleep.For = r.textual(f, "for", s, cel.DurationType, "a duration such as 72h", func(string) bool { return true })
		} else if d := r.duration(f, "for"); d > 0 {
			sleep.For = &Value{Line: at(f).line, Column: at(f).column, file: r.file, literal: d.String()}
		}
	}
	if u != nil {
		sleep.Until = r.textual(u, "until", s, cel.TimestampType, `a point in time such as "2027-01-31T09:00:00Z"`, func(text string) bool {
			_, err := time.Parse(time.RFC3339, text)
			return err == nil
		})
	}
	return sleep
}

func (r *reader) approve(n *yaml.Node, step *Step) *Approve {
	a := &Approve{}
	m, ok := r.shape(n, "approve")
	if !ok {
		return a
	}
	if s := m["step"]; s != nil {
		a.Step, _ = r.name(s, "step")
		if step.Uses != nil {
			r.wrong(s, CodeStructure, "leave it out; approve beside uses asks for this step", "approve names another step")
		}
	} else if step.Uses == nil && !r.has(n, "step") {
		r.wrong(n, CodeMissing, "add step: ID of a later step of this list", "approve names no step")
	}
	if step.Uses != nil && step.Uses.Read {
		r.wrong(n, CodeValue, "leave it out", "%s.%s reads; there is nothing to approve", step.Uses.Connection, step.Uses.Action)
	}
	if n := m["valid"]; n != nil {
		a.Ask.Valid = r.duration(n, "valid")
	}
	if n := m["timeout"]; n != nil {
		a.Ask.Timeout = r.duration(n, "timeout")
	}
	if n := m["by"]; n != nil {
		a.Ask.Of, _ = r.text(n, "by")
	}
	return a
}

// approved checks the step that the i-th step of a list asks approval for: its
// request must be complete by then.
func (r *reader) approved(steps []*Step, i int) {
	asking := steps[i]
	p := place{asking.Line, asking.Column}
	wrong := func(fix, message string, args ...any) {
		r.report(p, SeverityError, CodeReference, fix, message, args...)
	}
	target := slices.IndexFunc(steps, func(s *Step) bool { return s.ID == asking.Approve.Step })
	if target >= 0 {
		steps[target].asked = true
	}
	switch {
	case target < 0:
		wrong("name a later step of the same list", "approve: there is no step %s in this list", asking.Approve.Step)
		return
	case target <= i:
		wrong("name a later step", "approve: step %s is not after it", asking.Approve.Step)
		return
	case steps[target].Uses == nil || steps[target].Uses.Read:
		wrong("name a step that acts", "approve: step %s has no request to approve", asking.Approve.Step)
		return
	}
	var refs []string
	if with := steps[target].Uses.With; with != nil {
		refs = append(refs, with.Refs()...)
	}
	if e := steps[target].Uses.Effect; e != nil && e.Key != nil {
		refs = append(refs, e.Key.Refs()...)
	}
	for _, between := range steps[i:target] {
		if between.ID != "" && uses(refs, "steps."+between.ID) {
			wrong("move the approval below it", "approve: the request of step %s uses step %s, which is not done by then", asking.Approve.Step, between.ID)
		}
	}
}
