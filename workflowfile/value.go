package workflowfile

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"go.yaml.in/yaml/v4"
)

// Value is what a file gives a member: a literal, an expression, a text with
// expressions in it, a list or a mapping of values. It is safe for concurrent
// use.
type Value struct {
	Line, Column int

	file    string
	literal any // without expressions: what Eval returns
	expr    *Expr
	parts   []part
	list    []*Value
	fields  []valueField
}

// part is a piece of a text: plain, or an expression.
type part struct {
	text string
	expr *Expr
}

type valueField struct {
	name  string
	value *Value
}

// Eval returns the value: nil, bool, json.Number, string, []any or
// map[string]any. One whole ${{ }} keeps its type and the digits of a number.
func (v *Value) Eval(ctx context.Context, vars Vars) (any, error) {
	switch {
	case v.expr != nil:
		return v.expr.Eval(ctx, vars)
	case v.parts != nil:
		return v.join(ctx, vars)
	case v.list != nil:
		out := make([]any, len(v.list))
		for i, element := range v.list {
			var err error
			if out[i], err = element.Eval(ctx, vars); err != nil {
				return nil, err
			}
		}
		return out, nil
	case v.fields != nil:
		out := make(map[string]any, len(v.fields))
		for _, f := range v.fields {
			var err error
			if out[f.name], err = f.value.Eval(ctx, vars); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v.literal, nil
}

// join makes the text of a value with expressions in it.
func (v *Value) join(ctx context.Context, vars Vars) (string, error) {
	var b strings.Builder
	for _, p := range v.parts {
		if p.expr == nil {
			b.WriteString(p.text)
			continue
		}
		got, err := p.expr.Eval(ctx, vars)
		if err != nil {
			return "", err
		}
		switch got := got.(type) {
		case string:
			b.WriteString(got)
		case json.Number:
			b.WriteString(string(got))
		case bool:
			fmt.Fprint(&b, got)
		default:
			return "", p.expr.notA("a text, a number or a truth value, so it cannot be part of a text", got)
		}
	}
	return b.String(), nil
}

// Key evaluates an effect's key. Every expression in it must have content:
// "invoice--charge" would be one key for all invoices without a number.
func (v *Value) Key(ctx context.Context, vars Vars) (string, error) {
	parts := v.parts
	switch s, ok := v.literal.(string); {
	case v.expr != nil:
		return v.expr.Key(ctx, vars)
	case parts == nil && ok && s != "":
		return s, nil
	case parts == nil:
		return "", fmt.Errorf("%s:%d:%d: it is not a text with content, so it cannot be a key", v.file, v.Line, v.Column)
	}
	var b strings.Builder
	for _, p := range parts {
		text := p.text
		if p.expr != nil {
			var err error
			if text, err = p.expr.Key(ctx, vars); err != nil {
				return "", err
			}
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

// Duration evaluates a duration with its unit, such as 72h.
func (v *Value) Duration(ctx context.Context, vars Vars) (time.Duration, error) {
	s, err := v.text(ctx, vars, "a duration such as 72h")
	if err != nil {
		return 0, err
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%s:%d:%d: %s is not a duration such as 72h", v.file, v.Line, v.Column, shown(s))
	}
	return d, nil
}

// Time evaluates a point in time in RFC 3339.
func (v *Value) Time(ctx context.Context, vars Vars) (time.Time, error) {
	s, err := v.text(ctx, vars, "a point in time such as 2027-01-31T09:00:00Z")
	if err != nil {
		return time.Time{}, err
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s:%d:%d: %s is not a point in time such as 2027-01-31T09:00:00Z", v.file, v.Line, v.Column, shown(s))
	}
	return t, nil
}

func (v *Value) text(ctx context.Context, vars Vars, what string) (string, error) {
	got, err := v.Eval(ctx, vars)
	if err != nil {
		return "", err
	}
	s, ok := got.(string)
	if !ok {
		return "", fmt.Errorf("%s:%d:%d: it is not %s", v.file, v.Line, v.Column, what)
	}
	return s, nil
}

// Refs lists the variables that the value uses, as paths.
func (v *Value) Refs() []string {
	var all []string
	if v.expr != nil {
		all = append(all, v.expr.Refs...)
	}
	for _, p := range v.parts {
		if p.expr != nil {
			all = append(all, p.expr.Refs...)
		}
	}
	for _, element := range v.list {
		all = append(all, element.Refs()...)
	}
	for _, f := range v.fields {
		all = append(all, f.value.Refs()...)
	}
	return all
}

// Literal returns the value if no expression is in it.
func (v *Value) Literal() (value any, ok bool) {
	if v == nil {
		return nil, false
	}
	return v.literal, v.expr == nil && v.parts == nil && v.list == nil && v.fields == nil
}

// Field returns a member of a mapping, nil if there is none.
func (v *Value) Field(name string) *Value {
	if v == nil {
		return nil
	}
	for _, f := range v.fields {
		if f.name == name {
			return f.value
		}
	}
	return nil
}

// Fields lists the names of the members of a mapping, in their order.
func (v *Value) Fields() []string {
	if v == nil {
		return nil
	}
	names := make([]string, len(v.fields))
	for i, f := range v.fields {
		names[i] = f.name
	}
	return names
}

// String is the value as a person writes it, on one line: a text with its
// expressions, or JSON.
func (v *Value) String() string {
	switch {
	case v == nil:
		return ""
	case v.expr != nil:
		return "${{ " + v.expr.Text + " }}"
	case v.parts != nil:
		var b strings.Builder
		for _, p := range v.parts {
			if p.expr != nil {
				b.WriteString("${{ " + p.expr.Text + " }}")
			} else {
				b.WriteString(p.text)
			}
		}
		return b.String()
	case v.list != nil:
		return fmt.Sprint(v.list)
	case v.fields != nil:
		return fmt.Sprint(v.Fields())
	}
	if s, ok := v.literal.(string); ok {
		return s
	}
	return fmt.Sprint(v.literal)
}

// partTypes are what may be part of a text.
var partTypes = []*cel.Type{cel.StringType, cel.IntType, cel.UintType, cel.DoubleType, cel.BoolType, cel.TimestampType, cel.DurationType}

// keyTypes are what may be part of a key.
var keyTypes = []*cel.Type{cel.StringType, cel.IntType, cel.UintType}

// value reads a value of any type; nil if something is wrong with it.
func (r *reader) value(n *yaml.Node, u use) *Value {
	if r.broken[n] {
		return nil
	}
	v := &Value{Line: at(n).line, Column: at(n).column, file: r.file}
	switch n.Kind {
	case yaml.SequenceNode:
		v.list = []*Value{}
		for _, element := range n.Content {
			if e := r.value(element, u); e != nil {
				v.list = append(v.list, e)
			}
		}
		return v
	case yaml.MappingNode:
		v.fields = []valueField{}
		for key, value := range r.pairs(n) {
			if odd := ambiguous(key); odd != "" || key.ShortTag() != "!!str" {
				r.wrong(key, CodeAmbiguous, "put it in quotes", "the name %s could be read as something other than text", key.Value)
				continue
			}
			inner := u
			inner.what = u.what + "." + key.Value
			if f := r.value(value, inner); f != nil {
				v.fields = append(v.fields, valueField{key.Value, f})
			}
		}
		return v
	default:
	}
	if !strings.Contains(n.Value, "${{") {
		return r.literal(n, v, u)
	}
	return r.template(n, v, u)
}

func (r *reader) literal(n *yaml.Node, v *Value, u use) *Value {
	if odd := ambiguous(n); odd != "" {
		r.wrong(n, CodeAmbiguous, "put it in quotes if it is a text, else write it plainly", "%s %s could be read as %s", u.what, n.Value, odd)
		return nil
	}
	switch n.ShortTag() {
	case "!!null":
		v.literal = nil
	case "!!bool":
		v.literal = n.Value == "true"
	case "!!int", "!!float":
		v.literal = json.Number(n.Value)
	default:
		v.literal = n.Value
	}
	return v
}

// template reads a text with ${{ }} in it.
func (r *reader) template(n *yaml.Node, v *Value, u use) *Value {
	rest, good := n.Value, true
	for rest != "" {
		before, after, found := strings.Cut(rest, "${{")
		if before != "" {
			v.parts = append(v.parts, part{text: before})
		}
		if !found {
			break
		}
		begins := r.from(n, len(n.Value)-len(after)-len("${{"))
		end := expressionEnd(after)
		if end < 0 {
			r.wrong(begins, CodeSyntax, "end the expression with }}", "%s begins an expression that does not end", u.what)
			return nil
		}
		inner := u
		whole := before == "" && len(v.parts) == 0 && strings.TrimSpace(after[end+2:]) == ""
		if !whole {
			inner.types, inner.wants = partTypes, "a text, a number or a truth value"
			if u.key {
				inner.types, inner.wants = keyTypes, "a text or an integer"
			}
		}
		e := r.compile(begins, strings.TrimSpace(after[:end]), inner)
		if e == nil {
			good = false
		} else if whole {
			v.expr = e
			return v
		}
		v.parts = append(v.parts, part{expr: e})
		rest = after[end+2:]
	}
	if !good {
		return nil
	}
	if u.types != nil && !accepts(u.types, types.StringKind) {
		r.wrong(n, CodeType, "write one whole ${{ }} that is "+u.wants, "%s is a text, not %s", u.what, u.wants)
		return nil
	}
	return v
}

func accepts(all []*cel.Type, kind types.Kind) bool {
	for _, t := range all {
		if t.Kind() == kind {
			return true
		}
	}
	return false
}

// expressionEnd finds the }} that ends an expression, past braces and quotes
// of its own; -1 if there is none.
func expressionEnd(s string) int {
	depth, quote := 0, byte(0)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '{':
			depth++
		case c == '}' && depth > 0:
			depth--
		case strings.HasPrefix(s[i:], "}}"):
			return i
		}
	}
	return -1
}
