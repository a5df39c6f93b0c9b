package check

import (
	"slices"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/workflowfile"
)

// shared finds steps of one run that have one scope and key, and so are one
// piece of work. A step that is asked for twice at one place is one step.
func (r *recorder) shared() (all []Finding) {
	type identity struct {
		scope semel.Scope
		key   semel.Key
	}
	type begun struct {
		path string
		call *semel.Call
	}
	made := map[identity][]begun{}
	for _, s := range r.steps {
		do, ok := s.step.(*semel.DoStep)
		if !ok || do.Keyless || do.Call.Contract.Protection == semel.Commutes {
			continue
		}
		call := &do.Call
		id := identity{call.Scope, call.Key}
		if id.scope == "" {
			id.scope = semel.ActionScope("", call.Request.Connection, call.Action)
		}
		earlier := made[id]
		if slices.ContainsFunc(earlier, func(b begun) bool { return b.path == s.path }) {
			continue
		}
		made[id] = append(earlier, begun{s.path, call})
		if len(earlier) == 0 {
			continue
		}
		f, _ := sharedKey(earlier[0].path, s.path, string(call.Key), differ(earlier[0].call.Request, call.Request))
		f.Step = plain(s.path)
		all = append(all, f)
	}
	// An item is like the others: the gravest finding of a step stands for all.
	slices.SortStableFunc(all, func(a, b Finding) int {
		return compareBool(b.Severity == workflowfile.SeverityError, a.Severity == workflowfile.SeverityError)
	})
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(f Finding) bool {
		twice := seen[f.Step]
		seen[f.Step] = true
		return twice
	})
}

// sharedKey is the finding of two steps with one key.
func sharedKey(one, other, key string, differ bool) (Finding, bool) {
	const fix = "give each a key of its own"
	if differ {
		return found(workflowfile.CodeSharedKey, workflowfile.SeverityError, fix,
			"steps %s and %s of one run have the key %q, and send different requests: the run is held at the second", one, other, key)
	}
	return found(workflowfile.CodeSharedKey, workflowfile.SeverityWarning, fix,
		"steps %s and %s of one run have the key %q: only one of them is made, though both may be meant", one, other, key)
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
