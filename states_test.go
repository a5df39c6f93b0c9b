package semel_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
)

var update = flag.Bool("update", false, "write the generated documentation")

// docs/reference/states.md is generated from the state table:
// go test -run TestStateReference -update .
func TestStateReferenceIsTheStateTable(t *testing.T) {
	const file = "docs/reference/states.md"
	want := stateReference(semel.Transitions())
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("run go test -run TestStateReference -update . : %s", diff)
	}
}

func stateReference(rows []semel.Transition) string {
	var b strings.Builder
	b.WriteString(`# States of an operation

<!-- Generated from transition.go by go test -run TestStateReference -update . -->

Four states, never fewer. Evidence moves an operation from one to another, and nothing else does: no lease, timer,
retention sweep or retry budget. The table is the code: ` + "`Operation.Apply`" + ` reads it from top to bottom, and the first row
that matches decides. Evidence with no row cannot happen; it is refused and changes nothing.

| state | shown as |
|---|---|
`)
	for _, s := range []semel.State{semel.InProgress, semel.Completed, semel.Failed, semel.Unknown} {
		fmt.Fprintf(&b, "| `%s` | %s |\n", s, s.Words())
	}
	b.WriteString("\n```mermaid\nstateDiagram-v2\n")
	type edge struct{ from, to semel.State }
	var order []edge
	label := map[edge][]string{}
	for _, r := range rows {
		e := edge{r.From, r.To}
		if r.From == r.To {
			continue
		}
		if label[e] == nil {
			order = append(order, e)
		}
		if l := label[e]; len(l) == 0 || l[len(l)-1] != string(r.On) {
			label[e] = append(l, string(r.On))
		}
	}
	for _, e := range order {
		from := string(e.from)
		if from == "" {
			from = "[*]"
		}
		fmt.Fprintf(&b, "    %s --> %s: %s\n", from, e.to, strings.Join(label[e], ", "))
	}
	b.WriteString("```\n\n| from | evidence | if | to | incident |\n|---|---|---|---|---|\n")
	for _, r := range rows {
		from, incident := "`"+string(r.From)+"`", ""
		if r.From == "" {
			from = "not claimed"
		}
		if r.Incident() {
			incident = "raised"
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | `%s` | %s |\n", from, r.On, r.When, r.To, incident)
	}
	return b.String()
}
