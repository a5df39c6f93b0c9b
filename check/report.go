package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/semel-dev/semel/workflowfile"
)

// DefaultOperatorTime is how long a person may take to look at what is left to
// one: from the evening to the morning.
const DefaultOperatorTime = 12 * time.Hour

// Report is what is known about one workflow before it runs.
type Report struct {
	Workflow string `json:"workflow"`
	Version  int    `json:"version"`
	Owner    string `json:"owner,omitzero"`
	File     string `json:"file,omitzero"` // empty for a workflow in Go
	// Steps are those with an effect, in their order.
	Steps []Step `json:"steps"`
	// Findings are in the order of their places, accepted ones among them.
	Findings []Finding `json:"findings,omitzero"`
}

// Step is a step with an effect, and the answers to the seven questions.
type Step struct {
	Path   string `json:"step"`
	Action string `json:"action"`
	Line   int    `json:"line,omitzero"`
	Column int    `json:"column,omitzero"`
	Answers
}

// Answers are the answers to the seven questions, each in whole sentences.
type Answers struct {
	Effect       string `json:"effect"`       // what does it do?
	Identity     string `json:"identity"`     // what names it?
	Together     string `json:"together"`     // what if two arrive at once?
	Evidence     string `json:"evidence"`     // where is the evidence?
	Interruption string `json:"interruption"` // what if it stops between effect and record?
	Limits       string `json:"limits"`       // how often, how long, how far?
	Recovery     string `json:"recovery"`     // how does a person recover?
}

// Counts are how many findings count as what.
type Counts struct {
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
	Notes    int `json:"notes"`
	Accepted int `json:"accepted"`
}

// Count counts findings. One that is accepted counts as nothing else.
func Count(findings []Finding) (c Counts) {
	for _, f := range findings {
		switch {
		case f.Accepted != "":
			c.Accepted++
		case f.Severity == workflowfile.SeverityError:
			c.Errors++
		case f.Severity == workflowfile.SeverityWarning:
			c.Warnings++
		default:
			c.Notes++
		}
	}
	return c
}

// workflow is what is checked: what a file says, or what dry runs showed.
type workflow struct {
	name     string
	version  int
	owner    string
	file     string
	operator time.Duration
	effects  []*effect
	accepts  []acceptance
}

func (w *workflow) ref() string { return fmt.Sprintf("%s@%d", w.name, w.version) }

// report applies the rules, and answers the questions.
func (w *workflow) report(more ...Finding) Report {
	r := Report{Workflow: w.name, Version: w.version, Owner: w.owner, File: w.file, Steps: []Step{}, Findings: []Finding{}}
	found := more
	for _, e := range w.effects {
		r.Steps = append(r.Steps, Step{Path: e.path, Action: e.action, Line: e.line, Column: e.column, Answers: w.answers(e)})
		rules := risks
		if e.refused != "" {
			rules = rules[:1] // what else it says means nothing
		}
		for _, risk := range rules {
			if f, ok := risk(w, e); ok {
				f.Step, f.File = e.path, w.file
				if f.Line == 0 {
					f.Line, f.Column = e.line, e.column
				}
				found = append(found, f)
			}
		}
	}
	for i := range found {
		found[i].Workflow = w.ref()
	}
	r.Findings = append(r.Findings, w.accept(found)...)
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return r
}
