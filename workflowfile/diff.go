package workflowfile

import (
	"fmt"
	"slices"
	"strings"
)

// Diff says in words what the digest of two definitions differs by, such as
// "step bill/charge: with.amount changed". It is empty if and only if the
// digests are equal.
func Diff(old, new *Definition) []string {
	var d differ
	for _, name := range []string{"name", "version"} {
		if a, b := old.content.get(name).String(), new.content.get(name).String(); a != b {
			d.say("%s changed from %s to %s", name, a, b)
		}
	}
	a, b := old.content.get("inputs"), new.content.get("inputs")
	for _, input := range names(a, b) {
		d.part("input "+input, a.get(input), b.get(input))
	}
	d.texts(old.content.get("files"), new.content.get("files"))
	d.steps("", old.content.get("steps"), new.content.get("steps"))
	d.steps("on_failure/", old.content.get("on_failure"), new.content.get("on_failure"))
	if len(d.found) == 0 && old.Digest != new.Digest {
		d.say("members without content were added or removed")
	}
	return d.found
}

type differ struct{ found []string }

func (d *differ) say(format string, args ...any) {
	d.found = append(d.found, fmt.Sprintf(format, args...))
}

// texts compares the files that steps name.
func (d *differ) texts(old, new *node) {
	for _, name := range names(old, new) {
		switch a, b := old.get(name), new.get(name); {
		case a == nil:
			d.say("file %s added", name)
		case b == nil:
			d.say("file %s removed", name)
		case a.String() != b.String():
			d.say("file %s changed", name)
		}
	}
}

// steps compares two lists of steps by their ids.
func (d *differ) steps(path string, old, new *node) {
	before, after := byID(old), byID(new)
	for _, id := range before.order {
		if after.steps[id] == nil {
			d.say("step %s removed", path+id)
		}
	}
	for _, id := range after.order {
		switch a, b := before.steps[id], after.steps[id]; {
		case a == nil:
			d.say("step %s added", path+id)
		default:
			d.part("step "+path+id, without(a, "steps"), without(b, "steps"))
			d.steps(path+id+"/", a.get("steps"), b.get("steps"))
		}
	}
	common := func(id string) bool { return before.steps[id] == nil || after.steps[id] == nil }
	if !slices.Equal(slices.DeleteFunc(before.order, common), slices.DeleteFunc(after.order, common)) {
		d.say("%s changed their order", strings.TrimSuffix("the steps of "+path, " of "))
	}
}

// part compares what has a name of its own.
func (d *differ) part(what string, old, new *node) {
	switch {
	case old == nil && new == nil:
	case old == nil:
		d.say("%s added", what)
	case new == nil:
		d.say("%s removed", what)
	default:
		d.members(what, "", old, new)
	}
}

func (d *differ) members(what, path string, old, new *node) {
	for _, name := range names(old, new) {
		at, a, b := path+name, old.get(name), new.get(name)
		switch {
		case a == nil:
			d.say("%s: %s added", what, at)
		case b == nil:
			d.say("%s: %s removed", what, at)
		case len(a.fields) > 0 && len(b.fields) > 0:
			d.members(what, at+".", a, b)
		case a.String() != b.String():
			d.say("%s: %s changed", what, at)
		}
	}
}

// names lists the members of both, sorted.
func names(a, b *node) []string {
	var all []string
	for _, c := range []*node{a, b} {
		if c != nil {
			for _, f := range c.fields {
				all = append(all, f.name)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

type listed struct {
	order []string
	steps map[string]*node
}

func byID(list *node) listed {
	all := listed{steps: map[string]*node{}}
	if list == nil {
		return all
	}
	for _, step := range list.list {
		id := strings.Trim(step.get("id").String(), `"`)
		all.order = append(all.order, id)
		all.steps[id] = step
	}
	return all
}

func without(c *node, name string) *node {
	return &node{fields: slices.DeleteFunc(slices.Clone(c.fields), func(f nodeField) bool { return f.name == name })}
}
