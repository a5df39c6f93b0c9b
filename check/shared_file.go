package check

import (
	"reflect"
	"slices"
	"strings"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/workflowfile"
)

// named is a step of a file that names its work.
type named struct {
	*effect

	with *workflowfile.Value
	ifs  []string // the conditions under which it runs, those of an each first
}

// name notes a step under conditions, and reports what an earlier one under its
// key makes of it.
func (r *fileReader) name(e *effect, s *workflowfile.Step, ifs []string) {
	if e.key.run || e.contract.Protection == semel.Commutes {
		return
	}
	n := named{e, s.Uses.With, conditions(ifs, s)}
	i := slices.IndexFunc(r.named, n.sharesKey)
	if i < 0 {
		r.named = append(r.named, n)
		return
	}
	f, _ := sharedKey(r.named[i].path, e.path, e.key.text, !alike(r.named[i].with, n.with))
	f.Step, f.File, f.Line, f.Column = e.path, r.d.File, e.key.line, e.key.column
	r.shared = append(r.shared, f)
}

// conditions adds the condition of a step to those around it.
func conditions(around []string, s *workflowfile.Step) []string {
	if s.If == nil {
		return around
	}
	return append(slices.Clone(around), s.If.Text)
}

// sharesKey reports whether two steps have one key in one run. Under two
// conditions at most one of them may run.
func (n named) sharesKey(o named) bool {
	builtIn := strings.HasPrefix(n.action, "sql.") || strings.HasPrefix(n.action, "claim.")
	if n.action != o.action || n.key.text != o.key.text || builtIn && !alike(n.with.Field("at"), o.with.Field("at")) {
		return false
	}
	local := slices.ContainsFunc(n.key.members, func(m string) bool {
		root, _, _ := strings.Cut(m, ".")
		return !slices.Contains([]string{"inputs", "event", "tick", "run"}, root)
	})
	here, there := n.path[:strings.LastIndexByte(n.path, '/')+1], o.path[:strings.LastIndexByte(o.path, '/')+1]
	if local && !strings.HasPrefix(here, there) && !strings.HasPrefix(there, here) {
		return false
	}
	both := 0
	for both < len(n.ifs) && both < len(o.ifs) && n.ifs[both] == o.ifs[both] {
		both++
	}
	return both == len(n.ifs) || both == len(o.ifs)
}

// alike reports whether two values of a file are written alike.
func alike(a, b *workflowfile.Value) bool {
	one, fixed := a.Literal()
	other, too := b.Literal()
	if fixed && too || a == nil || b == nil {
		return reflect.DeepEqual(one, other) && (a == nil) == (b == nil)
	}
	names, others := slices.Sorted(slices.Values(a.Fields())), slices.Sorted(slices.Values(b.Fields()))
	if len(names) == 0 {
		return fixed == too && a.String() == b.String()
	}
	return slices.Equal(names, others) && !slices.ContainsFunc(names, func(name string) bool {
		return !alike(a.Field(name), b.Field(name))
	})
}
