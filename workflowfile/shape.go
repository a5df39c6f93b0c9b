package workflowfile

import (
	"slices"

	"go.yaml.in/yaml/v4"
)

// shapes are the mappings of a workflow file and their members, as the schema
// names them.
var shapes = map[string][]string{
	"workflow": {"name", "version", "owner", "description", "on", "inputs", "steps", "on_failure"},
	"on":       {"schedule", "event", "http"},
	"schedule": {"cron", "zone", "missed"},
	"event":    {"name"},
	"http":     {},
	"input":    {"type", "format", "default", "description"},
	"step":     {"id", "if", "uses", "with", "effect", "retry", "timeout", "approve", "each", "steps", "wait", "sleep", "accept"},
	"accept":   {"code", "reason"},
	"effect":   {"key", "kind", "on_unknown", "on_failed"},
	"retry":    {"attempts", "backoff"},
	"each":     {"in", "as", "key", "at_once"},
	"wait":     {"event", "match", "timeout"},
	"sleep":    {"for", "until"},
	"approve":  {"step", "valid", "timeout", "by"},
}

// members are what one mapping holds, by name.
type members map[string]*yaml.Node

// shape reads a mapping of a known shape; ok is false if it is no mapping.
// Members that were reported already are left out.
func (r *reader) shape(n *yaml.Node, shape string) (m members, ok bool) {
	if !r.isMapping(n, shape) {
		return nil, false
	}
	m = members{}
	for key, value := range r.pairs(n) {
		if !slices.Contains(shapes[shape], key.Value) {
			r.wrong(key, CodeField, Suggest(key.Value, shapes[shape]), "%s has no member %s", shape, shown(key.Value))
			continue
		}
		m[key.Value] = value
	}
	return m, true
}

func (r *reader) isMapping(n *yaml.Node, what string) bool {
	if r.broken[n] {
		return false
	}
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		r.wrong(n, CodeMissing, "give it members, or write {}", "%s is empty", what)
		return false
	}
	if n.Kind != yaml.MappingNode {
		r.wrong(n, CodeStructure, "write members as name: value, indented below it", "%s is not a mapping", what)
		return false
	}
	return true
}

// pairs goes over the members of a mapping whose names are not broken.
func (r *reader) pairs(n *yaml.Node) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !r.broken[n.Content[i]] && !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}

// list returns the elements of a list that is not empty.
func (r *reader) list(n *yaml.Node, what string) []*yaml.Node {
	switch {
	case r.broken[n]:
	case n.Kind != yaml.SequenceNode:
		r.wrong(n, CodeStructure, "write each element after a dash", "%s is not a list", what)
	case len(n.Content) == 0:
		r.wrong(n, CodeMissing, "write at least one, or leave it out", "%s is empty", what)
	default:
		return n.Content
	}
	return nil
}
