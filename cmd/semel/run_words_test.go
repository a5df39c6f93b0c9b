package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
)

// TestRunWords: whoever looks at 3 a.m. reads whether somebody works on the
// run, and if nobody does, why.
func TestRunWords(t *testing.T) {
	now := time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)
	id := semel.ID{1}
	base := semel.Run{ID: id, Workflow: "billing", Version: 2, Key: "k", State: semel.RunRunning, Attempt: 3, By: "w1", CreatedAt: now.Add(-time.Hour), DueAt: now}
	tests := map[string]struct {
		change         func(*semel.Run)
		word, headline string
	}{
		"due":                    {func(*semel.Run) {}, "due", "Due: the next free worker takes it."},
		"just begun":             {func(r *semel.Run) { r.CreatedAt, r.DueAt = now, now.Add(-48*time.Hour) }, "due", "Due:"},
		"nobody takes it":        {func(r *semel.Run) { r.DueAt = now.Add(-2 * time.Minute) }, "no worker", "No worker has taken it since 2026-03-01T02:58:00Z (2m ago): is one running that has billing@2?"},
		"woken, nobody takes it": {func(r *semel.Run) { r.State, r.DueAt = semel.RunWaiting, now.Add(-2*time.Minute) }, "no worker", "No worker has taken it since"},
		"executed":               {func(r *semel.Run) { r.LeaseUntil, r.DueAt = now.Add(5*time.Second), now.Add(5*time.Second) }, "running", "Running on w1. If that worker dies, another one goes on at 2026-03-01T03:00:05Z."},
		"dead worker":            {func(r *semel.Run) { r.LeaseUntil, r.DueAt = now.Add(-time.Minute), now.Add(-time.Minute) }, "no worker", "No worker has taken it since 2026-03-01T02:59:00Z (1m ago)"},
		"begins later":           {func(r *semel.Run) { r.State, r.Attempt, r.DueAt = semel.RunWaiting, 0, now.Add(90*time.Minute) }, "begins later", "Begins at 2026-03-01T04:30:00Z (in 1h30m)."},
		"waits": {func(r *semel.Run) {
			r.State, r.DueAt, r.Reason = semel.RunWaiting, now.Add(72*time.Hour), "step nap: sleeps"
		}, "waiting", "Waiting: nap: sleeps, until 2026-03-04T03:00:00Z (in 3d)."},
		"held":          {func(r *semel.Run) { r.State, r.DueAt = semel.RunHeld, time.Time{} }, "held", "Held: it needs a person"},
		"held for long": {func(r *semel.Run) { r.State, r.DueAt = semel.RunHeld, now.Add(-time.Hour) }, "held", "Held: it needs a person"},
		"paused":        {func(r *semel.Run) { r.State, r.Paused = semel.RunHeld, true }, "paused", "Paused: nothing begins until a person lets it go on."},
		"asked to stop": {func(r *semel.Run) { r.Cancel = true }, "asked to stop", "Asked to stop, and not stopped yet"},
		"cancelled":     {func(r *semel.Run) { r.State, r.Cancel = semel.RunCancelled, true }, "cancelled", "Cancelled: "},
		"completed":     {func(r *semel.Run) { r.State = semel.RunCompleted }, "completed", "Completed: "},
		"failed":        {func(r *semel.Run) { r.State = semel.RunFailed }, "failed", "Failed: in the step that failed nothing happened"},
	}
	sh := &shell{}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := base
			test.change(&r)
			a := sh.adviseRun(&r, nil, now)
			if got := runWord(&r, now); got != test.word || !strings.HasPrefix(a.headline, test.headline) {
				t.Errorf("it says %q and %q, want %q and %q", got, a.headline, test.word, test.headline)
			}
			for _, line := range a.next {
				if !strings.Contains(line, "semel run ") || !strings.Contains(line, id.String()) {
					t.Errorf("%q is no command that can be typed", line)
				}
			}
		})
	}
}

// TestStopThatNobodyTakes: a run is not "being stopped" while no worker is there
// to stop it, and its reader is told.
func TestStopThatNobodyTakes(t *testing.T) {
	now := time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)
	r := semel.Run{Workflow: "billing", Version: 2, State: semel.RunRunning, Cancel: true, DueAt: now.Add(-2 * time.Minute)}
	want := []string{"No worker has taken it since 2026-03-01T02:58:00Z (2m ago): is one running that has billing@2?"}
	if diff := cmp.Diff(want, (&shell{}).adviseRun(&r, nil, now).why); diff != "" {
		t.Errorf("what is said of it (-want +got):\n%s", diff)
	}
	r.LeaseUntil = now.Add(time.Second)
	if why := (&shell{}).adviseRun(&r, nil, now).why; why != nil {
		t.Errorf("a worker has it, and it says %q", why)
	}
}

func TestRough(t *testing.T) {
	got := map[string]string{}
	for _, d := range []time.Duration{0, 59 * time.Second, 90 * time.Second, 2*time.Hour - time.Millisecond, 23*time.Hour + 59*time.Minute, 72*time.Hour - time.Second} {
		got[d.String()] = rough(d)
	}
	want := map[string]string{"0s": "0s", "59s": "59s", "1m30s": "2m", "1h59m59.999s": "2h", "23h59m0s": "23h59m", "71h59m59s": "3d"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rough (-want +got):\n%s", diff)
	}
}
