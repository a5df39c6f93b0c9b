package docs_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/connection"
	httpdest "github.com/semel-dev/semel/destination/http"
	"github.com/semel-dev/semel/workflowfile"
)

// TestGoBlocksStandInGoFiles: what a page shows was compiled.
func TestGoBlocksStandInGoFiles(t *testing.T) {
	var compiled strings.Builder
	for _, pattern := range []string{"../*.go", "../examples/*/*.go", "../semeltest/*.go", "*.go", "guide/*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			compiled.WriteString(flat(read(t, file)))
		}
	}
	for _, path := range pages(t) {
		for _, b := range blocks(read(t, path)) {
			if b.info == "go" && !strings.Contains(compiled.String(), flat(b.text)) {
				t.Errorf("%s:%d: this is in no Go file of the repository:\n%s", path, b.line, b.text)
			}
		}
	}
}

// flat is code without its indentation.
func flat(code string) string {
	lines := strings.Split(strings.TrimSpace(code), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "\n") + "\n"
}

// TestYAMLBlocksAreRead: a configuration or a profile that a page shows is one.
func TestYAMLBlocksAreRead(t *testing.T) {
	for _, path := range pages(t) {
		for _, b := range blocks(read(t, path)) {
			if b.info != "yaml" {
				continue
			}
			var err error
			switch {
			case strings.Contains(b.text, "\nsteps:"):
				for _, problem := range workflowProblems(b.text) {
					t.Errorf("%s:%d: %v", path, b.line, problem)
				}
			case strings.HasPrefix(b.text, "name:"):
				_, err = httpdest.ParseProfile([]byte(b.text))
			default:
				_, err = connection.Parse("semel.yaml", []byte(b.text))
			}
			if err != nil {
				t.Errorf("%s:%d: %v", path, b.line, err)
			}
		}
	}
}

// workflowProblems are those of a workflow, without semel.yaml, and with the
// texts of the billing example.
func workflowProblems(text string) []workflowfile.Problem {
	_, problems := workflowfile.Parse("../examples/billing/page.yaml", []byte(text), workflowfile.Checks{})
	return slices.DeleteFunc(problems, func(p workflowfile.Problem) bool { return p.Code == workflowfile.CodeNotChecked })
}

var link = regexp.MustCompile(`\]\(([^)#]+)(#[^)]*)?\)`)

// TestLinksLeadSomewhere checks the links of all pages within the repository.
func TestLinksLeadSomewhere(t *testing.T) {
	all := append(pages(t), "../CONTRIBUTING.md", "../CHANGELOG.md")
	for _, pattern := range []string{"design/*.md", "../examples/*.md", "../examples/*/*.md", "../bench/*.md", "../cases/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		all = append(all, found...)
	}
	for _, path := range all {
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(read(t, path), "\n"), -1) {
			if strings.HasPrefix(m[1], "http") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}

// TestEveryFlagIsExplained: the reference has a section for each command, and
// names each of its flags there.
func TestEveryFlagIsExplained(t *testing.T) {
	page := read(t, "reference/commands.md")
	section := func(name string) string {
		_, text, ok := strings.Cut(page, "\n## "+name+"\n")
		if !ok {
			t.Errorf("reference/commands.md has no section %q", name)
		}
		text, _, _ = strings.Cut(text, "\n## ")
		return text
	}
	bin := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "../cmd/semel").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	help := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "semel"), append(args, "--help")...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	flags := regexp.MustCompile(`(?m)^ +(?:-h, )?--([a-z-]+)`)
	children := regexp.MustCompile(`(?m)^  ([a-z]+)  +[A-Z]`)
	_, global, _ := strings.Cut(help("do"), "Global Flags:")
	for _, m := range flags.FindAllStringSubmatch(global+"\n      --help", -1) {
		if !strings.Contains(section("Global flags"), "`--"+m[1]+"`") {
			t.Errorf("the global flag --%s is not explained", m[1])
		}
	}
	var visit func(section string, args []string)
	visit = func(text string, args []string) {
		shown := help(args...)
		_, list, _ := strings.Cut(shown, "Available Commands:")
		list, _, _ = strings.Cut(list, "\n\n")
		for _, m := range children.FindAllStringSubmatch(list, -1) {
			if m[1] == "help" {
				continue
			}
			text := text
			if len(args) == 0 {
				text = section("semel " + m[1])
			} else if !strings.Contains(text, "semel "+strings.Join(append(args, m[1]), " ")) {
				t.Errorf("semel %s %s is not explained", strings.Join(args, " "), m[1])
			}
			visit(text, append(slices.Clone(args), m[1]))
		}
		if len(args) == 0 {
			return
		}
		_, list, _ = strings.Cut(shown, "\nFlags:")
		list, _, _ = strings.Cut(list, "Global Flags:")
		for _, m := range flags.FindAllStringSubmatch(list, -1) {
			if m[1] != "help" && !strings.Contains(text, "--"+m[1]+"`") && !strings.Contains(text, "`--"+m[1]) && !strings.Contains(text, "--"+m[1]+" ") {
				t.Errorf("semel %s --%s is not explained", strings.Join(args, " "), m[1])
			}
		}
	}
	visit("", nil)
}

