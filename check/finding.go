package check

import (
	"fmt"
	"strings"

	"github.com/semel-dev/semel/workflowfile"
)

// Note is the severity of what somebody should know. It never fails a check;
// the other severities are those of a workflow file.
const Note workflowfile.Severity = "note"

// Finding is one thing that is wrong with a workflow, or could go wrong.
type Finding struct {
	// File, Line and Column are where it stands; empty for a workflow in Go.
	File     string                `json:"file,omitzero"`
	Line     int                   `json:"line,omitzero"`
	Column   int                   `json:"column,omitzero"`
	Severity workflowfile.Severity `json:"severity"`
	Code     workflowfile.Code     `json:"code"`
	Message  string                `json:"message"`
	Fix      string                `json:"fix,omitzero"`
	// Workflow is NAME@VERSION; empty where it could not be read.
	Workflow string `json:"workflow,omitzero"`
	// Step is the path of the step, without the keys of items.
	Step string `json:"step,omitzero"`
	// Accepted is the reason why the risk is taken; empty where it is not.
	Accepted string `json:"accepted,omitzero"`
}

// String is PLACE: what is wrong: how to mend it [code], where the place is
// FILE:LINE:COLUMN, or WORKFLOW/STEP for a workflow in Go. All but an error
// that counts says what it is. The code is left out where nothing can be
// accepted.
func (f Finding) String() string {
	var b strings.Builder
	b.WriteString(f.place() + ": ")
	switch {
	case f.Accepted != "":
		b.WriteString("accepted: ")
	case f.Severity != workflowfile.SeverityError:
		b.WriteString(string(f.Severity) + ": ")
	}
	b.WriteString(f.Message)
	switch {
	case f.Accepted != "":
		b.WriteString(": because " + f.Accepted)
	case f.Fix != "":
		b.WriteString(": " + f.Fix)
	}
	if f.Acceptable() {
		fmt.Fprintf(&b, " [%s]", f.Code)
	}
	return b.String()
}

func (f Finding) place() string {
	if f.File != "" {
		return fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
	}
	if f.Step != "" {
		return f.Workflow + "/" + f.Step
	}
	return f.Workflow
}

// Acceptable reports whether a step can accept it. An error that keeps the file
// from being read cannot be accepted.
func (f Finding) Acceptable() bool {
	rule, ok := RuleOf(f.Code)
	both := f.Code == workflowfile.CodeKey || f.Code == workflowfile.CodeSharedKey // as a warning only
	return ok && rule.Acceptable && !(both && f.Severity == workflowfile.SeverityError)
}

// Problem is the finding of a problem of a file.
func Problem(p workflowfile.Problem) Finding {
	return Finding{
		Code: p.Code, Severity: p.Severity, File: p.File, Line: p.Line, Column: p.Column, Message: p.Message, Fix: p.Fix,
	}
}
