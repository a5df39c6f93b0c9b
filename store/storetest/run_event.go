package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

func take(t tb, s RunStore, r semel.Run, path, match string, until time.Time) (semel.StepRecord, error) {
	t.Helper()
	return s.TakeEvent(t.Context(), semel.EventClaim{RunFence: fence(r), Path: path, Workflow: r.Workflow, Name: "paid", Match: match, Until: until})
}

// wantTaken checks that the record holds the event.
func wantTaken(t tb, what string, rec semel.StepRecord, err error, e semel.InboxEvent) {
	t.Helper()
	if err != nil || rec.Outcome != semel.StepCompleted || rec.Kind != semel.StepEvent || rec.What != e.Name+" "+e.Match || rec.At.IsZero() {
		t.Fatalf("%s: record %+v, error %v", what, rec, err)
	}
	var got semel.InboxEvent
	if err := json.Unmarshal(rec.Result, &got); err != nil {
		t.Fatalf("read: %v", err)
	}
	if got.At.IsZero() {
		t.Fatalf("%s: the event has no time", what)
	}
	got.At = e.At
	diff(t, what, got, e)
}

// testRunEvents: an event serves one wait of a workflow, oldest first, whether
// it came before the wait or after; another workflow takes it, too. A step
// keeps what it took.
func testRunEvents(t *testing.T, h Harness) {
	s, other := openRuns(t, h), openRuns(t, h)
	first, second := event("1", "a"), event("2", "a")
	r := begin(t, s)
	_, err := take(t, s, r, "w", "a", time.Time{})
	wantErr(t, "no event", err, semel.ErrNotFound)
	send(t, s, event("0", "b"))
	_, err = take(t, s, r, "w", "a", time.Time{})
	wantErr(t, "an event with another match", err, semel.ErrNotFound)
	send(t, s, first)
	h.Shift(time.Millisecond)
	send(t, other, second)
	rec, err := take(t, other, r, "w", "a", time.Time{})
	wantTaken(t, "the first", rec, err, first)
	steps := stepsOf(t, s, r.ID)
	diff(t, "the record", steps, []semel.StepRecord{rec})
	for range 2 {
		again, err := take(t, s, r, "w", "a", now(t, s))
		if err != nil {
			t.Fatal(err)
		}
		diff(t, "the same step again", again, rec)
	}
	q := begin(t, s)
	rec, err = take(t, s, q, "w", "a", time.Time{})
	wantTaken(t, "the second, by another run", rec, err, second)
	_, err = take(t, s, q, "w2", "a", time.Time{})
	wantErr(t, "all are taken", err, semel.ErrNotFound)
	n := newRun()
	n.Workflow = "shipping"
	x, _, err := s.Start(t.Context(), n, &worker)
	if err != nil {
		t.Fatal(err)
	}
	rec, err = take(t, s, x, "w", "a", time.Time{})
	wantTaken(t, "the first, by another workflow", rec, err, first)

	// A duplicate changes nothing, whatever it says.
	dup := event("1", "a")
	dup.Data = []byte(`"other"`)
	if existing, err := s.Send(t.Context(), dup); err != nil || !existing {
		t.Fatalf("a duplicate: existing %v, error %v", existing, err)
	}
	_, err = take(t, s, q, "w2", "a", time.Time{})
	wantErr(t, "after a duplicate", err, semel.ErrNotFound)
	same := event("1", "a")
	same.Name = "shipped"
	send(t, s, same) // an ID is of its name
	bad := event("", "a")
	if _, err := s.Send(t.Context(), bad); err == nil {
		t.Fatal("an event without an ID was sent")
	}

	// A run that waits is due when the event comes, and when it had come.
	q = suspend(t, s, q, semel.RunWait{Path: "w2", Kind: semel.WaitEvent, Event: "paid", Match: "a"})
	wantDue(t, s, "all events are taken", q.ID, false)
	send(t, other, event("3", "c"))
	send(t, other, func() semel.InboxEvent { e := event("3", "a"); e.Name = "shipped"; return e }())
	wantDue(t, s, "others came", q.ID, false)
	send(t, other, event("4", "a"))
	wantDue(t, s, "it came", q.ID, true)
	q = claimRun(t, s, q.ID)
	q = suspend(t, s, q, semel.RunWait{Path: "w2", Kind: semel.WaitEvent, Event: "paid", Match: "a"})
	wantDue(t, s, "it had come", q.ID, true)

	// An empty match is one of its own.
	empty := semel.InboxEvent{ID: "5", Name: "paid"}
	send(t, s, empty)
	q = claimRun(t, s, q.ID)
	rec, err = take(t, s, q, "w3", "", time.Time{})
	wantTaken(t, "without a match and data", rec, err, empty)
}

