package engine_test

import (
	"maps"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

// TestMissedTicksFollowTheirPolicy: five ticks come while no worker is there.
func TestMissedTicksFollowTheirPolicy(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		hourly := func(missed string) semel.Schedule {
			return semel.Schedule{Name: missed, Cron: "0 * * * *", Zone: "UTC", Missed: missed}
		}
		got := map[string]int{}
		tick := semel.Workflow[struct{}]{
			Name: "tick", Schedules: []semel.Schedule{hourly("once"), hourly("skip"), hourly("all")},
			Func: func(semel.Context, struct{}) error { return nil },
		}
		store := open()
		now, err := store.Now(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		half := now.Truncate(time.Hour).Add(90 * time.Minute)
		store.Shift(half.Sub(now))
		r := newRig(t, store, tick.Definition())
		store.Shift(5 * time.Hour)
		for range 2 { // what is made up for is made up for once
			if _, err := r.w.Pass(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for run, err := range r.runs.ListRuns(t.Context(), semel.RunFilter{}) {
			if err != nil {
				t.Fatal(err)
			}
			got[string(run.Key[:len(run.Key)-len(" 2006-01-02T15:04Z")])]++
		}
		if want := map[string]int{"once": 1, "all": 5}; !maps.Equal(got, want) {
			t.Errorf("runs %v, want %v", got, want)
		}
	})
}
