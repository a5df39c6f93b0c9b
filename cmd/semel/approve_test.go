package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/semel-dev/semel"
)

// TestApproveAsks: whoever approves at a terminal sees the exact request, and
// anything but y decides nothing.
func TestApproveAsks(t *testing.T) {
	stores(t, func(t *testing.T, db string) {
		dir := t.TempDir()
		if err := pass(db, bank{}, 0); err != nil {
			t.Fatal(err)
		}
		if code, _, stderr := runSemel(t, dir, db, "run", "start", "article", "--key", "art", "--field", "id=art-1"); code != exitCompleted {
			t.Fatal(stderr)
		}
		if err := pass(db, bank{}, 0); err != nil {
			t.Fatal(err)
		}
		sh := &shell{err: new(bytes.Buffer), getenv: func(string) string { return "" }, db: db, output: "table"}
		k, err := sh.openKeeper(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		var asked semel.Approval
		for asked, err = range k.Approvals(t.Context(), semel.ID{}, semel.ApprovalPending) {
			if err != nil {
				t.Fatal(err)
			}
		}
		answer := func(line string) (shown string, state semel.ApprovalState, err error) {
			var out bytes.Buffer
			sh.in, sh.out = strings.NewReader(line), &out
			err = sh.decide(t.Context(), asked.ID, semel.Decision{State: semel.ApprovalGiven, By: "anna"}, "")
			a, loadErr := k.Approval(t.Context(), asked.ID)
			if loadErr != nil {
				t.Fatal(loadErr)
			}
			return out.String(), a.State, err
		}
		for _, no := range []string{"", "\n", "n\n", "yy\n"} {
			shown, state, err := answer(no)
			if codeOf(err) != exitRefused || state != semel.ApprovalPending || !strings.Contains(shown, `"number": 9007199254740993`) {
				t.Errorf("answer %q: it is %s, error %v, shown:\n%s", no, state, err, shown)
			}
		}
		if shown, state, err := answer("y\n"); err != nil || state != semel.ApprovalGiven {
			t.Errorf("answer y: it is %s, error %v, shown:\n%s", state, err, shown)
		}
	})
}
