package check

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	width  = 80
	indent = 20
)

// Text is the table of the workflow for a terminal of 80 columns: a block for
// each step, with the answers to the seven questions. It has no line that
// begins like a finding.
func (r *Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s@%d", r.Workflow, r.Version)
	if r.Owner != "" {
		fmt.Fprintf(&b, ", owner %s", r.Owner)
	}
	if r.File != "" {
		fmt.Fprintf(&b, ", in %s", r.File)
	}
	if len(r.Steps) == 0 {
		b.WriteString(": no step with a known effect")
	}
	b.WriteString("\n")
	for _, s := range r.Steps {
		fmt.Fprintf(&b, "\n  %s uses %s", s.Path, s.Action)
		if s.Line > 0 {
			fmt.Fprintf(&b, ", line %d", s.Line)
		}
		b.WriteString("\n")
		for _, row := range []struct{ question, answer string }{
			{"What it does", s.Effect},
			{"What names it", s.Identity},
			{"Two at once", s.Together},
			{"Evidence", s.Evidence},
			{"If it stops", s.Interruption},
			{"Limits", s.Limits},
			{"A person", s.Recovery},
		} {
			b.WriteString(wrapped(row.question, row.answer))
		}
	}
	return b.String()
}

// wrapped is one row of a block.
func wrapped(question, answer string) string {
	var b strings.Builder
	line := fmt.Sprintf("    %-*s", indent-4, question)
	empty := true
	for word := range strings.FieldsSeq(answer) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			b.WriteString(line + "\n")
			line, empty = strings.Repeat(" ", indent), true
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	b.WriteString(line + "\n")
	return b.String()
}
