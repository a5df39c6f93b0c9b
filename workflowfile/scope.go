package workflowfile

import (
	"maps"
	"slices"
	"strings"
)

// scope is what the expressions of one list of steps may refer to.
type scope struct {
	outer *scope
	item  string           // each.as, for the list of an each
	lines map[string]int   // where each step of the list is, also the later ones
	done  map[string]*Step // the steps before this one
	// inputs by name, for all lists; events and ticks as the triggers bring
	// them.
	inputs  map[string]Input
	event   bool
	tick    bool
	failure bool
}

// inner is the scope of the list of an each.
func (s *scope) inner(item string) *scope {
	return &scope{
		outer: s, item: item, done: map[string]*Step{}, inputs: s.inputs,
		event: s.event, tick: s.tick, failure: s.failure,
	}
}

func (s *scope) step(id string) (*Step, bool) {
	for ; s != nil; s = s.outer {
		if step, ok := s.done[id]; ok {
			return step, true
		}
	}
	return nil, false
}

// later reports whether id is a step of this or an outer list, and where.
func (s *scope) later(id string) (line int) {
	for ; s != nil && line == 0; s = s.outer {
		line = s.lines[id]
	}
	return line
}

func (s *scope) items() []string {
	var all []string
	for ; s != nil; s = s.outer {
		if s.item != "" {
			all = append(all, s.item)
		}
	}
	return all
}

func (s *scope) steps() []string {
	var all []string
	for ; s != nil; s = s.outer {
		all = append(all, slices.Collect(maps.Keys(s.done))...)
	}
	slices.Sort(all)
	return all
}

// variables lists what an expression here may begin with.
func (s *scope) variables() []string {
	all := []string{"run"}
	if s.inputs != nil {
		all = append(all, "inputs", "steps") // not in a default
	}
	if s.event {
		all = append(all, "event")
	}
	if s.failure {
		all = append(all, "failure")
	}
	if s.tick {
		all = append(all, "tick")
	}
	all = append(all, s.items()...)
	slices.Sort(all)
	return all
}

// varying are names that differ from attempt to attempt.
var varying = []string{"attempt", "now", "random", "rand", "uuid", "time", "today", "date"}

// resolve reports the references that lead nowhere.
func (r *reader) resolve(p place, text string, refs []reference, u use) bool {
	ok := true
	for _, ref := range refs {
		here := p
		if !strings.Contains(text, "\n") {
			here.column += ref.offset
		}
		code, fix, problem := r.unresolved(ref, u)
		if problem == "" {
			continue
		}
		ok = false
		r.report(here, SeverityError, code, fix, "%s: %s", u.what, problem)
	}
	return ok
}

// unresolved says what is wrong with one reference; "" if nothing is.
func (r *reader) unresolved(ref reference, u use) (code Code, fix, problem string) {
	first, member, s := ref.path[0], "", u.scope
	if len(ref.path) > 1 {
		member = ref.path[1]
	}
	stable := "use what names the work: inputs, an item, run.key"
	switch {
	case slices.Contains(s.items(), first):
		return "", "", ""
	case slices.Contains(varying, first):
		if u.key {
			return CodeKey, stable, "a key must be the same on every attempt, and " + first + " is not"
		}
		return CodeReference, "use tick, an input or a step's result", first + " differs each time and is not to be had"
	case first == "run" && member == "id":
		if u.key {
			return CodeKey, "use run.key", "a key must be the same when the work is started again, and run.id is not"
		}
		return CodeReference, "use run.key", "run.id differs each time and is not to be had"
	case ref.call:
		return "", "", ""
	case first == "index" || first == "i" || first == "loop" || first == "item_index":
		return CodeReference, "use a member of the item that names it", "there is no " + first + ": a place in a list names no item"
	case first == "secrets" || first == "env":
		return CodeReference, "name the secret in semel.yaml; it never passes through a workflow", "there is no " + first
	case first == "tick" && !s.tick:
		return CodeReference, "add on: {schedule: ...}, or use an input", "there is no tick without a schedule"
	case first == "event" && !s.event:
		return CodeReference, "add on: {event: ...}, or use an input", "there is no event that starts this workflow"
	case first == "inputs" && s.inputs == nil, first == "steps" && s.inputs == nil:
		return CodeReference, "a default may use run, tick and event", "there are no " + first + " yet"
	case !slices.Contains(s.variables(), first):
		return CodeReference, Suggest(first, s.variables()), "there is no " + shown(first)
	case first == "steps":
		return r.unresolvedStep(ref, u)
	case member == "":
		return "", "", ""
	case first == "inputs":
		if _, ok := s.inputs[member]; !ok {
			return CodeReference, Suggest(member, slices.Sorted(maps.Keys(s.inputs))), "there is no input " + shown(member)
		}
	case !slices.Contains(known[first], member):
		return CodeReference, Suggest(member, known[first]), first + " has no " + shown(member)
	}
	return "", "", ""
}

func (r *reader) unresolvedStep(ref reference, u use) (code Code, fix, problem string) {
	if len(ref.path) == 1 {
		return CodeReference, "write steps.ID.result", "steps is used without the name of a step"
	}
	id := ref.path[1]
	step, ok := u.scope.step(id)
	switch line := u.scope.later(id); {
	case ok:
	case line > 0:
		return CodeReference, "use a step above this one, or move it up", "step " + shown(id) + " is not done yet"
	case r.places[id] > 0:
		return CodeReference, "a step is seen by its own list and the lists within; use the result of the each", "step " + shown(id) + " is inside another list"
	default:
		return CodeReference, Suggest(id, u.scope.steps()), "there is no step " + shown(id)
	}
	if len(ref.path) == 2 {
		return "", "", ""
	}
	results := step.results()
	if !slices.Contains(results, ref.path[2]) {
		if len(results) == 0 {
			return CodeReference, "leave it out", "step " + shown(id) + " sleeps and has no result"
		}
		return CodeReference, Suggest(ref.path[2], results), "step " + shown(id) + " has no " + shown(ref.path[2])
	}
	return "", "", ""
}

// results are the members that a step adds to its variable.
func (s *Step) results() []string {
	switch {
	case s.Sleep != nil:
		return nil
	case s.Uses != nil && (s.Uses.Read || s.Uses.unknown):
		return []string{"result", "rows"}
	}
	return []string{"result"}
}
