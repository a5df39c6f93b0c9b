package workflowfile_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel/workflowfile"
)

func parsed(t testing.TB, text string) *workflowfile.Definition {
	t.Helper()
	d, problems := workflowfile.Parse("d.yaml", []byte(text), checks)
	if d == nil {
		t.Fatalf("%s\n%s", text, lines(problems))
	}
	return d
}

const before = `name: d
version: 1
owner: ops
on: {http: {}}
inputs:
  day: {type: string, description: the day}
steps:
  - id: a
    uses: payments.charge
    with: {amount: 1, to: {name: x, tags: [a, b]}}
  - id: b
    each: {in: "[1]", as: x, key: x}
    steps:
      - id: c
        uses: payments.charge
        effect: {key: "k-${{ x }}"}
  - {id: d, sleep: {for: 1s}}
`

// TestDigestIgnoresHowItIsWritten: neither layout nor what a run does not
// depend on counts.
func TestDigestIgnoresHowItIsWritten(t *testing.T) {
	want := parsed(t, before)
	for name, text := range map[string]string{
		"comments":  strings.ReplaceAll(before, "version: 1", "# a comment\nversion: 1 # one"),
		"layout":    strings.ReplaceAll(before, "  - {id: d, sleep: {for: 1s}}", "  - sleep:\n      for: '1s'\n    id: \"d\""),
		"line ends": "\ufeff" + strings.ReplaceAll(before, "\n", "\r\n"),
		"owner":     strings.ReplaceAll(before, "owner: ops", "owner: sales"),
		"words":     strings.ReplaceAll(before, "the day", "the very day"),
		"accepted":  strings.ReplaceAll(before, "id: d, sleep", "id: d, accept: [{code: no_owner, reason: x}], sleep"),
		"triggers":  strings.ReplaceAll(before, "http: {}", "event: {name: x}"),
	} {
		got := parsed(t, text)
		if diff := workflowfile.Diff(want, got); got.Digest != want.Digest || len(diff) > 0 {
			t.Errorf("%s: the digest differs: %q", name, diff)
		}
	}
}

func TestDiff(t *testing.T) {
	old := parsed(t, before)
	tests := map[string]struct {
		from, to string
		want     []string
	}{
		"version":       {"version: 1", "version: 2", []string{"version changed from 1 to 2"}},
		"name":          {"name: d", "name: e", []string{`name changed from "d" to "e"`}},
		"type of input": {"type: string", "type: integer", []string{"input day: type changed"}},
		"new input":     {"inputs:\n", "inputs:\n  x: {type: string}\n", []string{"input x added"}},
		"literal":       {"amount: 1", "amount: 1.0", []string{"step a: with.amount changed"}},
		"text":          {"amount: 1", `amount: "1"`, []string{"step a: with.amount changed"}},
		"deep":          {"name: x", "name: z", []string{"step a: with.to.name changed"}},
		"list":          {"[a, b]", "[b, a]", []string{"step a: with.to.tags changed"}},
		"member gone":   {", tags: [a, b]", "", []string{"step a: with.to.tags removed"}},
		"inner key":     {"k-${{ x }}", "c-${{ x }}", []string{"step b/c: effect.key changed"}},
		"member added":  {"key: x}", "key: x, at_once: 2}", []string{"step b: each.at_once added"}},
		"renamed":       {"{id: d,", "{id: e,", []string{"step d removed", "step e added"}},
		"on_failure":    {"name: d\n", "name: d\non_failure: [{id: z, sleep: {for: 1s}}]\n", []string{"step on_failure/z added"}},
		"empty members": {"amount: 1", "amount: 1, more: {}", []string{"step a: with.more added"}},
	}
	for name, test := range tests {
		changed := parsed(t, strings.Replace(before, test.from, test.to, 1))
		if diff := cmp.Diff(test.want, workflowfile.Diff(old, changed)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if old.Digest == changed.Digest {
			t.Errorf("%s: the digest is the same", name)
		}
	}
	moved := strings.Replace(before, "  - {id: d, sleep: {for: 1s}}\n", "", 1)
	moved = strings.Replace(moved, "steps:\n  - id: a", "steps:\n  - {id: d, sleep: {for: 1s}}\n  - id: a", 1)
	if diff := cmp.Diff([]string{"the steps changed their order"}, workflowfile.Diff(old, parsed(t, moved))); diff != "" {
		t.Errorf("moved (-want +got):\n%s", diff)
	}
}
