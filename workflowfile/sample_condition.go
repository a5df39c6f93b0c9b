package workflowfile

import (
	"maps"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// mostChoices bounds the ways in which one condition can become true.
const mostChoices = 24

// mostSolved bounds the effort for one condition, and mostTests what is asked of
// one value.
const (
	mostSolved = 5_000
	mostTests  = 50
)

// claim is what a value has to be.
type claim struct {
	of    *guess
	test  test
	every bool // item
}

// choices are ways to make a condition true: all claims of one of them. None
// means that there is no way; one without claims that nothing is known to be
// needed.
type choices [][]claim

var unknown = choices{nil}

func one(c ...claim) choices { return choices{c} }

// and combines the ways of two conditions that both have to be true.
func (a choices) and(b choices) (both choices) {
	for _, x := range a {
		for _, y := range b {
			if len(both) < mostChoices {
				both = append(both, append(slices.Clone(x), y...))
			}
		}
	}
	return both
}

func (a choices) or(b choices) choices {
	all := append(slices.Clone(a), b...)
	return all[:min(len(all), mostChoices)]
}

// settle makes a condition true, with those that it needs: for all items where
// that contradicts nothing, else for one that has no way of its own yet.
func (s *sampling) settle(c condition) {
	s.solved = 0
	ways := s.solve(c.tree, true, c.scope)
	for _, need := range c.needs {
		ways = s.solve(need.tree, true, need.scope).and(ways)
	}
	for way := range mostWays {
		for _, claims := range ways {
			if s.claim(claims, way) {
				return
			}
		}
	}
}

// claim adds the claims to the values of one item, if they agree with all that
// is claimed already.
func (s *sampling) claim(claims []claim, way int) bool {
	var undo []func()
	agrees := true
	for _, c := range claims {
		undo = append(undo, c.add(way))
	}
	for _, c := range claims {
		agrees = agrees && c.agrees(way)
	}
	if agrees {
		return true
	}
	for _, f := range slices.Backward(undo) {
		f()
	}
	return false
}

// add notes the claim, and returns what takes it back.
func (c claim) add(way int) (undo func()) {
	always, tests := c.of.always, maps.Clone(c.of.tests)
	ways := map[*guess]int{}
	in := c.of.inside()
	switch {
	case in == nil:
		way = 0
		fallthrough
	case !c.every:
		if c.of.tests == nil {
			c.of.tests = map[int][]test{}
		}
		c.of.tests[way] = append(slices.Clone(c.of.tests[way]), c.test)
	default:
		c.of.always = append(slices.Clone(always), c.test)
	}
	for ; in != nil; in = in.outside() {
		ways[in] = in.ways
		in.ways = max(in.ways, way+1)
	}
	return func() {
		c.of.always, c.of.tests = always, tests
		for in, n := range ways {
			in.ways = n
		}
	}
}

// agrees reports whether there is a value for all that is claimed.
func (c claim) agrees(way int) bool {
	for at := range mostWays {
		in := c.of.inside()
		if in == nil && at > 0 || in != nil && !c.every && at != way {
			continue
		}
		if len(c.of.always)+len(c.of.tests[at]) > mostTests {
			return false
		}
		if _, ok := c.of.choose([]int{at}); !ok {
			return false
		}
	}
	return true
}

// solve finds how a condition becomes true or false.
func (s *sampling) solve(e ast.Expr, want bool, scope *reading) choices {
	if s.solved++; s.solved > mostSolved {
		return unknown
	}
	switch e.Kind() {
	case ast.LiteralKind:
		if e.AsLiteral() == types.Bool(want) {
			return unknown
		}
		return nil
	case ast.SelectKind:
		if e.AsSelect().IsTestOnly() {
			return s.has(e.AsSelect(), want, scope)
		}
	case ast.ComprehensionKind:
		return s.quantified(e.AsComprehension(), want, scope)
	case ast.CallKind:
		c := e.AsCall()
		if !c.IsMemberFunction() {
			return s.operated(e, c.FunctionName(), c.Args(), want, scope)
		}
		return s.matched(c, want, scope)
	default:
	}
	return compared(s.read(e, scope), operators.Equals, types.Bool(want))
}

func (s *sampling) operated(e ast.Expr, function string, args []ast.Expr, want bool, scope *reading) choices {
	switch function {
	case operators.LogicalNot:
		return s.solve(args[0], !want, scope)
	case operators.LogicalAnd, operators.LogicalOr:
		a, b := s.solve(args[0], want, scope), s.solve(args[1], want, scope)
		if want == (function == operators.LogicalAnd) {
			return a.and(b)
		}
		return a.or(b)
	case operators.Conditional:
		yes := s.solve(args[0], true, scope).and(s.solve(args[1], want, scope))
		return yes.or(s.solve(args[0], false, scope).and(s.solve(args[2], want, scope)))
	case operators.In:
		return s.contained(args, want, scope)
	case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		return s.comparison(function, args, want, scope)
	case operators.NotStrictlyFalse:
		return s.solve(args[0], want, scope)
	case operators.Index:
		return compared(s.read(e, scope), operators.Equals, types.Bool(want))
	}
	return unknown
}

var (
	opposite = map[string]string{
		operators.Equals: operators.NotEquals, operators.NotEquals: operators.Equals,
		operators.Less: operators.GreaterEquals, operators.GreaterEquals: operators.Less,
		operators.Greater: operators.LessEquals, operators.LessEquals: operators.Greater,
	}
	mirrored = map[string]string{
		operators.Equals: operators.Equals, operators.NotEquals: operators.NotEquals,
		operators.Less: operators.Greater, operators.Greater: operators.Less,
		operators.LessEquals: operators.GreaterEquals, operators.GreaterEquals: operators.LessEquals,
	}
)

func (s *sampling) comparison(function string, args []ast.Expr, want bool, scope *reading) choices {
	if !want {
		function = opposite[function]
	}
	a, b := s.plainly(args[0], scope), s.plainly(args[1], scope)
	x, y := literal(args[0]), literal(args[1])
	if ways, ok := s.some(function, args[0], y, scope); ok {
		return ways
	}
	switch {
	case a != nil && y != nil:
		return compared(a, function, y)
	case b != nil && x != nil:
		return compared(b, mirrored[function], x)
	case a != nil && b != nil: // one is what it is now, and the other follows
		var all choices
		if v, ok := b.choose(nil); ok {
			all = compared(a, function, adapted(v))
		}
		if v, ok := a.choose(nil); ok {
			all = all.or(compared(b, mirrored[function], adapted(v)))
		}
		return all
	case a != nil && args[1].Kind() == ast.ListKind && args[1].AsList().Size() == 0:
		return compared(a.length(), function, types.Int(0))
	}
	return unknown
}

// compared are the claims that a value compares so with another. What holds it
// has to be there.
func compared(g *guess, function string, with ref.Val) choices {
	if g == nil {
		return unknown
	}
	t := test{
		tries:   tries(with),
		accepts: func(v any) bool { return v != missing{} && operate(function, adapted(v), with) == types.True },
	}
	return one(append(around(g), claim{of: g, test: t})...)
}

// there is the test of a value that is neither missing nor null.
var there = test{accepts: func(v any) bool { return v != nil && v != (missing{}) }}

// around are the claims that g can be there: what it is a member of is.
func around(g *guess) (claims []claim) {
	for ; g.parent != nil && !g.item; g = g.parent {
		claims = append(claims, claim{of: g.parent, test: there})
	}
	return claims
}

// adapted is a value as CEL has it.
func adapted(v any) ref.Val { return adapter{types.DefaultTypeAdapter}.NativeToValue(v) }

// tries are values at and about another.
func tries(v ref.Val) (all []any) {
	about := []ref.Val{v}
	switch v := v.(type) {
	case types.Int, types.Uint, decimal:
		about = append(about, operate(operators.Add, v, types.Int(1)), operate(operators.Subtract, v, types.Int(1)))
	case types.String:
		about = append(about, v+"-1", types.String(""))
	case types.Bool:
		about = append(about, !v)
	}
	for _, v := range about {
		if value, err := native(v); err == nil {
			all = append(all, value)
		}
	}
	return all
}

// literal is a value that is written out, nil for anything else.
func literal(e ast.Expr) ref.Val {
	if e.Kind() != ast.LiteralKind {
		return nil
	}
	if d, ok := e.AsLiteral().(types.Double); ok {
		v, err := native(d)
		if err != nil {
			return nil
		}
		return adapted(v)
	}
	return e.AsLiteral()
}

// plainly is what an expression is but for a conversion: string(x), size(x).
func (s *sampling) plainly(e ast.Expr, scope *reading) *guess {
	if e.Kind() != ast.CallKind {
		return s.read(e, scope)
	}
	c := e.AsCall()
	of := c.Target()
	if !c.IsMemberFunction() {
		if len(c.Args()) != 1 {
			return s.read(e, scope)
		}
		of = c.Args()[0]
	}
	switch c.FunctionName() {
	case overloads.Size:
		if g := s.read(of, scope); g != nil && g.kind == TypeArray {
			return g.length()
		}
		return nil
	case overloads.TypeConvertString, overloads.TypeConvertInt, overloads.TypeConvertDouble, "lowerAscii", "upperAscii", "trim":
		return s.plainly(of, scope)
	}
	return nil
}

// contained solves in.
func (s *sampling) contained(args []ast.Expr, want bool, scope *reading) choices {
	of, in := s.plainly(args[0], scope), s.read(args[1], scope)
	if of != nil && args[1].Kind() == ast.ListKind {
		all, none := choices{}, unknown
		for _, element := range args[1].AsList().Elements() {
			v := literal(element)
			if v == nil {
				return unknown
			}
			all, none = all.or(compared(of, operators.Equals, v)), none.and(compared(of, operators.NotEquals, v))
		}
		if want {
			return all
		}
		return none
	}
	v := literal(args[0])
	if in == nil || v == nil {
		return unknown
	}
	if name, ok := v.(types.String); ok && in.kind == TypeObject {
		return present(in.member(string(name)), want)
	}
	function := operators.Equals
	if !want {
		function = operators.NotEquals
	}
	return compared(in.items(), function, v)
}

// has solves has(x.y).
func (s *sampling) has(e ast.SelectExpr, want bool, scope *reading) choices {
	if path, _ := chain(e.Operand()); len(path) == 1 && path[0] == "steps" {
		step := scope.steps[e.FieldName()]
		if step == nil || step.step.If == nil {
			return unknown
		}
		return s.solve(s.tree(step.step.If), want, step.scope)
	}
	g := s.selected(e.Operand(), e.FieldName(), scope)
	if g == nil {
		return unknown
	}
	return present(g, want)
}

// present are the claims that a member is there, or is not. What is null has
// no members.
func present(g *guess, want bool) choices {
	if !want && g.fixed && g.parent != nil {
		return compared(g.parent, operators.Equals, types.NullValue)
	}
	if !want && (g.fixed || g.item || g.parent == nil) {
		return nil
	}
	t := test{tries: []any{missing{}}, accepts: func(v any) bool { return (v != missing{}) == want }}
	return one(append(around(g), claim{of: g, test: t})...)
}

// matched solves the functions of a text.
func (s *sampling) matched(c ast.CallExpr, want bool, scope *reading) choices {
	g := s.plainly(c.Target(), scope)
	if g == nil || len(c.Args()) != 1 {
		return unknown
	}
	part, ok := text(c.Args()[0])
	if !ok {
		return unknown
	}
	holds := map[string]func(string, string) bool{
		overloads.StartsWith: strings.HasPrefix, overloads.EndsWith: strings.HasSuffix, overloads.Contains: strings.Contains,
	}[c.FunctionName()]
	if holds == nil {
		return unknown
	}
	t := test{tries: []any{part + "-1", "1-" + part, "", "-"}, accepts: func(v any) bool {
		s, ok := v.(string)
		return ok && holds(s, part) == want
	}}
	return one(append(around(g), claim{of: g, test: t})...)
}

// quantified solves exists and all: exists asks one item or none, all asks all
// or one.
func (s *sampling) quantified(c ast.ComprehensionExpr, want bool, scope *reading) choices {
	first := literal(c.AccuInit())
	list := s.read(c.IterRange(), scope)
	if _, ok := first.(types.Bool); !ok || list == nil || c.LoopStep().Kind() != ast.CallKind || c.IterVar2() != "" {
		return unknown
	}
	args := c.LoopStep().AsCall().Args()
	if len(args) != 2 {
		return unknown
	}
	ways := s.solve(args[1], want, scope.bind(c.AccuVar(), nil).bind(c.IterVar(), list.items()))
	if want == (first == types.True) {
		for _, claims := range ways {
			for i := range claims {
				claims[i].every = true
			}
		}
	}
	return ways
}

// filter is the condition of a filter, with what it speaks of.
func (s *sampling) filter(e ast.Expr, scope *reading) (condition, bool) {
	if e == nil || e.Kind() != ast.ComprehensionKind {
		return condition{}, false
	}
	c := e.AsComprehension()
	if c.LoopStep().Kind() != ast.CallKind || c.LoopStep().AsCall().FunctionName() != operators.Conditional {
		return condition{}, false
	}
	list := s.read(c.IterRange(), scope)
	if list == nil || c.AccuInit().Kind() != ast.ListKind || c.IterVar2() != "" {
		return condition{}, false
	}
	return condition{tree: c.LoopStep().AsCall().Args()[0], scope: scope.bind(c.AccuVar(), nil).bind(c.IterVar(), list.items())}, true
}

// some solves that a filter leaves something: size() > 0.
func (s *sampling) some(function string, e ast.Expr, with ref.Val, scope *reading) (choices, bool) {
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != overloads.Size || with == nil || operate(function, types.Int(1), with) != types.True {
		return nil, false
	}
	of := e.AsCall().Target()
	if !e.AsCall().IsMemberFunction() {
		of = e.AsCall().Args()[0]
	}
	c, ok := s.filter(of, scope)
	if !ok {
		return nil, false
	}
	return s.solve(c.tree, true, c.scope), true
}
