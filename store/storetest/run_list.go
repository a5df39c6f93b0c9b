package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

// testListRuns: every filter, newest first, over more than a page.
func testListRuns(t *testing.T, h Harness) {
	s := openRuns(t, h)
	parent := newToken()
	var runs []semel.Run
	for i := range 230 {
		n := newRun()
		if i%3 == 1 {
			n.Workflow = "shipping"
		}
		if i%5 == 0 {
			n.Parent = parent
		}
		runs = append(runs, start(t, s, n))
	}
	held := claimRuns(t, s)[0]
	held = end(t, s, held, semel.RunNext{State: semel.RunHeld, Reason: "ask anna"})
	h.Shift(time.Second)
	since := now(t, s)
	completed := end(t, s, begin(t, s), semel.RunNext{State: semel.RunCompleted})
	list := func(f semel.RunFilter, matches func(int, semel.Run) bool, also ...semel.ID) {
		t.Helper()
		want := append([]semel.ID{}, also...)
		for i, r := range slices.Backward(runs) {
			if matches(i, r) && (f.Limit == 0 || len(want) < f.Limit) {
				want = append(want, r.ID)
			}
		}
		var got []semel.Run
		for r, err := range s.ListRuns(t.Context(), f) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, r)
		}
		diff(t, fmt.Sprintf("%+v", f), runIDs(got), want)
		if len(got) > 0 {
			diff(t, "a listed run", got[0], loadRun(t, s, got[0].ID))
		}
	}
	none := func(int, semel.Run) bool { return false }
	all := func(int, semel.Run) bool { return true }
	list(semel.RunFilter{}, all, completed.ID)
	list(semel.RunFilter{Limit: 150}, all, completed.ID)
	list(semel.RunFilter{Workflow: "shipping"}, func(i int, _ semel.Run) bool { return i%3 == 1 })
	list(semel.RunFilter{Parent: parent}, func(i int, _ semel.Run) bool { return i%5 == 0 })
	list(semel.RunFilter{Parent: parent, Workflow: "shipping", Limit: 3}, func(i int, _ semel.Run) bool { return i%15 == 10 })
	list(semel.RunFilter{State: semel.RunHeld}, func(_ int, r semel.Run) bool { return r.ID == held.ID })
	list(semel.RunFilter{State: semel.RunCompleted}, none, completed.ID)
	list(semel.RunFilter{State: semel.RunRunning}, func(_ int, r semel.Run) bool { return r.ID != held.ID })
	list(semel.RunFilter{State: semel.RunFailed}, none)
	list(semel.RunFilter{Key: runs[7].Key}, func(i int, _ semel.Run) bool { return i == 7 })
	list(semel.RunFilter{Since: since}, none, completed.ID)
	waiting := end(t, s, claimRuns(t, s)[0], semel.RunNext{State: semel.RunWaiting, Waits: []semel.RunWait{{Path: "w", Kind: semel.WaitEvent, Event: "paid", Match: "a"}}})
	list(semel.RunFilter{Event: "paid", Match: "a"}, none, waiting.ID)
	list(semel.RunFilter{Event: "paid", Match: "b"}, none)
	list(semel.RunFilter{WaitsFor: newToken()}, none)
	list(semel.RunFilter{Since: since.Add(time.Hour)}, none)
	for _, err := range s.ListRuns(t.Context(), semel.RunFilter{}) {
		wantErr(t, "a listing that is left", err, nil)
		break
	}
}

// testNextDue: when the next run of the given workflows, or the next schedule,
// is due.
func testNextDue(t *testing.T, h Harness) {
	s := openRuns(t, h)
	next := func(what string, want time.Time, refs ...semel.WorkflowRef) {
		t.Helper()
		got, err := s.NextDue(t.Context(), refs)
		if err != nil {
			t.Fatal(err)
		}
		diff(t, what, got, want)
	}
	next("nothing", time.Time{}, billing...)
	at := now(t, s)
	for i, n := range []semel.NewRun{{Workflow: workflow, Version: 1}, {Workflow: workflow, Version: 2, Priority: semel.High}, {Workflow: "shipping", Version: 1, Priority: semel.Low}} {
		n.Key, n.At = newKey(), at.Add(time.Duration(3-i)*time.Hour)
		start(t, s, n)
	}
	v2, shipping := semel.WorkflowRef{Name: workflow, Version: 2}, semel.WorkflowRef{Name: "shipping", Version: 1}
	next("one workflow", at.Add(3*time.Hour), billing...)
	next("two versions", at.Add(2*time.Hour), billing[0], v2)
	next("all", at.Add(time.Hour), billing[0], v2, shipping)
	next("none", time.Time{})
	r := begin(t, s)
	next("a lease", r.LeaseUntil, billing...)
	end(t, s, r, semel.RunNext{State: semel.RunCompleted})
	next("after its end", at.Add(3*time.Hour), billing...)
	register(t, s, semel.WorkflowDefinition{Name: "nightly", Version: 1, Schedules: []semel.Schedule{{Name: "n", Cron: "@daily"}}})
	st := schedules(t, s)[0]
	next("a schedule", st.NextAt, billing...)
	fire(t, s, st, semel.Firing{Last: st.Seen, NextAt: at.Add(30 * time.Minute)})
	next("a schedule that was looked at", at.Add(30*time.Minute))
	if err := s.PauseSchedule(t.Context(), "nightly", "n", true, "anna"); err != nil {
		t.Fatal(err)
	}
	next("a paused schedule", time.Time{})
}
