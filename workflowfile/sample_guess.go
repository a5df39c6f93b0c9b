package workflowfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/operators"
)

// Bounds of a sample.
const (
	mostWays   = 8      // items that go ways of their own
	mostItems  = 100    // of one list
	mostValues = 20_000 // in one value; beyond it lists have one item
	deepLists  = 4      // within each other; those in them have one item
)

// guess is a value that expressions read: what they say about it.
type guess struct {
	name    string
	kind    InputType // empty where nothing tells
	format  string    // of a text: date, date-time, duration
	given   any       // the default of an input; preferred
	members map[string]*guess
	element *guess // of a list
	size    *guess // of a list, where something asks for it
	fixed   bool   // it is always there

	parent *guess // whose member, element or size it is
	item   bool   // it is the element of parent
	within *guess // the item of the each around the step that brings it
	ways   int    // of an element: how many items go ways of their own
	tests  map[int][]test
	always []test // for all items
}

// test is a condition on a value.
type test struct {
	tries   []any // values that may pass
	accepts func(any) bool
}

// missing is the value of a member that is not there.
type missing struct{}

// member is a member of a mapping, whatever else g seemed to be: in says of
// both that they hold something.
func (g *guess) member(name string) *guess {
	if g.members[name] == nil {
		if g.members == nil {
			g.members = map[string]*guess{}
		}
		g.members[name] = &guess{name: name, parent: g}
	}
	g.kind = TypeObject
	return g.members[name]
}

// items is the element of a list.
func (g *guess) items() *guess {
	if g.element == nil {
		g.element = &guess{parent: g, item: true, name: strings.TrimSuffix(g.name, "s")}
	}
	g.is(TypeArray)
	return g.element
}

func (g *guess) length() *guess {
	if g.size == nil {
		g.size = &guess{parent: g, kind: TypeInteger, name: "size"}
	}
	return g.size
}

// said reports whether anything is known about g.
func (g *guess) said() bool { return g.kind != "" || len(g.tests) > 0 || len(g.always) > 0 }

// is says of which type it is, unless that is known.
func (g *guess) is(kind InputType) {
	if g.kind == "" {
		g.kind = kind
	}
}

// inside is the innermost item that g is a part of, nil for none.
func (g *guess) inside() *guess {
	for ; g != nil; g = g.parent {
		if g.item {
			return g
		}
		if g.parent == nil {
			return g.within
		}
	}
	return nil
}

// outside is the item around the one that g is.
func (g *guess) outside() *guess {
	if g.parent == nil {
		return nil
	}
	return g.parent.inside()
}

// owner names what an id is the id of.
func (g *guess) owner() string {
	for p := g.parent; p != nil; p = p.parent {
		if p.name != "" && p.name != "data" {
			return p.name
		}
	}
	return g.name
}

// choose is a value that passes all tests of one item; ok is false for none.
func (g *guess) choose(index []int) (value any, ok bool) {
	way := 0
	if in := g.inside(); in != nil && len(index) > 0 {
		way = index[len(index)-1] % max(in.ways, 1)
	}
	tests := append(slices.Clone(g.always), g.tests[way]...)
	tries := []any{g.example(index)}
	if g.given != nil {
		tries = []any{g.given}
	}
	for _, t := range tests {
		tries = append(tries, t.tries...)
	}
	for _, try := range append(tries, between(tries)...) {
		if !slices.ContainsFunc(tests, func(t test) bool { return !t.accepts(try) }) {
			return try, true
		}
	}
	return tries[0], false
}

// between are the means of the numbers.
func between(all []any) (means []any) {
	for i, a := range all {
		for _, b := range all[:i] {
			x, ok1 := a.(json.Number)
			y, ok2 := b.(json.Number)
			if len(means) > mostTests {
				return means
			}
			if !ok1 || !ok2 {
				continue
			}
			mean, err := native(operate(operators.Multiply, operate(operators.Add, number(string(x)), number(string(y))), decimal{"0.5"}))
			if err == nil {
				means = append(means, mean)
			}
		}
	}
	return means
}

// amounts are names of numbers.
var amounts = []string{"amount", "total", "price", "sum", "cents", "count", "quantity", "balance"}

// example is a value of the type of g that one can read, different for each
// item. Lists and mappings stand for themselves.
func (g *guess) example(index []int) any {
	kind, n, of := g.kind, 1, "1"
	if len(index) > 0 {
		n = 0
		var places []string
		for _, i := range index {
			n = n*10 + i + 1
			places = append(places, strconv.Itoa(i+1))
		}
		of = strings.Join(places, "-")
	}
	if kind == "" && slices.Contains(amounts, g.name) {
		kind = TypeNumber
	}
	switch kind {
	case TypeBoolean:
		return true
	case TypeInteger, TypeNumber:
		if g.parent != nil && g.parent.size == g {
			return count(g.parent.usual())
		}
		return count(100 + n)
	case TypeArray:
		return []any{}
	case TypeObject:
		return map[string]any{}
	case TypeString:
	}
	name := g.name
	switch {
	case g.format == "date":
		return sampleTime.Format("2006-01-02")
	case g.format == "date-time":
		return sampleTime.Format("2006-01-02T15:04:05Z07:00")
	case g.format == "duration":
		return "1h"
	case name == "id":
		name = g.owner()
	case name == "url":
		return "https://example.com/" + of
	case name == "email":
		return "email-" + of + "@example.com"
	}
	return name + "-" + of
}

// usual is how many items a list has where nothing asks for another number.
func (g *guess) usual() int {
	if g.element == nil {
		return 2
	}
	return max(2, g.element.ways)
}

// values makes values from guesses.
type values struct{ made int }

// of is the value of g in an item of lists.
func (v *values) of(g *guess, index []int) any {
	v.made++
	chosen, _ := g.choose(index)
	switch whole := chosen.(type) {
	case []any:
		if g.given != nil {
			return whole
		}
		return v.list(g, index)
	case map[string]any:
		if g.given != nil && len(g.members) == 0 {
			return whole
		}
		out := maps.Clone(whole)
		for _, name := range slices.Sorted(maps.Keys(g.members)) {
			if _, there := out[name]; there {
				continue
			}
			if value := v.of(g.members[name], index); value != (missing{}) {
				out[name] = value
			}
		}
		return out
	}
	return chosen
}

func (v *values) list(g *guess, index []int) []any {
	n := g.usual()
	if g.size != nil {
		size, _ := g.size.choose(index)
		if asked, err := strconv.Atoi(fmt.Sprint(size)); err == nil && asked >= 0 && asked <= mostItems {
			n = asked
		}
	}
	if v.made > mostValues || len(index) >= deepLists {
		n = min(n, 1)
	}
	out := []any{}
	for i := range n {
		out = append(out, v.of(g.items(), append(slices.Clone(index), i)))
	}
	return out
}