// testEventLimit: an event counts up to its limit and not after; a late one
// stays for others.
func testEventLimit(t *testing.T, h Harness) {
	s := openRuns(t, h)
	r := begin(t, s)
	send(t, s, event("1", "a"))
	var at time.Time
	for e, err := range s.Inbox(t.Context(), semel.EventFilter{ID: "1"}) {
		if err != nil {
			t.Fatal(err)
		}
		at = e.At
	}
	h.Shift(10 * time.Millisecond)
	rec, err := take(t, s, r, "before", "a", at.Add(-time.Millisecond))
	if err != nil || rec.Outcome != semel.StepTimedOut || rec.What != "paid a" || len(rec.Result) != 0 {
		t.Fatalf("an event after the limit: record %+v, error %v", rec, err)
	}
	diff(t, "the record", stepsOf(t, s, r.ID), []semel.StepRecord{rec})
	again, err := take(t, s, r, "before", "a", time.Time{})
	if err != nil || again.Outcome != semel.StepTimedOut {
		t.Fatalf("what timed out gets an event later: %+v, error %v", again, err)
	}
	rec, err = take(t, s, r, "at", "a", at)
	wantTaken(t, "an event at the limit", rec, err, event("1", "a"))
	until := now(t, s).Add(time.Minute)
	_, err = take(t, s, r, "after", "a", until)
	wantErr(t, "before the limit", err, semel.ErrNotFound)
	h.Shift(30 * time.Second)
	if _, err := s.RenewRuns(t.Context(), []semel.RunFence{fence(r)}, time.Hour); err != nil {
		t.Fatal(err)
	}
	h.Shift(31 * time.Second)
	late := event("2", "a")
	send(t, s, late)
	rec, err = take(t, s, r, "after", "a", until)
	if err != nil || rec.Outcome != semel.StepTimedOut {
		t.Fatalf("only a late event: record %+v, error %v", rec, err)
	}
	rec, err = take(t, s, r, "other", "a", time.Time{})
	wantTaken(t, "the late event, by a step that takes it", rec, err, late)
	waits := suspend(t, s, r, semel.RunWait{Path: "again", Kind: semel.WaitEvent, Event: "paid", Match: "z", Until: now(t, s).Add(time.Hour)})
	wantDue(t, s, "before the limit", waits.ID, false)
}

// testEventFence: many steps that want the only event: exactly one gets it.
func testEventFence(t *testing.T, h Harness) {
	stores := []RunStore{openRuns(t, h), openRuns(t, h)}
	var runs []semel.Run
	for range 8 {
		runs = append(runs, begin(t, stores[0]))
	}
	for i := range 6 {
		e := event(fmt.Sprint(i), "a")
		send(t, stores[0], e)
		var mu sync.Mutex
		taken := 0
		var wg sync.WaitGroup
		for k, r := range runs {
			wg.Go(func() {
				rec, err := stores[k%2].TakeEvent(t.Context(), semel.EventClaim{
					RunFence: fence(r), Path: fmt.Sprint("w", i), Workflow: workflow, Name: "paid", Match: "a",
				})
				mu.Lock()
				defer mu.Unlock()
				if err == nil && rec.Outcome == semel.StepCompleted {
					taken++
				} else if !errors.Is(err, semel.ErrNotFound) {
					t.Errorf("take: %+v, error %v", rec, err)
				}
			})
		}
		wg.Wait()
		if taken != 1 {
			t.Fatalf("%d steps took the event, want 1", taken)
		}
	}
}

