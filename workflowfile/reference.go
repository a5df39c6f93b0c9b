package workflowfile

import (
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// reference is a variable that an expression uses, with the names of the
// members it selects; call marks the name of a function.
type reference struct {
	path   []string
	offset int // in its line of the expression
	call   bool
}

// references lists what an expression refers to, without the variables that
// its own macros bind.
func references(parsed *ast.AST) []reference {
	w := walker{info: parsed.SourceInfo()}
	w.walk(parsed.Expr(), nil)
	return w.found
}

type walker struct {
	info  *ast.SourceInfo
	found []reference
}

// walk goes through e; bound are the variables of the macros around it.
func (w *walker) walk(e ast.Expr, bound []string) {
	if path, base := chain(e); path != nil {
		if !slices.Contains(bound, path[0]) {
			w.add(base, reference{path: path})
		}
		return
	}
	switch e.Kind() {
	case ast.SelectKind:
		w.walk(e.AsSelect().Operand(), bound)
	case ast.CallKind:
		call := e.AsCall()
		if call.IsMemberFunction() {
			w.walk(call.Target(), bound)
		} else if !strings.ContainsAny(call.FunctionName(), "_@!?-") {
			w.add(e, reference{path: []string{call.FunctionName()}, call: true})
		}
		args := call.Args()
		if call.FunctionName() == operators.Index {
			if path, base := chain(args[0]); len(path) > 0 && !slices.Contains(bound, path[0]) {
				w.add(base, reference{path: path})
				args = args[1:]
			}
		}
		for _, arg := range args {
			w.walk(arg, bound)
		}
	case ast.ListKind:
		for _, element := range e.AsList().Elements() {
			w.walk(element, bound)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			w.walk(entry.AsMapEntry().Key(), bound)
			w.walk(entry.AsMapEntry().Value(), bound)
		}
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			w.walk(field.AsStructField().Value(), bound)
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		w.walk(c.IterRange(), bound)
		w.walk(c.AccuInit(), bound)
		inner := append(slices.Clone(bound), c.IterVar(), c.IterVar2(), c.AccuVar())
		w.walk(c.LoopCondition(), inner)
		w.walk(c.LoopStep(), inner)
		w.walk(c.Result(), inner)
	case ast.IdentKind, ast.LiteralKind, ast.UnspecifiedExprKind:
	}
}

func (w *walker) add(e ast.Expr, r reference) {
	if start := w.info.GetStartLocation(e.ID()); start != nil {
		r.offset = start.Column()
	}
	w.found = append(w.found, r)
}

// chain returns the path of a variable with selected members, such as
// steps.due.rows, and the expression of the variable; nil for anything else.
func chain(e ast.Expr) (path []string, base ast.Expr) {
	switch e.Kind() {
	case ast.IdentKind:
		return []string{e.AsIdent()}, e
	case ast.SelectKind:
		if path, base = chain(e.AsSelect().Operand()); path != nil {
			return append(path, e.AsSelect().FieldName()), base
		}
	case ast.CallKind:
		call := e.AsCall()
		if call.FunctionName() != operators.Index || call.Args()[1].Kind() != ast.LiteralKind {
			return nil, nil
		}
		name, ok := call.Args()[1].AsLiteral().(types.String)
		if path, base = chain(call.Args()[0]); path != nil && ok {
			return append(path, string(name)), base
		}
	default:
	}
	return nil, nil
}

// typeName is a type in the words of a workflow file.
func typeName(t *cel.Type) string {
	switch t.Kind() {
	case types.BoolKind:
		return "true or false"
	case types.IntKind, types.UintKind:
		return "an integer"
	case types.DoubleKind:
		return "a number"
	case types.StringKind:
		return "a text"
	case types.ListKind:
		return "a list"
	case types.MapKind:
		return "a mapping"
	case types.NullTypeKind:
		return "null"
	case types.TimestampKind:
		return "a point in time"
	case types.DurationKind:
		return "a duration"
	default:
		return "of type " + t.TypeName()
	}
}

// legible takes CEL's inner names out of a message.
func legible(message string) string {
	message, _, _ = strings.Cut(message, "\n")
	for _, operator := range []string{"+", "-", "*", "/", "%", "==", "!=", "<=", ">=", "<", ">", "&&", "||"} {
		message = strings.ReplaceAll(message, "'_"+operator+"_'", "'"+operator+"'")
	}
	message = strings.ReplaceAll(message, " (in container '')", "")
	return message
}
