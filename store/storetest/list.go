package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
)

func list(t tb, s semel.Store, f semel.Filter) []semel.Operation {
	t.Helper()
	var got []semel.Operation
	for o, err := range s.List(t.Context(), f) {
		if err != nil {
			t.Fatalf("list: %v", err)
		}
		got = append(got, o)
	}
	return got
}

func listIDs(t tb, s semel.Store, f semel.Filter) map[semel.ID]bool {
	t.Helper()
	ids := map[semel.ID]bool{}
	for _, o := range list(t, s, f) {
		ids[o.ID] = true
	}
	return ids
}

func dueIDs(t tb, s semel.Store) map[semel.ID]bool {
	t.Helper()
	due, err := s.Due(t.Context(), 100000)
	if err != nil {
		t.Fatalf("due: %v", err)
	}
	ids := map[semel.ID]bool{}
	for _, o := range due {
		ids[o.ID] = true
	}
	return ids
}

// named maps the operations of a test to its names, to compare listings.
type named map[semel.ID]string

func (n named) of(ops []semel.Operation) []string {
	names := []string{}
	for _, o := range ops {
		names = append(names, n[o.ID])
	}
	return names
}

// incident makes a completed operation with an open incident (M17).
func incident(t tb, s semel.Store, o semel.Operation) semel.Operation {
	t.Helper()
	o = commit(t, s, o, confirmed(1, "ch_1"))
	return commit(t, s, o, semel.Event{Kind: semel.EvContradiction, By: "webhook", Reason: "reported as failed"})
}