// testEventStarts: an event starts one run of each workflow that asks for it,
// of its newest version.
func testEventStarts(t *testing.T, h Harness) {
	s, other := openRuns(t, h), openRuns(t, h)
	register(t, s, semel.WorkflowDefinition{Name: workflow, Version: 3, Digest: "d3", Events: []string{"paid", "refunded"}},
		semel.WorkflowDefinition{Name: "shipping", Version: 1, Events: []string{"paid"}},
		semel.WorkflowDefinition{Name: "other", Version: 1, Events: []string{"else"}})
	e := event("7", "a")
	send(t, other, e)
	var started []semel.ID
	for _, c := range []semel.Run{{Workflow: workflow, Version: 3, Definition: "d3"}, {Workflow: "shipping", Version: 1}} {
		r, err := s.FindRun(t.Context(), c.Workflow, semel.EventKey(&e))
		if err != nil {
			t.Fatalf("%s: %v", c.Workflow, err)
		}
		if r.Version != c.Version || r.Definition != c.Definition || r.State != semel.RunRunning || r.Trigger.Kind != semel.ByEvent || r.Trigger.Event == nil || r.Trigger.Event.At.IsZero() {
			t.Fatalf("started %+v", r)
		}
		got := *r.Trigger.Event
		got.At = time.Time{}
		diff(t, "trigger", got, e)
		diff(t, "input", string(r.Input), string(e.Data))
		wantDue(t, s, "started by an event", r.ID, true)
		started = append(started, r.ID)
	}
	_, err := s.FindRun(t.Context(), "other", semel.EventKey(&e))
	wantErr(t, "a workflow that does not ask for it", err, semel.ErrNotFound)
	if existing, err := s.Send(t.Context(), e); err != nil || !existing {
		t.Fatalf("a duplicate: existing %v, error %v", existing, err)
	}
	long := semel.InboxEvent{ID: strings.Repeat("i", semel.MaxKeyLen), Name: "refunded"}
	send(t, s, long)
	r, err := s.FindRun(t.Context(), workflow, semel.EventKey(&long))
	if err != nil || string(r.Input) != "{}" {
		t.Fatalf("started by a long ID without data: input %s, error %v", r.Input, err)
	}
	for entry, err := range s.Inbox(t.Context(), semel.EventFilter{ID: "7"}) {
		if err != nil {
			t.Fatal(err)
		}
		if len(entry.Started) != 2 || len(entry.TakenBy) != 0 || !entry.Delivered {
			t.Fatalf("entry %+v", entry)
		}
		diff(t, "started", idSet(entry.Started...), idSet(started...))
	}
}

func idSet(ids ...semel.ID) map[semel.ID]bool {
	set := map[semel.ID]bool{}
	for _, id := range ids {
		set[id] = true
	}
	return set
}

// testInbox: events are listed newest first with what became of them.
func testInbox(t *testing.T, h Harness) {
	s := openRuns(t, h)
	r := begin(t, s)
	var sent []semel.InboxEvent
	for i := range 5 {
		e := event(fmt.Sprint(i), fmt.Sprint(i%2))
		if i == 4 {
			e.Name = "shipped"
		}
		send(t, s, e)
		sent = append(sent, e)
	}
	if _, err := take(t, s, r, "w", "0", time.Time{}); err != nil {
		t.Fatal(err)
	}
	list := func(f semel.EventFilter, want ...int) []semel.InboxEntry {
		t.Helper()
		var got []semel.InboxEntry
		var ids, wanted []string
		for e, err := range s.Inbox(t.Context(), f) {
			if err != nil {
				t.Fatal(err)
			}
			if e.At.IsZero() || !e.Delivered {
				t.Fatalf("entry %+v", e)
			}
			got, ids = append(got, e), append(ids, e.ID)
		}
		for _, i := range want {
			wanted = append(wanted, sent[i].ID)
		}
		diff(t, fmt.Sprintf("inbox %+v", f), ids, wanted)
		return got
	}
	all := list(semel.EventFilter{}, 4, 3, 2, 1, 0)
	diff(t, "taken by", all[4].TakenBy, []semel.ID{r.ID})
	if len(all[0].TakenBy) != 0 || len(all[4].Started) != 0 {
		t.Fatalf("inbox %+v", all)
	}
	list(semel.EventFilter{Limit: 2}, 4, 3)
	list(semel.EventFilter{Name: "paid"}, 3, 2, 1, 0)
	list(semel.EventFilter{Name: "paid", Match: "0"}, 2, 0)
	list(semel.EventFilter{ID: "3"}, 3)
	list(semel.EventFilter{Match: "nothing"})
	all[3].At = time.Time{}
	diff(t, "an entry", all[3].InboxEvent, sent[1])
}
