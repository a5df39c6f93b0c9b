package check

import (
	"slices"
	"strings"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/workflowfile"
)

// states are members that many requests have in common, besides those of who,
// how much and when.
var states = []string{"status", "state", "type", "kind", "category", "method", "description", "text", "note"}

// lookupNotUnique: what a lookup finds counts as done, so it must not find what
// another request did.
func lookupNotUnique(_ *workflow, e *effect) (Finding, bool) {
	c := &e.contract
	if c.LookupURL == "" || c.Protection != semel.Lookup && c.Protection != semel.Keyed {
		return Finding{}, false
	}
	var fields, refs []string
	for _, piece := range strings.Split(c.LookupURL, "{")[1:] {
		name, _, _ := strings.Cut(piece, "}")
		field, ok := strings.CutPrefix(name, "body.")
		if !ok {
			return Finding{}, false
		}
		fields = append(fields, field)
		i := slices.IndexFunc(e.request, func(m member) bool { return m.name == snake(last(field)) })
		if i < 0 {
			if !repeats(field) {
				return Finding{}, false
			}
			continue
		}
		if m := e.request[i]; !m.constant && !repeats(field) && (len(m.refs) == 0 || !all(m.refs, repeats)) {
			return Finding{}, false
		}
		refs = append(append(refs, e.request[i].refs...), fields...)
	}
	const fix = "look up by {key}, {destination_key}, or a member of the body that names the work"
	switch {
	case len(fields) == 0:
		return found(workflowfile.CodeLookup, workflowfile.SeverityError, fix,
			"the lookup of step %s is the same for every request: it finds another one's effect, and this one would count as done", e.path)
	case len(e.key.members) > 0 && all(e.key.members, func(m string) bool { return slices.Contains(refs, m) }):
		return Finding{}, false
	}
	return found(workflowfile.CodeLookup, workflowfile.SeverityWarning, fix,
		"step %s is looked up by %s: the lookup may find another one's effect, and this one would count as done", e.path, strings.Join(fields, ", "))
}

func all(names []string, is func(string) bool) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !is(name) })
}

// repeats reports whether many pieces of work agree in a member, by its path.
func repeats(path string) bool {
	name := snake(last(path))
	for _, names := range [][]string{parties, quantities, times, states} {
		if slices.Contains(names, name) {
			return true
		}
	}
	return isParty(path)
}

// isParty reports whether a path says who: customer, or customer.id.
func isParty(path string) bool {
	name := snake(last(path))
	if of, ok := strings.CutSuffix(path, ".id"); ok && name == "id" {
		name = snake(last(of))
	}
	return slices.Contains(parties, name)
}
