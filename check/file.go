package check

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/semel-dev/semel/workflowfile"
)

// FileOptions say how a file is checked.
type FileOptions struct {
	// OperatorTime is how long a person may take to look; 0 means
	// DefaultOperatorTime.
	OperatorTime time.Duration
}

// File checks a workflow file that was read: the definition and the problems
// that Parse or Load returned, with the checks that they were given. Problems
// that a step accepts are marked. It asks nobody but checks.Connection. A
// definition is nil where the file has errors: then they are all that is found,
// and the report has no name and no steps.
func File(d *workflowfile.Definition, problems []workflowfile.Problem, checks workflowfile.Checks, o FileOptions) Report {
	findings := make([]Finding, len(problems))
	for i, p := range problems {
		findings[i] = Problem(p)
	}
	if d == nil {
		return Report{Steps: []Step{}, Findings: findings}
	}
	w := &workflow{name: d.Name, version: d.Version, owner: d.Owner, file: d.File, operator: cmp.Or(o.OperatorTime, DefaultOperatorTime)}
	r := &fileReader{d: d, checks: checks, w: w, problems: findings}
	r.list("", d.Steps, around{})
	r.list("on_failure/", d.OnFailure, around{})
	r.siblings()
	return w.report(append(findings, r.shared...)...)
}

// fileReader turns the steps of a file into effects.
type fileReader struct {
	d        *workflowfile.Definition
	checks   workflowfile.Checks
	w        *workflow
	problems []Finding
	named    []named   // steps that name their work
	shared   []Finding // those that share a name
}

// around is what a list of steps stands in.
type around struct {
	after []pause            // the waits before it
	each  *workflowfile.Each // what performs it; nil for the run
	ifs   []string           // conditions
}

// list reads one list of steps.
func (r *fileReader) list(path string, steps []*workflowfile.Step, in around) {
	after := in.after
	for i, s := range steps {
		at := path + s.ID
		for _, a := range s.Accept {
			r.w.accepts = append(r.w.accepts, acceptance{step: at, code: a.Code, reason: a.Reason, line: a.Line, column: a.Column})
		}
		r.place(at, s)
		switch {
		case s.Uses != nil:
			if s.Approve != nil {
				after = append(after, pause{step: at, most: s.Approve.Ask.Timeout})
			}
			if e := r.effect(at, s); e != nil {
				e.after = slices.Clone(after)
				if in.each != nil {
					e.item, e.itemKey = in.each.As, in.each.Key.Refs
				}
				e.approval, e.uncovered = approved(steps, i)
				r.w.effects = append(r.w.effects, e)
				r.name(e, s, in.ifs)
			}
		case s.Each != nil:
			r.list(at+"/", s.Each.Steps, around{slices.Clone(after), s.Each, conditions(in.ifs, s)})
		default:
			after = append(after, waiting(at, s))
		}
	}
}

// place gives the warnings about the key of a step its path, so that the step
// can accept them.
func (r *fileReader) place(path string, s *workflowfile.Step) {
	if s.Uses == nil || s.Uses.Effect == nil || s.Uses.Effect.Key == nil {
		return
	}
	key := s.Uses.Effect.Key
	for i := range r.problems {
		if f := &r.problems[i]; f.Code == workflowfile.CodeKey && f.Line == key.Line && f.Column == key.Column {
			f.Step = path
		}
	}
}

// effect is the effect of a step; nil where it has none, or nobody could tell.
func (r *fileReader) effect(path string, s *workflowfile.Step) *effect {
	u := s.Uses
	contract, known := r.d.Contract(s, r.checks)
	if u.Read || !known {
		return nil
	}
	e := &effect{
		path: path, action: u.Connection + "." + u.Action, line: s.Line, column: s.Column, contract: contract,
		key: key{run: true}, request: members("", u.With),
	}
	e.refused = refusal(&contract)
	if u.Retry != nil {
		e.retry = *u.Retry
	}
	if u.Effect != nil && u.Effect.Key != nil {
		k := u.Effect.Key
		e.key = key{text: k.String(), members: k.Refs(), line: k.Line, column: k.Column}
	}
	return e
}

// members are those of a request, the inner ones by their last name.
func members(name string, v *workflowfile.Value) []member {
	if names := v.Fields(); len(names) > 0 {
		var all []member
		for _, n := range names {
			all = append(all, members(n, v.Field(n))...)
		}
		return all
	}
	if name == "" {
		return nil
	}
	literal, known := v.Literal()
	return []member{{name: snake(name), value: literal, computed: !known, constant: known, refs: v.Refs()}}
}

// waiting is the wait of a step that waits.
func waiting(path string, s *workflowfile.Step) pause {
	p := pause{step: path}
	switch {
	case s.Sleep != nil && s.Sleep.For != nil:
		text, _ := s.Sleep.For.Literal()
		literal, _ := text.(string)
		if d, err := time.ParseDuration(literal); err == nil {
			p.least, p.most = d, d
		}
	case s.Wait != nil:
		p.most = s.Wait.Timeout
	case s.Approve != nil:
		p.most = s.Approve.Ask.Timeout
	}
	return p
}

// approved is the approval that covers the i-th step of a list, and why one
// that was meant to does not.
func approved(steps []*workflowfile.Step, i int) (a *approval, uncovered string) {
	s := steps[i]
	if s.Approve != nil {
		return &approval{ask: s.Approve.Ask}, ""
	}
	for j, asking := range steps[:i] {
		if asking.Approve == nil || asking.Approve.Step != s.ID {
			continue
		}
		a = &approval{ask: asking.Approve.Ask}
		for _, between := range steps[j+1 : i] {
			switch {
			case between.Uses != nil && between.Approve != nil, between.Uses == nil && between.Each == nil:
				a.between = append(a.between, waiting(between.ID, between))
			}
		}
		if asking.If != nil && (s.If == nil || s.If.Text != asking.If.Text) {
			uncovered = "its approval in step " + asking.ID + " is asked for under a condition that it does not have itself: without it the run is held"
		}
	}
	return a, uncovered
}

// siblings finds steps that do without approval what is approved elsewhere in
// the workflow.
func (r *fileReader) siblings() {
	asked := map[string]string{}
	for _, e := range r.w.effects {
		if e.approval != nil {
			asked[e.action] = e.path
		}
	}
	for _, e := range r.w.effects {
		if of := asked[e.action]; of != "" && e.approval == nil && !strings.HasPrefix(e.path, "on_failure/") {
			e.uncovered = "it does what step " + of + " needs a person's approval for, and nobody is asked"
		}
	}
}
