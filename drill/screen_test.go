package drill_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/drill"
)

// A table of many steps with long names fits the terminal, and names them all.
func TestTableFitsTheTerminal(t *testing.T) {
	v := drill.Verdict{Workflow: "long", Schedules: 31, Rows: []drill.Row{
		{Fault: drill.AnswerLost, Words: "answer lost", Schedules: 31, Cells: map[string]drill.Outcome{}},
	}}
	for i := range 15 {
		step := fmt.Sprintf("for_each_customer/and_%d/send_the_reminder_by_post", i)
		v.Steps = append(v.Steps, step)
		v.Rows[0].Cells[step] = drill.Once
	}
	var b strings.Builder
	if _, err := v.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > 100 {
			t.Errorf("too long: %s", line)
		}
		if strings.HasSuffix(line, " \n") {
			t.Errorf("a space at the end: %q", line)
		}
	}
	for i := range 15 {
		if !strings.Contains(b.String(), fmt.Sprintf("and_%d/", i)) {
			t.Errorf("step %d is not named in\n%s", i, b.String())
		}
	}
	if n := strings.Count(b.String(), "WHAT BREAKS"); n < 2 {
		t.Errorf("%d tables, want several:\n%s", n, b.String())
	}
}

// CI servers read the verdict: one suite for each workflow, one case for each
// fault and step, and the story in a failure.
func TestJUnitHoldsTheStories(t *testing.T) {
	naive := naively(t, naiveShop(), drill.Options{Pairs: 50})
	naive.Command = "semel drill shop.yaml --naive --replay"
	kept := naively(t, do(action("label", tag)).Definition(), drill.Options{Pairs: -1})
	var b bytes.Buffer
	if err := drill.WriteJUnit(&b, naive, kept); err != nil {
		t.Fatal(err)
	}
	var got struct {
		XMLName xml.Name `xml:"testsuites"`
		Suites  []struct {
			Name     string `xml:"name,attr"`
			Tests    int    `xml:"tests,attr"`
			Failures int    `xml:"failures,attr"`
			Cases    []struct {
				Class   string `xml:"classname,attr"`
				Name    string `xml:"name,attr"`
				Failure *struct {
					Type    string `xml:"type,attr"`
					Message string `xml:"message,attr"`
					Text    string `xml:",chardata"`
				} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatalf("%v in\n%s", err, b.String())
	}
	if len(got.Suites) != 2 {
		t.Fatalf("%d suites, want 2", len(got.Suites))
	}
	for i, v := range []*drill.Verdict{naive, kept} {
		s, cells, bad, told := got.Suites[i], 0, 0, 0
		for _, r := range v.Rows {
			cells += len(r.Cells)
			for _, o := range r.Cells {
				if o.Bad() {
					bad++
				}
			}
		}
		for _, c := range s.Cases {
			if c.Failure != nil && strings.Contains(c.Failure.Text, "again with: semel drill shop.yaml --naive --replay ") {
				told++
			}
		}
		if s.Name != v.Workflow || s.Tests != cells || len(s.Cases) != cells || s.Failures != bad {
			t.Errorf("suite %s of %d tests (%d cases), %d failures; want %s of %d, %d", s.Name, s.Tests, len(s.Cases), s.Failures, v.Workflow, cells, bad)
		}
		if told != len(v.Stories) {
			t.Errorf("%s: %d failures tell a story, want %d", s.Name, told, len(v.Stories))
		}
	}
	found := false
	for _, c := range got.Suites[0].Cases {
		found = found || c.Class == "shop.charge" && c.Name == "answer lost" && c.Failure != nil &&
			c.Failure.Type == "twice" && c.Failure.Message == "TWICE charge: it happened 2 times"
	}
	if !found {
		t.Errorf("no failure of charge in\n%s", b.String())
	}
}

// A story quotes the errors of the workflow's code, which no XML need be able to
// hold.
func TestJUnitIsXMLWhateverIsQuoted(t *testing.T) {
	shop := semel.Workflow[order]{Name: "shop", Func: func(ctx semel.Context, o order) error {
		if _, err := semel.Do(ctx, action("note", bare), o); err != nil {
			return fmt.Errorf("\x1b[31mfailed\x00 ]]> \xff: %w", err)
		}
		return nil
	}}
	v := naively(t, shop.Definition(), drill.Options{Pairs: -1})
	var b bytes.Buffer
	if err := drill.WriteJUnit(&b, v); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "[31mfailed") {
		t.Errorf("no story quotes the error:\n%s", b.String())
	}
	for dec := xml.NewDecoder(&b); ; {
		if _, err := dec.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// A schedule that breaks nothing is no story.
func TestReplayOfNothingIsRefused(t *testing.T) {
	for _, text := range []string{"answer-lost@999", "answer-lost@1"} {
		s, err := drill.ParseSchedule(text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = drill.Run(t.Context(), do(action("charge", keyed)).Definition(), drill.Options{Input: order{ID: "o1"}, Replay: s})
		if err == nil || !strings.Contains(err.Error(), text+": nothing breaks: there are ") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Who waits hears how far the drill is.
func TestProgressCountsEverySchedule(t *testing.T) {
	var heard []int
	v := naively(t, naiveShop(), drill.Options{Pairs: 10, Progress: func(done, total int) { heard = append(heard, done, total) }})
	if len(heard) != 2*v.Schedules || heard[len(heard)-2] != v.Schedules || heard[len(heard)-1] != v.Schedules {
		t.Errorf("heard %v of %d schedules", heard, v.Schedules)
	}
}

// The reference explains every fault.
func TestEveryFaultIsExplained(t *testing.T) {
	source, err := os.ReadFile("fault.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/reference/drilling.md")
	if err != nil {
		t.Fatal(err)
	}
	faults := regexp.MustCompile(` Fault = "([a-z-]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(faults) == 0 {
		t.Error("no faults found")
	}
	for _, m := range faults {
		if !strings.Contains(string(page), "\n| `"+m[1]+"` | ") {
			t.Errorf("docs/reference/drilling.md does not explain %s", m[1])
		}
	}
}
