package workflowfile

import (
	"context"
	"errors"
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
)

// constant is the value if it needs no variables.
func (v *Value) constant() (any, error) {
	if len(v.Refs()) > 0 {
		return nil, errors.New("it uses variables")
	}
	return v.Eval(context.Background(), nil)
}

// expression reads an expression that is of a type; it returns what it is,
// where that is known.
func (s *sampling) expression(e *Expr, scope *reading, kind InputType) *guess {
	tree := s.tree(e)
	if tree == nil {
		return nil
	}
	return s.typed(tree, scope, kind)
}

// value reads what a member of a step is made of.
func (s *sampling) value(v *Value, scope *reading, kind InputType) {
	if v == nil {
		return
	}
	s.expression(v.expr, scope, kind)
	for _, p := range v.parts {
		s.expression(p.expr, scope, "")
	}
	for _, element := range v.list {
		s.value(element, scope, "")
	}
	for _, f := range v.fields {
		s.value(f.value, scope, "")
	}
}

// moment reads a time or a duration.
func (s *sampling) moment(v *Value, scope *reading, format string) {
	if v == nil {
		return
	}
	s.value(v, scope, TypeString)
	if g := s.guess(v.expr, scope); g != nil && g.format == "" {
		g.format = format
	}
}

func (s *sampling) guess(e *Expr, scope *reading) *guess {
	if e == nil {
		return nil
	}
	return s.read(s.tree(e), scope)
}

func (s *sampling) typed(e ast.Expr, scope *reading, kind InputType) *guess {
	g := s.read(e, scope)
	switch {
	case g == nil || kind == "":
	case kind == TypeArray:
		g.items()
	default:
		g.is(kind)
	}
	return g
}

// read notes what an expression says about the values that it uses. It returns
// the value that the expression is, nil where it is a computed one.
func (s *sampling) read(e ast.Expr, scope *reading) *guess {
	switch e.Kind() {
	case ast.IdentKind:
		return scope.items[e.AsIdent()]
	case ast.SelectKind:
		g := s.selected(e.AsSelect().Operand(), e.AsSelect().FieldName(), scope)
		if e.AsSelect().IsTestOnly() {
			return nil
		}
		return g
	case ast.CallKind:
		return s.call(e.AsCall(), scope)
	case ast.ListKind:
		for _, element := range e.AsList().Elements() {
			s.read(element, scope)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			s.read(entry.AsMapEntry().Key(), scope)
			s.read(entry.AsMapEntry().Value(), scope)
		}
	case ast.ComprehensionKind:
		return s.loop(e.AsComprehension(), scope)
	case ast.LiteralKind, ast.StructKind, ast.UnspecifiedExprKind:
	}
	return nil
}

// selected is a member of what an expression is.
func (s *sampling) selected(of ast.Expr, name string, scope *reading) *guess {
	path, _ := chain(of)
	if len(path) > 0 && scope.items[path[0]] == nil {
		switch {
		case path[0] == "inputs" && len(path) == 1:
			return s.inputs[name]
		case path[0] == "event" && len(path) == 1 && name == "data":
			return s.event
		case path[0] == "steps" && len(path) == 2:
			step := scope.steps[path[1]]
			if step == nil || step.result == nil {
				return nil
			}
			if name == "rows" && step.step.Uses != nil {
				return step.result.member("rows")
			}
			return step.result
		}
	}
	g := s.read(of, scope)
	if g == nil {
		return nil
	}
	return g.member(name)
}

// loop reads a macro: exists, all, map, filter.
func (s *sampling) loop(c ast.ComprehensionExpr, scope *reading) *guess {
	inner := scope.bind(c.AccuVar(), nil)
	if list := s.typed(c.IterRange(), scope, TypeArray); list != nil && c.IterVar2() == "" {
		inner = inner.bind(c.IterVar(), list.items())
	}
	step := s.read(c.LoopStep(), inner)
	s.read(c.Result(), inner)
	if c.AccuInit().Kind() == ast.ListKind && step != nil {
		return step // a list of what map or filter makes
	}
	return nil
}

// texts are the functions of a text.
var texts = []string{
	overloads.StartsWith, overloads.EndsWith, overloads.Contains, overloads.Matches, "charAt", "indexOf", "lastIndexOf",
	"lowerAscii", "upperAscii", "replace", "split", "substring", "trim", "reverse",
}

