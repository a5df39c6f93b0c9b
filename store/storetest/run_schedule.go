package storetest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

func register(t tb, s RunStore, definitions ...semel.WorkflowDefinition) {
	t.Helper()
	if err := s.Register(t.Context(), definitions); err != nil {
		t.Fatalf("register: %v", err)
	}
}

func schedules(t tb, s RunStore) []semel.ScheduleState {
	t.Helper()
	all, err := s.Schedules(t.Context())
	if err != nil {
		t.Fatalf("schedules: %v", err)
	}
	return all
}

// fire moves on the schedule as it was read.
func fire(t tb, s RunStore, st semel.ScheduleState, f semel.Firing) {
	t.Helper()
	f.Workflow, f.Name, f.Seen = st.Workflow, st.Name, st.Seen
	if err := s.Fire(t.Context(), f); err != nil {
		t.Fatalf("fire: %v", err)
	}
}

// testRegister: the newest version says what starts a workflow; the text of
// every version is kept.
func testRegister(t *testing.T, h Harness) {
	s, other := openRuns(t, h), openRuns(t, h)
	define := func(version int, digest, event string) semel.WorkflowDefinition {
		return semel.WorkflowDefinition{Name: workflow, Version: version, Digest: digest, Text: []byte("text of " + digest), Events: []string{event, event}}
	}
	text := func(digest string) {
		t.Helper()
		got, err := other.Registered(t.Context(), digest)
		if err != nil || string(got) != "text of "+digest {
			t.Fatalf("%s: %q, error %v", digest, got, err)
		}
	}
	starts := func(event string, version int) {
		t.Helper()
		e := semel.InboxEvent{ID: string(newKey()), Name: event}
		send(t, s, e)
		r, err := s.FindRun(t.Context(), workflow, semel.EventKey(&e))
		if version == 0 {
			wantErr(t, event+" starts a run", err, semel.ErrNotFound)
		} else if err != nil || r.Version != version {
			t.Fatalf("%s starts version %d, error %v, want version %d", event, r.Version, err, version)
		}
	}
	_, err := s.Registered(t.Context(), "d2")
	wantErr(t, "no definition", err, semel.ErrNotFound)
	for range 2 {
		register(t, s, define(2, "d2", "two"), semel.WorkflowDefinition{Name: "go", Version: 1})
	}
	text("d2")
	starts("two", 2)
	workflows := func(what string, want ...semel.RegisteredWorkflow) {
		t.Helper()
		got, err := other.Workflows(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		diff(t, what, got, want)
	}
	goes := semel.RegisteredWorkflow{WorkflowRef: semel.WorkflowRef{Name: "go", Version: 1}}
	workflows("registered", semel.RegisteredWorkflow{WorkflowRef: semel.WorkflowRef{Name: workflow, Version: 2}, Definition: "d2"}, goes)
	register(t, s, define(1, "d1", "one"))
	text("d1")
	starts("one", 0)
	starts("two", 2)
	register(t, s, define(3, "d3", "three"))
	text("d3")
	text("d2")
	starts("two", 0)
	starts("three", 3)
	workflows("the newest version", semel.RegisteredWorkflow{WorkflowRef: semel.WorkflowRef{Name: workflow, Version: 3}, Definition: "d3"}, goes)
	register(t, s, define(3, "d3b", "again")) // edited without a new version
	starts("three", 0)
	starts("again", 3)
	text("d3")
	twice := semel.WorkflowDefinition{Name: "twice", Version: 1, Schedules: []semel.Schedule{{Cron: "@daily"}, {Cron: "@hourly"}}}
	err = s.Register(t.Context(), []semel.WorkflowDefinition{twice})
	if _, ok := errors.AsType[*semel.InputError](err); !ok {
		t.Fatalf("two schedules of one name: error %v", err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if err := []RunStore{s, other}[i%2].Register(t.Context(), []semel.WorkflowDefinition{define(4+i%2, "d4", "four"), twiceOf("a"), twiceOf("b")}); err != nil {
				t.Errorf("register at the same time: %v", err)
			}
		})
	}
	wg.Wait()
	starts("four", 5)
	definitions, err := s.Definitions(t.Context(), workflow)
	if err != nil || len(definitions) == 0 || definitions[0].Name != workflow || len(definitions[0].Text) == 0 {
		t.Fatalf("definitions of %s: %+v, %v", workflow, definitions, err)
	}
}

func twiceOf(name string) semel.WorkflowDefinition {
	return semel.WorkflowDefinition{Name: name, Version: 1, Events: []string{"x", "y"}, Schedules: []semel.Schedule{{Name: "1", Cron: "@daily"}, {Name: "2", Cron: "@daily"}}}
}

