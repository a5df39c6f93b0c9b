package workflowfile

import (
	"maps"
	"slices"

	"cel.dev/cel-go/common/ast"

	"github.com/semel-dev/semel"
)

// reading is what the expressions of one list of steps mean.
type reading struct {
	items  map[string]*guess // of lists, and variables of macros
	steps  map[string]*stepGuess
	within *guess      // the item of the innermost each
	needs  []condition // of the each around
}

// stepGuess is a step as later ones see it.
type stepGuess struct {
	step   *Step
	result *guess
	scope  *reading
}

// condition is an expression that has to be true.
type condition struct {
	tree  ast.Expr
	scope *reading
	needs []condition // which have to be true as well
}

func (r *reading) inner() *reading {
	return &reading{items: maps.Clone(r.items), steps: maps.Clone(r.steps), within: r.within, needs: r.needs}
}

// bind is the scope in which a variable means g.
func (r *reading) bind(name string, g *guess) *reading {
	inner := *r
	inner.items = maps.Clone(r.items)
	inner.items[name] = g
	return &inner
}

// tree is the expression without its text; nil if there is none.
func (s *sampling) tree(e *Expr) ast.Expr {
	if e == nil {
		return nil
	}
	if s.trees[e] == nil {
		parsed, issues := s.language.env.Parse(e.Text)
		if err := issues.Err(); err != nil {
			panic(err) // it was read before
		}
		s.trees[e] = parsed.NativeRep().Expr()
	}
	return s.trees[e]
}

func (s *sampling) readInputs() {
	scope := &reading{items: map[string]*guess{}, steps: map[string]*stepGuess{}}
	for _, in := range s.d.Inputs {
		g := &guess{name: in.Name, kind: in.Type, format: in.Format, fixed: true}
		if in.Default != nil {
			if value, err := in.Default.constant(); err == nil {
				g.given = value
			} else if e := in.Default.expr; e != nil && s.trigger == semel.ByEvent {
				if of := s.read(s.tree(e), scope); of != nil {
					of.is(in.Type)
					of.format = in.Format
					g = of
				}
			}
		}
		s.inputs[in.Name] = g
	}
}

// readSteps reads one list of steps.
func (s *sampling) readSteps(steps []*Step, prefix string, scope *reading) {
	for _, step := range steps {
		path := prefix + step.ID
		s.paths = append(s.paths, stepPath{step, path, scope})
		seen := &stepGuess{step: step, scope: scope}
		needs := scope.needs
		if step.If != nil {
			s.expression(step.If, scope, TypeBoolean)
			c := condition{s.tree(step.If), scope, needs}
			s.cases = append(s.cases, c)
			needs = append(slices.Clone(needs), c)
		}
		switch {
		case step.Uses != nil:
			s.value(step.Uses.With, scope, "")
			if step.Uses.Effect != nil {
				s.value(step.Uses.Effect.Key, scope, TypeString)
			}
			seen.result = answerGuess(step)
			seen.result.within = scope.within
			s.answers[path] = seen.result
		case step.Wait != nil:
			s.value(step.Wait.Match, scope, TypeString)
			seen.result = &guess{name: step.ID, within: scope.within}
			for _, name := range known["event"] {
				seen.result.member(name).fixed = true
			}
			if step.Wait.Timeout == 0 {
				seen.result.always = []test{there}
			}
			s.answers[path] = seen.result
		case step.Sleep != nil:
			s.moment(step.Sleep.For, scope, "duration")
			s.moment(step.Sleep.Until, scope, "date-time")
		case step.Each != nil:
			s.readEach(step.Each, path+"/", scope, needs)
		}
		scope.steps[step.ID] = seen
	}
}

func (s *sampling) readEach(each *Each, prefix string, scope *reading, needs []condition) {
	list := s.expression(each.In, scope, TypeArray)
	if list == nil {
		list = &guess{within: scope.within}
	}
	item := list.items()
	item.name = each.As
	inner := scope.inner()
	inner.items[each.As], inner.within, inner.needs = item, item, needs
	s.expression(each.Key, inner, TypeString)
	if c, ok := s.filter(s.tree(each.In), scope); ok {
		c.needs = needs
		s.cases = append(s.cases, c)
		inner.needs = append(slices.Clone(needs), c)
	}
	s.readSteps(each.Steps, prefix, inner)
}

// answerGuess is what an action brings, as far as it is known.
func answerGuess(step *Step) *guess {
	g := &guess{name: step.ID}
	switch step.Uses.Connection + "." + step.Uses.Action {
	case "claim.once":
		g.member("won").kind = TypeBoolean
		fallthrough
	case "sql.exec":
		affected := g.member("affected")
		affected.kind, affected.given = TypeInteger, count(1)
	case "sql.query":
		g.member("rows").items().kind = TypeObject
	}
	return g
}

// refs are the variables that a step uses, as paths.
func (s *Step) refs() (all []string) {
	for _, e := range s.expressions() {
		all = append(all, e.Refs...)
	}
	for _, v := range s.values() {
		all = append(all, v.Refs()...)
	}
	return all
}

func (s *Step) expressions() []*Expr {
	all := []*Expr{s.If}
	if s.Each != nil {
		all = append(all, s.Each.In, s.Each.Key)
	}
	return slices.DeleteFunc(all, func(e *Expr) bool { return e == nil })
}

func (s *Step) values() (all []*Value) {
	if s.Uses != nil {
		all = append(all, s.Uses.With)
		if s.Uses.Effect != nil {
			all = append(all, s.Uses.Effect.Key)
		}
	}
	if s.Wait != nil {
		all = append(all, s.Wait.Match)
	}
	if s.Sleep != nil {
		all = append(all, s.Sleep.For, s.Sleep.Until)
	}
	return slices.DeleteFunc(all, func(v *Value) bool { return v == nil })
}
