package connection

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/semel-dev/semel/workflowfile"
)

// reader walks YAML nodes and collects what is wrong.
type reader struct {
	file string
	errs Errors
}

func (r *reader) wrong(n *yaml.Node, fix, problem string, args ...any) {
	r.errs = append(r.errs, &Error{File: r.file, Line: max(n.Line, 1), Column: max(n.Column, 1), Problem: fmt.Sprintf(problem, args...), Fix: fix})
}

// document parses data into its root node, nil for an empty file.
func (r *reader) document(data []byte) *yaml.Node {
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		r.syntax(err)
		return nil
	}
	var docs [2]yaml.Node
	for i := range docs {
		if err := loader.Load(&docs[i]); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			r.syntax(err)
			return nil
		}
	}
	if docs[1].Kind != 0 {
		r.wrong(&docs[1], "keep one file to one document, without ---", "a second document begins here")
	}
	root := &docs[0]
	if root.Kind == yaml.DocumentNode {
		if len(root.Content) == 0 {
			return nil
		}
		root = root.Content[0]
	}
	if root.Kind == 0 || root.Kind == yaml.ScalarNode && root.ShortTag() == "!!null" {
		return nil
	}
	return root
}

func (r *reader) syntax(err error) {
	add := func(e *yaml.LoadError) {
		r.wrong(&yaml.Node{Line: e.Mark.Line, Column: e.Mark.Column}, "mend the YAML here", "it cannot be read: %s", shown(e.Message))
	}
	if one, ok := errors.AsType[*yaml.LoadError](err); ok {
		add(one)
		return
	}
	if many, ok := errors.AsType[*yaml.LoadErrors](err); ok {
		for _, e := range many.Errors {
			add(e)
		}
		return
	}
	r.wrong(&yaml.Node{}, "mend the YAML", "it cannot be read: %s", shown(err.Error()))
}

// field reads one member of a mapping.
type field func(value *yaml.Node)

// mapping reads each member by its field. Unknown and repeated members are
// wrong.
func (r *reader) mapping(n *yaml.Node, what string, fields map[string]field) {
	r.members(n, what, func(key, value *yaml.Node) {
		f, ok := fields[key.Value]
		if !ok {
			r.wrong(key, workflowfile.Suggest(key.Value, slices.Sorted(maps.Keys(fields))), "%s has no member %s", what, shown(key.Value))
			return
		}
		f(value)
	})
}

// members calls f for each member of a mapping, in its order.
func (r *reader) members(n *yaml.Node, what string, f func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		r.wrong(n, "write members as name: value, indented below it", "%s is not a mapping", what)
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge":
			r.wrong(key, "use plain names, and repeat what is shared", "%s has a member without a plain name", what)
		case seen[key.Value] > 0:
			r.wrong(key, "keep one of them", "%s has %s already, in line %d", what, shown(key.Value), seen[key.Value])
		case value.Kind == yaml.AliasNode || value.Anchor != "":
			r.wrong(value, "write the value itself", "%s uses an anchor or alias", shown(key.Value))
		default:
			f(key, value)
		}
		seen[key.Value] = key.Line
	}
}

// text reads a string. What YAML would take for a number, a date or a truth
// value must be quoted.
func (r *reader) text(n *yaml.Node, what string) (string, bool) {
	switch {
	case n.Kind != yaml.ScalarNode:
		r.wrong(n, "write one value", "%s is not a text", what)
	case n.ShortTag() == "!!null":
		r.wrong(n, "give it a value, or leave it out", "%s is empty", what)
	case n.ShortTag() != "!!str":
		r.wrong(n, "put it in quotes if it is meant as text", "%s could be read as something other than text", what)
	case n.Value == "":
		r.wrong(n, "give it a value, or leave it out", "%s is empty", what)
	case strings.IndexFunc(n.Value, func(c rune) bool { return c < ' ' || c == 0x7f }) >= 0:
		r.wrong(n, "write one line of text", "%s holds a line break or another control character", what)
	default:
		return n.Value, true
	}
	return "", false
}

// duration reads a duration with its unit.
func (r *reader) duration(to *time.Duration, what string) field {
	return func(n *yaml.Node) {
		d, err := time.ParseDuration(n.Value)
		if n.Kind != yaml.ScalarNode || err != nil || d < 0 {
			r.wrong(n, "write it with its unit, for example 30s or 24h", "%s is not a duration", what)
			return
		}
		*to = d
	}
}

func (r *reader) truth(to *bool, what string) field {
	return func(n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" || n.Value != "true" && n.Value != "false" {
			r.wrong(n, "write true or false", "%s is neither true nor false", what)
			return
		}
		*to = n.Value == "true"
	}
}

func (r *reader) count(to *int, what string) field {
	return func(n *yaml.Node) {
		i, err := strconv.Atoi(n.Value)
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || err != nil || i < 1 || i > 1_000_000 || strconv.Itoa(i) != n.Value {
			r.wrong(n, "write it as a plain number such as 4", "%s is not a number from 1 to 1000000", what)
			return
		}
		*to = i
	}
}

func (r *reader) rate(to *float64, what string) field {
	return func(n *yaml.Node) {
		v, err := strconv.ParseFloat(n.Value, 64)
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" && n.ShortTag() != "!!float" || err != nil || !(v >= 0.001 && v <= 1e6) {
			r.wrong(n, "write it as a plain number such as 10 or 0.5", "%s is not a number from 0.001 to 1000000", what)
			return
		}
		*to = v
	}
}

func (r *reader) words(to *string, what string) field {
	return func(n *yaml.Node) {
		if s, ok := r.text(n, what); ok {
			*to = s
		}
	}
}

// shown quotes outside text for a message, cut.
func shown(s string) string {
	if len(s) > 80 {
		s = s[:80] + "..."
	}
	return strconv.QuoteToASCII(s)
}