func (s *sampling) call(c ast.CallExpr, scope *reading) *guess {
	args := c.Args()
	if c.IsMemberFunction() {
		switch name := c.FunctionName(); {
		case slices.Contains(texts, name):
			s.typed(c.Target(), scope, TypeString)
		case name == "join":
			if g := s.typed(c.Target(), scope, TypeArray); g != nil {
				g.items().is(TypeString)
			}
		case name == overloads.Size:
			s.sized(c.Target(), scope)
		default:
			s.read(c.Target(), scope)
		}
		for _, arg := range args {
			s.read(arg, scope)
		}
		return nil
	}
	switch c.FunctionName() {
	case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot:
		for _, arg := range args {
			s.typed(arg, scope, TypeBoolean)
		}
	case operators.Conditional:
		s.typed(args[0], scope, TypeBoolean)
		a, b := s.read(args[1], scope), s.read(args[2], scope)
		if a == nil {
			return b
		}
		return a
	case operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo, operators.Negate:
		for _, arg := range args {
			s.typed(arg, scope, TypeNumber)
		}
	case operators.Add:
		return s.sum(args, scope)
	case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		s.alike(args, scope)
	case operators.In:
		s.listed(args, scope)
	case operators.Index:
		return s.indexed(args, scope)
	case overloads.Size:
		s.sized(args[0], scope)
	case overloads.TypeConvertInt, overloads.TypeConvertDouble, overloads.TypeConvertUint:
		return s.typed(args[0], scope, TypeNumber)
	case overloads.TypeConvertTimestamp, overloads.TypeConvertDuration:
		g := s.typed(args[0], scope, TypeString)
		if g != nil && g.format == "" {
			g.format = map[string]string{overloads.TypeConvertTimestamp: "date-time", overloads.TypeConvertDuration: "duration"}[c.FunctionName()]
		}
	default:
		for _, arg := range args {
			s.read(arg, scope)
		}
	}
	return nil
}

// sum reads +, which joins texts or lists, or adds. A loop that makes a list
// adds lists of one element.
func (s *sampling) sum(args []ast.Expr, scope *reading) *guess {
	if args[1].Kind() == ast.ListKind && args[1].AsList().Size() == 1 {
		g := s.read(args[1].AsList().Elements()[0], scope)
		s.typed(args[0], scope, TypeArray)
		if g == nil {
			return nil
		}
		return &guess{name: g.name, kind: TypeArray, element: g, within: scope.within}
	}
	kind := TypeNumber
	for _, arg := range args {
		if k := s.kind(arg, scope); k != "" {
			kind = k
		}
	}
	for _, arg := range args {
		s.typed(arg, scope, kind)
	}
	return nil
}

// alike reads a comparison: both sides are of one type.
func (s *sampling) alike(args []ast.Expr, scope *reading) {
	for i, arg := range args {
		s.typed(arg, scope, s.kind(args[1-i], scope))
	}
}

func (s *sampling) listed(args []ast.Expr, scope *reading) {
	of, in := s.read(args[0], scope), s.read(args[1], scope)
	if in != nil && in.kind != TypeObject {
		in.items().is(s.kind(args[0], scope))
	}
	if of != nil && args[1].Kind() == ast.ListKind {
		for _, element := range args[1].AsList().Elements() {
			of.is(s.kind(element, scope))
		}
	}
}

func (s *sampling) indexed(args []ast.Expr, scope *reading) *guess {
	if name, ok := text(args[1]); ok {
		return s.selected(args[0], name, scope)
	}
	of, by := s.read(args[0], scope), s.read(args[1], scope)
	if of == nil || of.kind == TypeObject || by != nil && by.kind == TypeString {
		return nil
	}
	return of.items()
}

func (s *sampling) sized(e ast.Expr, scope *reading) {
	if g := s.read(e, scope); g != nil && g.kind == "" {
		g.items()
	}
}

func text(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	name, ok := e.AsLiteral().(types.String)
	return string(name), ok
}

// kind is the type of an expression, where its form tells.
func (s *sampling) kind(e ast.Expr, scope *reading) InputType {
	switch e.Kind() {
	case ast.LiteralKind:
		switch e.AsLiteral().(type) {
		case types.String:
			return TypeString
		case types.Bool:
			return TypeBoolean
		case types.Int, types.Uint, types.Double:
			return TypeNumber
		}
	case ast.ListKind:
		return TypeArray
	case ast.CallKind:
		switch e.AsCall().FunctionName() {
		case overloads.TypeConvertString, "lowerAscii", "upperAscii", "trim", "join", "replace", "substring", "format":
			return TypeString
		case operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo, operators.Negate, overloads.Size,
			overloads.TypeConvertInt, overloads.TypeConvertDouble:
			return TypeNumber
		case operators.Add:
			for _, arg := range e.AsCall().Args() {
				if k := s.kind(arg, scope); k != "" {
					return k
				}
			}
		}
	default:
	}
	if path, _ := chain(e); path != nil {
		if g := s.read(e, scope); g != nil {
			return g.kind
		}
	}
	return ""
}
