package workflowfile

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"go.yaml.in/yaml/v4"

	"github.com/semel-dev/semel"
)

var actionName = regexp.MustCompile(`^[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*$`)

// uses reads a step that performs an action.
func (r *reader) uses(n *yaml.Node, m members, s *scope) *Uses {
	u := &Uses{unknown: true}
	action, inherited := ActionInfo{}, false
	if text, ok := r.text(n, "uses"); ok {
		if !actionName.MatchString(text) {
			r.wrong(n, CodeValue, "write CONNECTION.ACTION, for example payments.charge", "uses %s is not the name of an action", shown(text))
		} else {
			u.Connection, u.Action, _ = strings.Cut(text, ".")
			action, inherited, ok = r.action(n, u)
			u.unknown, u.Read = !ok, action.Read
		}
	}
	if n := m["with"]; n != nil && r.isMapping(n, "with") {
		u.With = r.value(n, use{what: "with", scope: s})
	}
	if !u.unknown {
		r.members(n, m["with"], u, action)
	}
	r.attach(n, m["with"], u, s)
	if e := m["effect"]; e != nil {
		u.Effect = r.effect(e, s)
		if u.Read {
			r.wrong(n, CodeValue, "leave it out", "%s.%s reads and has no effect", u.Connection, u.Action)
		}
	} else if !u.unknown && !u.Read && !inherited {
		r.wrong(n, CodeEffect, `add effect: {key: "what-${{ names.the }}-work"}, or kind: absolute where it sets a value`,
			"%s.%s acts, and neither the step nor the connection says how it may be repeated", u.Connection, u.Action)
	}
	if n := m["retry"]; n != nil {
		u.Retry = r.retry(n)
	}
	if n := m["timeout"]; n != nil {
		u.Timeout = r.duration(n, "timeout")
	}
	return u
}

// action asks what is known about an action; ok is false if nothing is.
// inherited means that an effect comes with it.
func (r *reader) action(n *yaml.Node, u *Uses) (action ActionInfo, inherited, ok bool) {
	actions, isBuiltIn := builtIn(u.Connection)
	var contract *semel.Contract
	if !isBuiltIn {
		info, ok := r.connection(n, u.Connection)
		if !ok {
			return ActionInfo{}, false, false
		}
		actions, contract = info.Actions, info.Contract
	}
	if actions != nil {
		if action, ok = actions[u.Action]; !ok {
			known := slices.Sorted(maps.Keys(actions))
			r.wrong(n, CodeReference, Suggest(u.Action, known), "%s has no action %s", u.Connection, shown(u.Action))
			return ActionInfo{}, false, false
		}
		if action.Contract != nil {
			contract = action.Contract
		}
	}
	return action, contract != nil, true
}

// connection asks about a connection; what cannot be told is a warning, once.
func (r *reader) connection(n *yaml.Node, name string) (ConnectionInfo, bool) {
	if r.checks.Connection == nil {
		if !r.unchecked[name] {
			r.unchecked[name] = true
			r.warn(n, CodeNotChecked, "check it together with semel.yaml", "connection %s was not checked", name)
		}
		return ConnectionInfo{}, false
	}
	info, ok := r.checks.Connection(name)
	if !ok {
		r.wrong(n, CodeReference, "add it to semel.yaml, or mend the name", "there is no connection %s", shown(name))
	}
	return info, ok
}

// members checks with against what the action takes.
func (r *reader) members(n, with *yaml.Node, u *Uses, action ActionInfo) {
	for _, name := range action.Required {
		if get(with, name) == nil {
			r.wrong(n, CodeMissing, "add it below with:", "%s.%s needs %s", u.Connection, u.Action, name)
		}
	}
	if with == nil || with.Kind != yaml.MappingNode {
		return
	}
	known := slices.Sorted(slices.Values(slices.Concat(action.Required, action.Optional)))
	for key, value := range r.pairs(with) {
		if action.Optional != nil && !slices.Contains(known, key.Value) {
			r.wrong(key, CodeField, Suggest(key.Value, known), "%s.%s takes no %s", u.Connection, u.Action, shown(key.Value))
		}
		if _, ok := builtIn(u.Connection); !ok || key.Value != "at" {
			continue
		}
		if strings.Contains(value.Value, "${{") {
			r.wrong(value, CodeValue, "write its name", "at is computed, but a step has one connection")
		} else if name, ok := r.text(value, "at"); ok {
			r.connection(value, name)
		}
	}
}

func (r *reader) effect(n *yaml.Node, s *scope) *Effect {
	e := &Effect{OnUnknown: Recover}
	m, ok := r.shape(n, "effect")
	if !ok {
		return e
	}
	if len(m) == 0 && len(n.Content) == 0 {
		r.wrong(n, CodeMissing, "add key or kind, or leave it out", "effect is empty")
	}
	if n := m["kind"]; n != nil {
		e.Kind = semel.EffectKind(r.oneOf(n, "kind", "absolute", "relative", "creates", "external"))
	}
	if n := m["on_unknown"]; n != nil {
		e.OnUnknown = OnUnknown(r.oneOf(n, "on_unknown", "recover", "ask"))
	}
	if n := m["on_failed"]; n != nil {
		e.OnFailed = semel.OnFailed(r.oneOf(n, "on_failed", "rerun", "return"))
	}
	if n := m["key"]; n != nil {
		e.Key = r.key(n, s)
	}
	return e
}

// key reads the template of a key, which has to name the work.
func (r *reader) key(n *yaml.Node, s *scope) *Value {
	if _, ok := r.text(n, "key"); !ok {
		return nil
	}
	v := r.value(n, use{what: "key", scope: s, key: true, wants: "a text or an integer", types: keyTypes})
	if v == nil {
		return nil
	}
	refs := v.Refs()
	if s.item != "" {
		own := uses(refs, s.item)
		for id := range s.lines {
			own = own || uses(refs, "steps."+id)
		}
		if !own {
			r.wrong(n, CodeKey, "use what names the item, such as ${{ "+s.item+".id }}", "key does not use %s, so all items would be one operation", s.item)
		}
	} else if len(refs) == 0 {
		r.warn(n, CodeKey, "use an input or run.key, unless it is meant to happen once for ever", "key is the same for every run")
	}
	return v
}

func (r *reader) retry(n *yaml.Node) *semel.Retry {
	retry := &semel.Retry{}
	m, ok := r.shape(n, "retry")
	if !ok {
		return retry
	}
	if a := m["attempts"]; a != nil {
		retry.Attempts = r.count(a, "attempts", 1000)
	} else if !r.has(n, "attempts") {
		r.wrong(n, CodeMissing, "add attempts: 4", "retry has no attempts")
	}
	if n := m["backoff"]; n != nil {
		retry.Backoff = r.duration(n, "backoff")
	}
	return retry
}

// textual checks a literal or computed text: read tells what is wrong with a
// literal.
func (r *reader) textual(n *yaml.Node, what string, s *scope, also *cel.Type, wants string, read func(string) bool) *Value {
	if _, ok := r.text(n, what); !ok {
		return nil
	}
	v := r.value(n, use{what: what, scope: s, wants: wants, types: []*cel.Type{cel.StringType, also}})
	if v == nil {
		return nil
	}
	if text, ok := v.literal.(string); ok && !read(text) {
		r.wrong(n, CodeValue, "write "+wants, "%s %s is not %s", what, shown(text), wants)
	}
	return v
}
