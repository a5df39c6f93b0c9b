package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/semel-dev/semel"
)

// unclaimed is how long a run may be due before its reader is told that no
// worker takes it.
const unclaimed = 10 * time.Second

// executed reports whether a worker holds the run now.
func executed(r *semel.Run, now time.Time) bool {
	return r.State == semel.RunRunning && r.LeaseUntil.After(now)
}

// begins reports whether nothing of the run was done yet, since its time has not
// come.
func begins(r *semel.Run, now time.Time) bool {
	return r.Attempt == 0 && !r.State.Ended() && r.DueAt.After(now)
}

// dueSince is when the run became one that a worker should take.
func dueSince(r *semel.Run) time.Time {
	if r.CreatedAt.After(r.DueAt) {
		return r.CreatedAt
	}
	return r.DueAt
}

// ready reports whether a worker should look at the run now, and none does.
func ready(r *semel.Run, now time.Time) bool {
	return !r.State.Ended() && !r.Paused && !r.DueAt.IsZero() && !r.DueAt.After(now) && !executed(r, now)
}

// overdue reports whether no worker has taken a run that can go on for a while.
func overdue(r *semel.Run, now time.Time) bool {
	return ready(r, now) && r.State != semel.RunHeld && now.Sub(dueSince(r)) > unclaimed
}

// runWord is the state of a run as of now, in a few words.
func runWord(r *semel.Run, now time.Time) string {
	switch {
	case r.State.Ended():
		return string(r.State)
	case r.Cancel:
		return "asked to stop"
	case r.Paused:
		return "paused"
	case r.State == semel.RunHeld:
		return "held"
	case overdue(r, now):
		return "no worker"
	case executed(r, now):
		return "running"
	case begins(r, now):
		return "begins later"
	case ready(r, now), r.State == semel.RunRunning:
		return "due"
	}
	return "waiting"
}

// runWhy is what a run waits for, or why it ended so, in a few words.
func runWhy(r *semel.Run, now time.Time) string {
	switch {
	case overdue(r, now):
		return fmt.Sprintf("due since %s: is a worker running that has %s?", moment(dueSince(r)), refOf(r))
	case r.State.Ended(), r.State == semel.RunHeld:
		return r.Reason
	case executed(r, now):
		return "on " + r.By
	case begins(r, now):
		return "begins at " + moment(r.DueAt)
	case ready(r, now), r.State == semel.RunRunning:
		return "the next free worker takes it"
	}
	return untilWords(strings.TrimPrefix(r.Reason, "step "), r.DueAt, now)
}

// untilWords adds when a wait is over, if it is by itself.
func untilWords(what string, until, now time.Time) string {
	if until.IsZero() {
		return what
	}
	return fmt.Sprintf("%s, until %s (%s)", what, moment(until), relative(until, now))
}

func refOf(r *semel.Run) string {
	return semel.WorkflowRef{Name: r.Workflow, Version: r.Version}.String()
}

// progress is how far the lists of a run are; empty without any.
func progress(r *semel.Run) string {
	if r.Total == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d items", r.Done, r.Total)
}

// relative is a time as seen from now: "in 3h", "2m ago".
func relative(t, now time.Time) string {
	if t.After(now) {
		return "in " + rough(t.Sub(now))
	}
	return rough(now.Sub(t)) + " ago"
}

// rough is a duration as people say it.
func rough(d time.Duration) string {
	if seconds := d.Round(time.Second); seconds < time.Minute {
		return fmt.Sprintf("%ds", int(seconds.Seconds()))
	}
	if minutes := d.Round(time.Minute); minutes < 48*time.Hour {
		return duration(minutes)
	}
	return fmt.Sprintf("%dd", int(d.Round(24*time.Hour).Hours()/24))
}

// startedBy says what started a run.
func startedBy(t *semel.Trigger) string {
	switch t.Kind {
	case semel.ByPerson:
		return "by " + orNone(t.By)
	case semel.ByHTTP:
		return "by an HTTP call of " + orNone(t.By)
	case semel.ByEvent:
		if t.Event != nil {
			return fmt.Sprintf("by event %s %s", t.Event.Name, t.Event.ID)
		}
	case semel.BySchedule:
		if t.Tick != nil {
			return "by its schedule, tick " + t.Tick.Label
		}
	case semel.ByTransaction:
		return "inside a transaction of " + orNone(t.By)
	case semel.ByRun:
		return "by " + t.By
	}
	return "by " + string(t.Kind)
}

// paintedRun is words about a run in the colour of its state, on a terminal.
func (sh *shell) paintedRun(r *semel.Run, words string) string {
	code := map[semel.RunState]string{
		semel.RunCompleted: "32", semel.RunFailed: "33", semel.RunCancelled: "33", semel.RunHeld: "31;1", semel.RunRunning: "36", semel.RunWaiting: "36",
	}[r.State]
	if !sh.colour || code == "" {
		return words
	}
	return "\x1b[" + code + "m" + words + "\x1b[0m"
}
