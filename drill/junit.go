package drill

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// WriteJUnit writes verdicts as CI servers read test results: a suite for each
// workflow, a case for each step and fault, and a failure, with its story, for
// what happened twice or was lost. What is unknown and waits for a person is no
// failure; the case says it.
func WriteJUnit(w io.Writer, verdicts ...*Verdict) error {
	all := junitSuites{}
	for _, v := range verdicts {
		all.Suites = append(all.Suites, v.suite())
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Cases    []junitCase `xml:"testcase"`
		Out      *junitText  `xml:"system-out"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Failure *junitFailure `xml:"failure"`
		Out     *junitText    `xml:"system-out"`
	}
	junitFailure struct {
		Type    string `xml:"type,attr"`
		Message string `xml:"message,attr"`
		Text    string `xml:",cdata"`
	}
	junitText struct {
		Text string `xml:",cdata"`
	}
)

func (v *Verdict) suite() junitSuite {
	s := junitSuite{Name: v.Workflow, Out: &junitText{v.conclusion()}}
	broken, promised := v.rows()
	for _, r := range slices.Concat(broken, promised) {
		for _, step := range v.Steps {
			o, ok := r.Cells[step]
			if !ok {
				continue
			}
			c := junitCase{Class: v.Workflow + "." + step, Name: r.Words}
			switch {
			case o.Bad():
				c.Failure = v.failure(r, step, o)
				s.Failures++
			case o == Unknown || o == Held:
				c.Out = &junitText{string(o)}
			}
			s.Cases = append(s.Cases, c)
		}
	}
	s.Tests = len(s.Cases)
	return s
}

// failure tells the story of a cell; with two faults it may be the story of one
// of them.
func (v *Verdict) failure(r Row, step string, o Outcome) *junitFailure {
	f := &junitFailure{Type: string(o), Message: fmt.Sprintf("%s %s: with one of these faults alone it is the same", o.short(), step)}
	i := slices.IndexFunc(v.Stories, func(s Story) bool {
		return withoutItems(s.Step) == step && s.Outcome == o && v.row(s.schedule).Fault == r.Fault
	})
	if i < 0 {
		return f
	}
	s := v.Stories[i]
	f.Message = fmt.Sprintf("%s %s: %s", o.short(), s.Step, s.Why)
	f.Text = inXML(fmt.Sprintf("when: %s\n%s\nagain with: %s\n", s.When, strings.Join(s.Lines, "\n"), v.again(s.Seed)))
	return f
}

// inXML is text without what no XML document can hold, in whichever way it is
// written: a story may quote the errors of the workflow's code.
func inXML(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xfffe || r == 0xffff {
			return utf8.RuneError
		}
		return r
	}, text)
}
