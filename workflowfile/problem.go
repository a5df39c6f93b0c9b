package workflowfile

import (
	"cmp"
	"fmt"
	"slices"
)

// Severity says whether a problem keeps the workflow from running.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Code names a kind of problem. Codes are stable.
type Code string

// The codes.
const (
	CodeSyntax     Code = "syntax"         // not YAML, or not CEL
	CodeStructure  Code = "structure"      // a mapping where a list belongs, and the like
	CodeYAML       Code = "yaml"           // YAML with a surprise: a tag, an anchor, a cut comment
	CodeField      Code = "unknown_field"  // no such member
	CodeDuplicate  Code = "duplicate"      // said twice
	CodeMissing    Code = "missing"        // a required member is not there
	CodeAmbiguous  Code = "ambiguous"      // YAML readers disagree on what it is
	CodeValue      Code = "value"          // outside what the member accepts
	CodeReference  Code = "reference"      // names what does not exist, or not yet
	CodeType       Code = "type"           // an expression of the wrong type
	CodeEffect     Code = "missing_effect" // a consequential step without an effect
	CodeKey        Code = "key"            // a key that does not name the work
	CodeNotChecked Code = "not_checked"    // nobody could tell
)

// Problem is one thing that is wrong with a workflow file. Line and Column
// count from 1.
type Problem struct {
	File     string   `json:"file"`
	Line     int      `json:"line"`
	Column   int      `json:"column"`
	Severity Severity `json:"severity"`
	Code     Code     `json:"code"`
	Message  string   `json:"message"`
	Fix      string   `json:"fix,omitzero"`
}

// String is FILE:LINE:COLUMN: what is wrong: how to mend it. A warning says so.
func (p Problem) String() string {
	s := fmt.Sprintf("%s:%d:%d: ", p.File, p.Line, p.Column)
	if p.Severity == SeverityWarning {
		s += "warning: "
	}
	s += p.Message
	if p.Fix != "" {
		s += ": " + p.Fix
	}
	return s
}

// HasErrors reports whether one of the problems keeps the workflow from
// running.
func HasErrors(problems []Problem) bool {
	return slices.ContainsFunc(problems, func(p Problem) bool { return p.Severity == SeverityError })
}

// sorted puts problems in the order of their places: first those of the file
// itself, then those of the files that it names.
func sorted(file string, problems []Problem) []Problem {
	other := func(p Problem) string {
		if p.File == file {
			return ""
		}
		return p.File
	}
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(other(a), other(b)), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.Compact(problems)
}
