package workflowfile

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"go.yaml.in/yaml/v4"
)

// Vars are the values of the variables, by name: JSON values as
// encoding/json decodes them with UseNumber. A variable or step that does not
// exist in a run is left out.
type Vars map[string]any

// Expr is a compiled expression. It is safe for concurrent use.
type Expr struct {
	Text string
	// Refs are the variables that it uses, as paths: steps.due.rows.
	Refs []string

	Line, Column int

	file    string
	program cel.Program
}

// Eval returns the value of the expression: nil, bool, json.Number, string,
// []any or map[string]any. It ends with ctx, and costs a bounded effort. The
// same variables give the same value or error.
func (e *Expr) Eval(ctx context.Context, vars Vars) (any, error) {
	v, _, err := e.program.ContextEval(ctx, activation{vars})
	if err == nil {
		var out any
		if out, err = native(v); err == nil {
			return out, nil
		}
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return nil, fmt.Errorf("%s:%d:%d: %s: %w", e.file, e.Line, e.Column, e.Text, err)
}

// Bool evaluates an if or a match.
func (e *Expr) Bool(ctx context.Context, vars Vars) (bool, error) {
	v, err := e.Eval(ctx, vars)
	if err != nil {
		return false, err
	}
	b, ok := v.(bool)
	if !ok {
		return false, e.notA("true or false", v)
	}
	return b, nil
}

// List evaluates the list of an each.
func (e *Expr) List(ctx context.Context, vars Vars) ([]any, error) {
	v, err := e.Eval(ctx, vars)
	if err != nil {
		return nil, err
	}
	list, ok := v.([]any)
	if !ok {
		return nil, e.notA("a list", v)
	}
	return list, nil
}

// Key evaluates the key of an item: a text that is not empty, or an integer.
func (e *Expr) Key(ctx context.Context, vars Vars) (string, error) {
	v, err := e.Eval(ctx, vars)
	if err != nil {
		return "", err
	}
	switch v := v.(type) {
	case string:
		if strings.TrimSpace(v) != "" {
			return v, nil
		}
	case json.Number:
		if i, ok := number(string(v)).(types.Int); ok {
			return strconv.FormatInt(int64(i), 10), nil
		}
	}
	return "", e.notA("a text with content or an integer, so it cannot be a key", v)
}

func (e *Expr) notA(what string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return fmt.Errorf("%s:%d:%d: %s is not %s: %s", e.file, e.Line, e.Column, e.Text, what, shown(string(b)))
}

// activation finds variables by their paths.
type activation struct{ vars Vars }

func (activation) Parent() cel.Activation { return nil }

func (a activation) ResolveName(path string) (any, bool) {
	first, rest, more := strings.Cut(path, ".")
	v, ok := a.vars[first]
	for more && ok {
		m, isMap := v.(map[string]any)
		if !isMap {
			return nil, false
		}
		first, rest, more = strings.Cut(rest, ".")
		v, ok = m[first]
	}
	return v, ok
}

// native turns a value of CEL into a JSON value.
func native(v ref.Val) (any, error) {
	switch v := v.(type) {
	case types.Null:
		return nil, nil
	case types.Bool:
		return bool(v), nil
	case types.String:
		return string(v), nil
	case types.Int:
		return json.Number(strconv.FormatInt(int64(v), 10)), nil
	case types.Uint:
		return json.Number(strconv.FormatUint(uint64(v), 10)), nil
	case types.Double:
		b, err := json.Marshal(float64(v))
		return json.Number(b), err
	case decimal:
		return json.Number(v.text), nil
	case types.Timestamp:
		return v.Time.UTC().Format(time.RFC3339Nano), nil
	case types.Duration:
		return v.Duration.String(), nil
	case traits.Mapper:
		out := map[string]any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			name, ok := key.(types.String)
			if !ok {
				return nil, fmt.Errorf("a mapping has the name %v, which is not a text", key.Value())
			}
			member, err := native(v.Get(key))
			if err != nil {
				return nil, err
			}
			out[string(name)] = member
		}
		return out, nil
	case traits.Lister:
		out := []any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			element, err := native(it.Next())
			if err != nil {
				return nil, err
			}
			out = append(out, element)
		}
		return out, nil
	case *types.Err:
		return nil, v
	}
	return nil, fmt.Errorf("a value of type %s has no JSON form", v.Type().TypeName())
}