// TestWorkedExamplesAreRight computes the examples of reference/contract.md.
func TestWorkedExamplesAreRight(t *testing.T) {
	claimed := time.Date(2026, 11, 29, 2, 0, 0, 0, time.UTC)
	after := func(c semel.Contract, more ...semel.Event) semel.Operation {
		o, err := semel.Replay(semel.Identity{Scope: "s", Key: "k", Contract: c}, append([]semel.Event{
			{Kind: semel.EvClaimed, Attempt: 1, At: claimed, Lease: 10 * time.Second, SendWithin: 10 * time.Second},
		}, more...))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	got := map[string]string{}
	for name, window := range map[string]time.Duration{"window of a day": 24 * time.Hour, "window of 10 s": 10 * time.Second} {
		c := semel.Contract{Protection: semel.Keyed, Window: window, Timeout: 10 * time.Second}
		if window < time.Minute {
			c.Timeout = time.Second
		}
		o := after(c)
		got[name] = o.WindowEnd(c).Format("02 15:04:05")
	}
	c := semel.Contract{Protection: semel.Lookup, CanLookUp: true, AbsenceIsProof: true, MaxProcessing: 30 * time.Second, VisibleAfter: 2 * time.Minute}
	lost := after(c, semel.Event{Kind: semel.EvLost, Attempt: 1, At: claimed.Add(3 * time.Second), Closed: true})
	killed := after(c, semel.Event{Kind: semel.EvLapsed, Attempt: 1, At: claimed.Add(10 * time.Second)})
	for name, o := range map[string]semel.Operation{"lost": lost, "killed": killed} {
		at, _ := o.ProofAt(c)
		got[name] = at.Format("02 15:04:05")
	}
	want := map[string]string{
		"window of a day": "30 01:54:50", "window of 10 s": "29 02:00:08", "lost": "29 02:02:34", "killed": "29 02:02:51",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-page +computed):\n%s", diff)
	}
	page := strings.ReplaceAll(read(t, "reference/contract.md"), "\n", " ")
	for _, shown := range []string{
		"10 s = 01:54:50.", "resends end 8 s after the claim", "+ 1 s = 02:02:34.", "+ 1 s = 02:02:51.",
	} {
		if !strings.Contains(page, shown) {
			t.Errorf("reference/contract.md does not say %q", shown)
		}
	}
}