// testList: M23, M36. Filters, order and limit.
func testList(t *testing.T, h Harness) {
	s := h.Open(t)
	names := named{}
	add := func(name string, o semel.Operation) semel.Operation {
		names[o.ID] = name
		h.Shift(time.Second)
		return o
	}
	add("completed", commit(t, s, claim(t, s, contract()), confirmed(1, "ch")))
	add("failed", commit(t, s, claim(t, s, contract()), refused(1)))
	add("looks", commit(t, s, claim(t, s, contract()), lost(1)))
	add("person", commit(t, s, claim(t, s, byHand()), lost(1)))
	add("incident", incident(t, s, claim(t, s, contract())))
	add("lapsed looks", claim(t, s, contract()))
	add("lapsed person", claim(t, s, byHand()))
	h.Shift(time.Hour)
	since := now(t, s)
	h.Shift(time.Second)
	elsewhere := fresh(now(t, s), newKey(), contract())
	elsewhere.Scope = "elsewhere"
	add("elsewhere", commit(t, s, elsewhere, claimed(1)))
	last := add("running", claim(t, s, contract()))

	for _, c := range []struct {
		name   string
		filter semel.Filter
		want   []string
	}{
		{"everything", semel.Filter{}, []string{"running", "elsewhere", "lapsed person", "lapsed looks", "incident", "person", "looks", "failed", "completed"}},
		{"limit", semel.Filter{Limit: 2}, []string{"running", "elsewhere"}},
		{"in progress", semel.Filter{State: semel.InProgress}, []string{"running", "elsewhere"}},
		{"unknown", semel.Filter{State: semel.Unknown}, []string{"lapsed person", "lapsed looks", "person", "looks"}},
		{"unknown, limit", semel.Filter{State: semel.Unknown, Limit: 3}, []string{"lapsed person", "lapsed looks", "person"}},
		{"completed", semel.Filter{State: semel.Completed}, []string{"incident", "completed"}},
		{"failed", semel.Filter{State: semel.Failed}, []string{"failed"}},
		{"review", semel.Filter{Review: true}, []string{"lapsed person", "incident", "person"}},
		{"review, limit", semel.Filter{Review: true, Limit: 2}, []string{"lapsed person", "incident"}},
		{"review, completed", semel.Filter{Review: true, State: semel.Completed}, []string{"incident"}},
		{"review, unknown", semel.Filter{Review: true, State: semel.Unknown}, []string{"lapsed person", "person"}},
		{"scope", semel.Filter{Scope: "elsewhere"}, []string{"elsewhere"}},
		{"scope and state", semel.Filter{Scope: scope, State: semel.InProgress}, []string{"running"}},
		{"no such scope", semel.Filter{Scope: "Elsewhere"}, []string{}},
		{"fingerprint", semel.Filter{Fingerprint: last.Fingerprint}, []string{"running"}},
		{"fingerprint and scope", semel.Filter{Fingerprint: last.Fingerprint, Scope: "elsewhere"}, []string{}},
		{"since", semel.Filter{Since: since}, []string{"running", "elsewhere"}},
		{"since the last", semel.Filter{Since: last.CreatedAt}, []string{"running"}},
		{"since tomorrow", semel.Filter{Since: since.Add(24 * time.Hour)}, []string{}},
	} {
		if diff := cmp.Diff(c.want, names.of(list(t, h.Open(t), c.filter))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// testManyPages: a listing longer than a page is complete and in order, also
// while operations come and go, and can be left at any time.
func testManyPages(t *testing.T, h Harness) {
	s := h.Open(t)
	const n = 350
	var want []semel.ID
	for range n {
		unhurried := claimed(1)
		unhurried.Lease = time.Hour // a slow machine must not let it lapse
		want = append(want, commit(t, s, fresh(now(t, s), newKey(), contract()), unhurried).ID)
	}
	slices.Reverse(want)
	for name, f := range map[string]semel.Filter{"all": {}, "in progress": {State: semel.InProgress}, "scope": {Scope: scope}} {
		var got []semel.ID
		for o, err := range s.List(t.Context(), f) {
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, o.ID); len(got)%100 == 50 {
				fresh := fresh(now(t, s), newKey(), contract())
				fresh.Scope = "meanwhile"
				commit(t, s, fresh, claimed(1))
			}
		}
		got = slices.DeleteFunc(got, func(id semel.ID) bool { return !slices.Contains(want, id) })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, err := range s.List(t.Context(), semel.Filter{}) {
		if err != nil {
			t.Error(err)
		}
		break
	}
}

// testDue: M1, M21. What is due, longest overdue first, up to the limit; what
// waits for a person never is (law 4).
func testDue(t *testing.T, h Harness) {
	s := h.Open(t)
	names := named{}
	start := now(t, s)
	for i, lease := range []time.Duration{4, 2, 3} {
		ev := claimed(1)
		ev.Lease = lease * time.Hour
		names[commit(t, s, fresh(now(t, s), newKey(), contract()), ev).ID] = fmt.Sprintf("lease %d", i)
	}
	o := claim(t, s, contract())
	names[o.ID] = "looks"
	o = commit(t, s, o, lost(1))
	names[commit(t, s, claim(t, s, byHand()), lost(1)).ID] = "person"
	names[incident(t, s, claim(t, s, contract())).ID] = "incident"
	names[commit(t, s, claim(t, s, contract()), refused(1)).ID] = "failed"
	for _, step := range []struct {
		at    time.Duration
		limit int
		want  []string
	}{
		{0, 10, []string{}},
		{o.CheckAt.Sub(start) + time.Second, 10, []string{"looks"}},
		{2*time.Hour + time.Minute, 10, []string{"looks", "lease 1"}},
		{5 * time.Hour, 10, []string{"looks", "lease 1", "lease 2", "lease 0"}},
		{6 * time.Hour, 3, []string{"looks", "lease 1", "lease 2"}},
		{1000000 * time.Hour, 10, []string{"looks", "lease 1", "lease 2", "lease 0"}},
	} {
		if d := start.Add(step.at).Sub(now(t, s)); d > 0 {
			h.Shift(d)
		}
		due, err := h.Open(t).Due(t.Context(), step.limit)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, names.of(due)); diff != "" {
			t.Errorf("after %v (-want +got):\n%s", step.at, diff)
		}
	}
}