// use is how an expression is written and what it may be.
type use struct {
	what  string // for messages
	scope *scope
	key   bool // it is part of a key
	wants string
	types []*cel.Type // any of these, or dyn; nil accepts every type
}

// bare compiles an expression that stands without ${{ }}; with it is tolerated.
func (r *reader) bare(n *yaml.Node, u use) *Expr {
	if r.broken[n] {
		return nil
	}
	if n.Kind != yaml.ScalarNode || n.Value == "" {
		r.wrong(n, CodeStructure, "write an expression", "%s is not an expression", u.what)
		return nil
	}
	text := strings.TrimSpace(n.Value)
	if inner, ok := strings.CutPrefix(text, "${{"); ok {
		if inner, ok = strings.CutSuffix(inner, "}}"); ok {
			text = strings.TrimSpace(inner)
		}
	}
	if strings.Contains(text, "${{") {
		r.wrong(n, CodeSyntax, "write one expression without ${{ }}", "%s mixes text and expressions", u.what)
		return nil
	}
	return r.compile(n, text, u)
}

// compile checks and compiles one expression; nil if something is wrong.
func (r *reader) compile(n *yaml.Node, text string, u use) *Expr {
	p := r.locate(n, text)
	if text == "" {
		r.report(p, SeverityError, CodeSyntax, "write an expression", "%s has an empty expression", u.what)
		return nil
	}
	parsed, issues := r.language.env.Parse(text)
	if err := issues.Err(); err != nil {
		if n.Style == 0 && n.LineComment != "" {
			r.report(p, SeverityError, CodeYAML, "put the whole value in quotes", "YAML cuts the expression at the comment sign: %s", shown(text))
			return nil
		}
		for _, e := range issues.Errors()[:1] {
			message, _, _ := strings.Cut(e.Message, "\n")
			message, _, _ = strings.Cut(message, " expecting ")
			r.report(within(p, text, e), SeverityError, CodeSyntax, "mend the expression", "%s cannot be read: %s", u.what, strings.TrimPrefix(message, "Syntax error: "))
		}
		return nil
	}
	refs := references(parsed.NativeRep())
	if !r.resolve(p, text, refs, u) {
		return nil
	}
	checked, issues := r.language.env.Check(parsed)
	if err := issues.Err(); err != nil {
		for _, e := range issues.Errors() {
			r.report(within(p, text, e), SeverityError, CodeType, typeFix(e.Message), "%s: %s", u.what, legible(e.Message))
		}
		return nil
	}
	out := checked.OutputType()
	if u.types != nil && out.Kind() != types.DynKind && !slices.ContainsFunc(u.types, func(t *cel.Type) bool { return t.Kind() == out.Kind() }) {
		r.report(p, SeverityError, CodeType, "write one that is "+u.wants, "%s is %s, not %s", u.what, typeName(out), u.wants)
		return nil
	}
	program, err := r.language.env.Program(checked, r.language.program...)
	if err != nil {
		r.report(p, SeverityError, CodeType, "mend the expression", "%s: %v", u.what, err)
		return nil
	}
	e := &Expr{Text: text, Line: p.line, Column: p.column, file: r.file, program: program}
	for _, ref := range refs {
		e.Refs = append(e.Refs, strings.Join(ref.path, "."))
	}
	slices.Sort(e.Refs)
	e.Refs = slices.Compact(e.Refs)
	return e
}

// within is the place of an error in an expression of one line.
func within(p place, text string, e *cel.Error) place {
	if !strings.Contains(text, "\n") && e.Location.Column() > 0 {
		p.column += e.Location.Column()
	}
	return p
}

func typeFix(message string) string {
	if strings.Contains(message, "no matching overload") {
		return "convert one side, for example with string() or int()"
	}
	return "use what CEL's standard library has"
}