// testSchedules: schedules follow the registered definition; one that stays
// goes on where it stood, and one that changed is looked at again.
func testSchedules(t *testing.T, h Harness) {
	s := openRuns(t, h)
	daily := semel.Schedule{Name: "daily", Cron: "@daily", Zone: "Europe/Berlin", Missed: "all", Input: []byte(`{"a":1}`)}
	plain := semel.Schedule{Cron: "0 6 * * *"}
	define := func(version int, all ...semel.Schedule) {
		t.Helper()
		register(t, s, semel.WorkflowDefinition{Name: workflow, Version: version, Schedules: all})
	}
	before := now(t, s)
	define(1, daily, plain)
	got := schedules(t, s)
	if len(got) != 2 || got[1].Seen.Before(before.Add(-time.Millisecond)) || !got[1].NextAt.Equal(got[1].Seen) {
		t.Fatalf("registered: %+v", got)
	}
	at := got[0].Seen
	diff(t, "registered", got, []semel.ScheduleState{
		{Schedule: plain, Workflow: workflow, Version: 1, Seen: at, NextAt: at},
		{Schedule: daily, Workflow: workflow, Version: 1, Seen: at, NextAt: at},
	})
	last, next := at.Add(time.Minute), at.Add(time.Hour)
	fire(t, s, got[1], semel.Firing{Last: last, NextAt: next})
	if err := s.PauseSchedule(t.Context(), workflow, "", true, "anna"); err != nil {
		t.Fatal(err)
	}
	h.Shift(time.Second)
	define(1, daily, plain)
	want := []semel.ScheduleState{
		{Schedule: plain, Workflow: workflow, Version: 1, Paused: true, PausedBy: "anna", Seen: at, NextAt: at},
		{Schedule: daily, Workflow: workflow, Version: 1, Seen: last, NextAt: next},
	}
	diff(t, "registered again", schedules(t, s), want)
	define(2, daily, plain)
	want[0].Version, want[1].Version = 2, 2
	diff(t, "a new version", schedules(t, s), want)
	define(1, semel.Schedule{Name: "old", Cron: "@hourly"})
	diff(t, "an old version", schedules(t, s), want)
	for _, change := range []func(){
		func() { daily.Cron = "@weekly" }, func() { daily.Zone = "UTC" }, func() { daily.Input = []byte(`{}`) },
	} {
		change()
		h.Shift(time.Second)
		changed := now(t, s)
		define(2, daily, plain)
		got := schedules(t, s)[1]
		if !got.Seen.Equal(want[1].Seen) || got.NextAt.Before(changed.Add(-time.Millisecond)) || got.NextAt.After(now(t, s)) {
			t.Fatalf("changed: %+v", got)
		}
		diff(t, "changed", got.Schedule, daily)
		fire(t, s, got, semel.Firing{Last: last, NextAt: next})
	}
	define(2, daily)
	if got := schedules(t, s); len(got) != 1 || got[0].Name != "daily" {
		t.Fatalf("after one was removed: %+v", got)
	}
	if err := s.PauseSchedule(t.Context(), workflow, "daily", true, "anna"); err != nil {
		t.Fatal(err)
	}
	h.Shift(time.Hour)
	resumed := now(t, s)
	if err := s.PauseSchedule(t.Context(), workflow, "daily", false, "bert"); err != nil {
		t.Fatal(err)
	}
	// What was not due before the pause, and would have been in it, is left out.
	if got := schedules(t, s)[0]; got.Paused || got.PausedBy != "" || got.Seen.Before(resumed.Add(-time.Millisecond)) || got.NextAt.Before(got.Seen.Add(-time.Millisecond)) {
		t.Fatalf("it goes on: %+v", got)
	}
	wantErr(t, "pause no schedule", s.PauseSchedule(t.Context(), workflow, "none", true, "anna"), semel.ErrNotFound)
}

// testFire: each tick starts its runs once, whoever sees it first; a paused
// schedule starts nothing.
func testFire(t *testing.T, h Harness) {
	stores := []RunStore{openRuns(t, h), openRuns(t, h)}
	s := stores[0]
	register(t, s, semel.WorkflowDefinition{Name: workflow, Version: 1, Schedules: []semel.Schedule{{Name: "daily", Cron: "@daily"}}})
	for round := range 5 {
		st := schedules(t, s)[0]
		var runs []semel.NewRun
		for range 2 {
			n := newRun()
			n.Trigger = semel.Trigger{Kind: semel.BySchedule, Tick: &semel.Tick{At: st.Seen, Label: string(n.Key), Date: "2026-11-29"}}
			runs = append(runs, n)
		}
		taken := start(t, s, runs[1])
		f := semel.Firing{Workflow: workflow, Name: "daily", Seen: st.Seen, Runs: runs, Last: st.Seen.Add(time.Minute), NextAt: st.Seen.Add(time.Hour)}
		var mu sync.Mutex
		fired := 0
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				err := stores[i%2].Fire(t.Context(), f)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					fired++
				} else {
					wantErrorf(t, "a firing that came second", err, semel.ErrStale)
				}
			})
		}
		wg.Wait()
		if fired != 1 {
			t.Fatalf("round %d: fired %d times", round, fired)
		}
		r, err := s.FindRun(t.Context(), workflow, runs[0].Key)
		if err != nil || r.Trigger.Tick == nil || r.Trigger.Kind != semel.BySchedule {
			t.Fatalf("the run of the tick: %+v, error %v", r, err)
		}
		wantDue(t, s, "the run of the tick", r.ID, true)
		diff(t, "the run that was there", loadRun(t, s, taken.ID), taken)
		if got := schedules(t, s)[0]; !got.Seen.Equal(f.Last) || !got.NextAt.Equal(f.NextAt) {
			t.Fatalf("moved on to %+v", got)
		}
	}
	st := schedules(t, s)[0]
	if err := s.PauseSchedule(t.Context(), workflow, "daily", true, "anna"); err != nil {
		t.Fatal(err)
	}
	f := semel.Firing{Workflow: workflow, Name: "daily", Seen: st.Seen, Runs: []semel.NewRun{newRun()}, Last: st.Seen.Add(time.Minute), NextAt: st.NextAt}
	wantErr(t, "fire a paused schedule", s.Fire(t.Context(), f), semel.ErrStale)
	_, err := s.FindRun(t.Context(), workflow, f.Runs[0].Key)
	wantErr(t, "its run", err, semel.ErrNotFound)
	f.Name = "none"
	wantErr(t, "fire no schedule", s.Fire(t.Context(), f), semel.ErrStale)
	diff(t, "the schedule", schedules(t, s)[0].Seen, st.Seen)
}