// TestReadmeShowsTheDemo: what the demo prints, up to the list of commands, is
// that of its golden file.
func TestReadmeShowsTheDemo(t *testing.T) {
	const readme, start, end = "../README.md", "<!-- demo:start -->\n", "<!-- demo:end -->\n"
	screen := read(t, "../demo/testdata/screen.golden")
	_, people, ok := strings.Cut(screen, "  Declared: ")
	if !ok {
		t.Fatal("the screen does not end as expected")
	}
	_, people, _ = strings.Cut(people, "\n\n")
	important, _, ok := strings.Cut(screen, "\n\n"+people)
	if !ok {
		t.Fatal("the screen does not end as expected")
	}
	first, _, _ := strings.Cut(people, "\n")
	want := "```text\n" + important + "\n\n" + first + "\n      ...\n```\n"
	text := read(t, readme)
	before, rest, ok1 := strings.Cut(text, start)
	got, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no %s... %s", readme, start, end)
	}
	if *update && got != want {
		if err := os.WriteFile(readme, []byte(before+start+want+end+after), 0o644); err != nil { //nolint:gosec // a page
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("go test ./docs -run Readme -update (-golden +README):\n%s", diff)
	}
}

// TestDesignIndexIsComplete: every decision is listed, with its own title.
func TestDesignIndexIsComplete(t *testing.T) {
	files, err := filepath.Glob("design/0*.md")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	seen := map[string]string{}
	for _, file := range files {
		base := filepath.Base(file)
		title, _, _ := strings.Cut(read(t, file), "\n")
		number, name, ok := strings.Cut(strings.TrimPrefix(title, "# "), ". ")
		if !ok || number != base[:4] {
			t.Errorf("%s: the title is %q, want # %s. ...", file, title, base[:4])
		}
		if other, twice := seen[number]; twice {
			t.Errorf("%s and %s have one number", other, file)
		}
		seen[number] = file
		fmt.Fprintf(&want, "| [%s](%s) | %s |\n", base[:4], base, name)
	}
	_, got, _ := strings.Cut(read(t, "design/README.md"), "|---|---|\n")
	if diff := cmp.Diff(want.String(), got); diff != "" {
		t.Errorf("design/README.md (-pages +index):\n%s", diff)
	}
}

var citedTest = regexp.MustCompile("`([a-z/]+)\\.(Test[A-Za-z0-9]+)`")

// TestGuaranteesCiteTests: each guarantee, and each page of the reference, names
// tests, and they exist.
func TestGuaranteesCiteTests(t *testing.T) {
	exists := func(pkg, name string) bool {
		dir := "../" + pkg
		if pkg == "semel" {
			dir = ".."
		}
		files, err := filepath.Glob(dir + "/*_test.go")
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(files, func(f string) bool { return strings.Contains(read(t, f), "\nfunc "+name+"(") })
	}
	for line := range strings.Lines(read(t, "reference/guarantees.md")) {
		if strings.HasPrefix(line, "| **") && !citedTest.MatchString(line) {
			t.Errorf("no test is cited: %s", line)
		}
	}
	for _, path := range pages(t) {
		cited := citedTest.FindAllStringSubmatch(read(t, path), -1)
		if len(cited) == 0 && strings.HasPrefix(path, "reference/") {
			t.Errorf("%s cites no test", path)
		}
		for _, m := range cited {
			if !exists(m[1], m[2]) {
				t.Errorf("%s: %s.%s is no test", path, m[1], m[2])
			}
		}
	}
}

// TestEveryMemberIsExplained: a member of what commands and the server print as
// JSON is named by a page.
func TestEveryMemberIsExplained(t *testing.T) {
	var text strings.Builder
	for _, page := range []string{"commands", "configuration", "evidence", "drilling"} {
		text.WriteString(read(t, "reference/"+page+".md"))
	}
	member := regexp.MustCompile(`json:"([a-z0-9_]+)[,"]`)
	for _, pattern := range []string{"../cmd/semel/*.go", "../server/*.go", "../drill/verdict.go", "../check/report.go", "../check/finding.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, m := range member.FindAllStringSubmatch(read(t, file), -1) {
				if shown := text.String(); !strings.Contains(shown, "`"+m[1]+"`") && !strings.Contains(shown, `"`+m[1]+`":`) {
					t.Errorf("%s: no page explains the member %q", file, m[1])
				}
			}
		}
	}
}
