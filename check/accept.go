package check

import (
	"fmt"

	"github.com/semel-dev/semel/workflowfile"
)

// acceptance is a risk of a step that is taken.
type acceptance struct {
	step         string
	code         workflowfile.Code
	reason       string
	line, column int
}

// accept marks the findings that are accepted, and adds one for each acceptance
// that accepts nothing.
func (w *workflow) accept(findings []Finding) []Finding {
	for _, a := range w.accepts {
		used := false
		for i := range findings {
			f := &findings[i]
			if f.Step == a.step && f.Code == a.code && f.Acceptable() {
				f.Accepted, used = a.reason, true
			}
		}
		if !used {
			findings = append(findings, Finding{
				Code: workflowfile.CodeUnusedAccept, Severity: workflowfile.SeverityWarning, Workflow: w.ref(), Step: a.step,
				File: w.file, Line: a.line, Column: a.column,
				Message: fmt.Sprintf("step %s accepts %s, which is not found there", a.step, a.code), Fix: "leave it out",
			})
		}
	}
	return findings
}
