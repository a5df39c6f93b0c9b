package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
)

// TestTree: steps stand under their items and these under their lists, however
// deep and in whatever order they were recorded.
func TestTree(t *testing.T) {
	now := time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)
	done := func(path string) semel.StepRecord {
		return semel.StepRecord{Path: path, Kind: semel.StepValue, Outcome: semel.StepCompleted}
	}
	item := func(path string, outcome semel.StepOutcome) semel.StepRecord {
		return semel.StepRecord{Path: path, Kind: semel.StepItem, Outcome: outcome}
	}
	list := func(path, keys string) semel.StepRecord {
		return semel.StepRecord{Path: path, Kind: semel.StepEach, Outcome: semel.StepOpen, Result: []byte(`{"keys":[` + keys + `]}`)}
	}
	root := treeOf([]semel.StepRecord{
		done("due"), done("bill[b]/parts[x]/charge"), list("bill", `"a","b","c"`), item("bill[a]", semel.StepCompleted), item("bill[b]/parts[x]", semel.StepCompleted),
		list("bill[b]/parts", `"x","y"`), item("bill[c]", semel.StepFailed), done("not a list]"),
	}, []semel.RunWait{{Path: "bill[b]/parts[y]/ask", Kind: semel.WaitPerson, Person: true}}, nil)
	var got []string
	var walk func(n *node, depth int)
	walk = func(n *node, depth int) {
		for _, c := range n.children {
			got = append(got, fmt.Sprintf("%s%s %s: %s", strings.Repeat(" ", depth), c.standing(now).sign(), c.name, c.standing(now)))
			walk(c, depth+1)
		}
	}
	walk(root, 0)
	want := []string{
		"+ due: done", "! bill: needs a person", " + a: done", " ! b: needs a person", "  ! parts: needs a person", "   + x: done", "    + charge: done",
		"   ! y: needs a person", "    ! ask: needs a person", " x c: failed", "+ not a list]: done",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}

// TestFoldedList: of 400 items those that are done are counted, and at most 20
// others are listed.
func TestFoldedList(t *testing.T) {
	now := time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)
	var keys []string
	var steps []semel.StepRecord
	for i := range 400 {
		key := fmt.Sprintf("inv-%03d", i)
		keys = append(keys, `"`+key+`"`)
		switch {
		case i < 370:
			steps = append(steps, semel.StepRecord{Path: "bill[" + key + "]", Kind: semel.StepItem, Outcome: semel.StepCompleted})
		case i < 395:
			steps = append(steps, semel.StepRecord{Path: "bill[" + key + "]", Kind: semel.StepItem, Outcome: semel.StepFailed, Failure: "the card is blocked"})
		}
	}
	steps = append([]semel.StepRecord{{Path: "bill", Kind: semel.StepEach, Outcome: semel.StepOpen, Result: []byte(`{"keys":[` + strings.Join(keys, ",") + `]}`)}}, steps...)
	var out strings.Builder
	sh := &shell{}
	sh.tellRun(&out, &runStory{run: semel.Run{State: semel.RunRunning}, steps: steps, now: now}, false)
	text := out.String()
	for _, want := range []string{"bill", "[370 of 400 done, 25 failed, 5 not begun]", "inv-389", "(and 5 more: --all lists every item)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	for _, other := range []string{"inv-369", "inv-390", "inv-399"} {
		if strings.Contains(text, other) {
			t.Errorf("%q is listed:\n%s", other, text)
		}
	}
}
