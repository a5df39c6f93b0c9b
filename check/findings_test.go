package check_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel/check"
	"github.com/semel-dev/semel/connection"
	"github.com/semel-dev/semel/workflowfile"
)

var update = flag.Bool("update", false, "write the explanations of the codes into docs/reference/findings.md")

const findingsPage = "../docs/reference/findings.md"

// example is a fenced block of the page.
type example struct{ info, text string }

var fenced = regexp.MustCompile("(?s)```([a-z ]*)\n(.*?)```\n")

func fencedIn(text string) (all []example) {
	for _, m := range fenced.FindAllStringSubmatch(text, -1) {
		all = append(all, example{m[1], m[2]})
	}
	return all
}

// TestFindingsPage: every code has a section with its explanation, with examples
// that it is found in and nothing else, and with examples that nothing is found
// in.
func TestFindingsPage(t *testing.T) {
	page, err := os.ReadFile(findingsPage)
	if err != nil {
		t.Fatal(err)
	}
	sections := strings.Split(string(page), "\n## ")
	shared := slices.DeleteFunc(fencedIn(sections[0]), func(e example) bool { return e.info != "yaml" })
	if len(shared) != 2 {
		t.Fatalf("%d shared files, want semel.yaml and a workflow", len(shared))
	}
	inGo := onPage(t)
	var codes, want []workflowfile.Code
	for _, r := range check.Rules() {
		want = append(want, r.Code)
	}
	for i, section := range sections[1:] {
		name, rest, _ := strings.Cut(section, "\n")
		code := workflowfile.Code(name)
		codes = append(codes, code)
		head, examples, _ := strings.Cut(rest, "```")
		rule, ok := check.RuleOf(code)
		if !ok {
			t.Errorf("section %s explains no code", name)
			continue
		}
		if explained := "\n" + explanation(rule) + "\n\n"; *update {
			sections[i+1] = name + "\n" + explained + "```" + examples
		} else if diff := cmp.Diff(explained, head); diff != "" {
			t.Errorf("%s: go test ./check -update (-rule +page):\n%s", name, diff)
		}
		count := map[string]int{}
		for _, e := range fencedIn(rest) {
			kind := strings.Fields(e.info)[1]
			count[kind]++
			var expected []workflowfile.Code
			if kind == "failing" {
				expected = []workflowfile.Code{code}
			}
			findings := e.findings(t, shared, inGo)
			var got []workflowfile.Code
			for _, f := range findings {
				if f.Accepted == "" && !slices.Contains(got, f.Code) {
					got = append(got, f.Code)
				}
			}
			if diff := cmp.Diff(expected, got); diff != "" {
				t.Errorf("%s, %s: %v\n%s", name, e.info, findings, e.text)
			}
		}
		if count["failing"] == 0 || count["fixed"] == 0 {
			t.Errorf("%s: %d failing and %d fixed examples, want one of each", name, count["failing"], count["fixed"])
		}
	}
	if diff := cmp.Diff(want, codes); diff != "" {
		t.Errorf("codes (-rules +page):\n%s", diff)
	}
	if *update {
		if err := os.WriteFile(findingsPage, []byte(strings.Join(sections, "\n## ")), 0o644); err != nil { //nolint:gosec // a page
			t.Fatal(err)
		}
	}
}

// findings are what is found in the example.
func (e example) findings(t *testing.T, shared []example, inGo map[string]check.Report) []check.Finding {
	t.Helper()
	if strings.HasPrefix(e.info, "go ") {
		return inGo[e.inGo(t)].Findings
	}
	config, text := shared[0].text, shared[1].text
	switch {
	case strings.HasPrefix(e.text, "connections:"):
		config = e.text
	case strings.HasPrefix(e.text, "steps:"):
		text, _, _ = strings.Cut(text, "steps:")
		text += e.text
	default:
		text = e.text
	}
	checks := workflowfile.Checks{}
	if !strings.HasSuffix(e.info, "alone") {
		c, err := connection.Parse("semel.yaml", []byte(config))
		if wrong, ok := errors.AsType[connection.Errors](err); ok {
			return []check.Finding{check.Problem(workflowfile.Problem{
				File: "semel.yaml", Severity: workflowfile.SeverityError, Code: workflowfile.CodeConfiguration, Message: wrong.Error(),
			})}
		} else if err != nil {
			t.Fatal(err)
		}
		checks = c.Checks()
	}
	d, problems := workflowfile.Parse("order.yaml", []byte(text), checks)
	return check.File(d, problems, checks, check.FileOptions{}).Findings
}

// inGo is the name that the lines of the example have in this package.
func (e example) inGo(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile("findings_go_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(flat(string(source)), "\n"+flat(e.text)+"// end\n")
	before := strings.TrimSuffix(flat(string(source)), "\n"+flat(e.text)+"// end\n"+rest)
	if !ok {
		t.Fatalf("these lines were not compiled:\n%s", e.text)
	}
	return strings.TrimPrefix(before[strings.LastIndexByte(before, '\n')+1:], "// ")
}

// flat is code without its indentation.
func flat(code string) string {
	lines := strings.Split(strings.TrimSpace(code), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "\n") + "\n"
}

// explanation is what the page says of a rule.
func explanation(r check.Rule) string {
	kind := map[workflowfile.Severity]string{workflowfile.SeverityError: "An error", workflowfile.SeverityWarning: "A warning"}[r.Severity]
	if r.Acceptable {
		kind += ", acceptable"
	}
	return wrap(fmt.Sprintf("**%s.** %s %s *%s.*", r.Title, r.Help, r.Fix, kind))
}

// wrap breaks a paragraph as the pages do.
func wrap(text string) string {
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		if column > 0 && column+1+len(word) > 132 {
			b.WriteString("\n")
			column = 0
		} else if column > 0 {
			b.WriteString(" ")
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
