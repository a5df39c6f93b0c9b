package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/semel-dev/semel"
)

// adviseRun puts where a run stands into words: what happens next and why, and
// what a person can type.
func (sh *shell) adviseRun(r *semel.Run, waits []semel.RunWait, now time.Time) advice {
	id := r.ID.String()
	cancel := "stop it:                         " + sh.command("run cancel "+id+" --reason TEXT")
	retry := "try again what failed:           " + sh.command("run retry "+id+" --reason TEXT")
	switch {
	case r.State == semel.RunCompleted:
		return advice{headline: "Completed: the workflow returned. Nothing more happens."}
	case r.State == semel.RunFailed:
		return advice{
			headline: "Failed: in the step that failed nothing happened; what other steps did stays.",
			why:      because(r.Reason), next: []string{retry + "  (under the same keys)"},
		}
	case r.State == semel.RunCancelled:
		return advice{headline: "Cancelled: nothing new begins; what had happened before stays.", why: because(r.Reason)}
	case r.Cancel:
		return advice{
			headline: "Asked to stop, and not stopped yet: nothing new begins; what may have been sent is waited for and recorded.",
			why:      unstopped(r, now), next: sh.waitCommands(r, waits),
		}
	case r.Paused:
		return advice{
			headline: "Paused: nothing begins until a person lets it go on.", why: sh.stillRuns(r, now),
			next: []string{"let it go on:                    " + sh.command("run resume "+id+" --reason TEXT"), cancel},
		}
	case overdue(r, now):
		return advice{
			headline: untaken(r, now),
			why:      sh.lapsed(r), next: []string{cancel},
		}
	case r.State == semel.RunHeld:
		next := sh.waitCommands(r, waits)
		if len(next) == 0 {
			next = []string{"go on, when the cause is gone:   " + sh.command("run retry "+id+" --reason TEXT")}
		}
		why := because(r.Reason)
		if ready(r, now) {
			why = append(why, fmt.Sprintf("What it waits for may have changed at %s: the next free worker that has %s looks again.", moment(r.DueAt), refOf(r)))
		}
		return advice{headline: "Held: it needs a person, and nothing new begins until then.", why: why, next: append(next, cancel)}
	case executed(r, now):
		return advice{headline: fmt.Sprintf("Running on %s. If that worker dies, another one goes on at %s.", r.By, moment(r.LeaseUntil)), next: []string{cancel}}
	case begins(r, now):
		return advice{headline: fmt.Sprintf("Begins at %s (%s).", moment(r.DueAt), relative(r.DueAt, now)), next: []string{cancel}}
	case ready(r, now), r.State == semel.RunRunning:
		return advice{headline: "Due: the next free worker takes it.", next: []string{cancel}}
	}
	return advice{headline: "Waiting: " + waitHeadline(r, waits, now), next: append(sh.waitCommands(r, waits), cancel)}
}

func because(reason string) []string {
	if reason == "" {
		return nil
	}
	return []string{"Because: " + reason}
}

// untaken says that no worker takes a run that is due.
func untaken(r *semel.Run, now time.Time) string {
	return fmt.Sprintf("No worker has taken it since %s (%s): is one running that has %s?", moment(dueSince(r)), relative(dueSince(r), now), refOf(r))
}

// unstopped says what is known of a run that was asked to stop and has not: why,
// and whether anybody is there to stop it.
func unstopped(r *semel.Run, now time.Time) []string {
	why := because(r.Reason)
	if overdue(r, now) {
		why = append(why, untaken(r, now))
	}
	return why
}

// stillRuns says that a worker ends its step before the pause holds.
func (sh *shell) stillRuns(r *semel.Run, now time.Time) []string {
	if !executed(r, now) {
		return nil
	}
	return []string{"Worker " + r.By + " still executes it: what is under way is recorded first."}
}

// lapsed says that a worker stopped reporting.
func (sh *shell) lapsed(r *semel.Run) []string {
	if r.LeaseUntil.IsZero() {
		return nil
	}
	return []string{fmt.Sprintf("Worker %s, which executed it last, stopped reporting at %s.", r.By, moment(r.LeaseUntil))}
}

// waitHeadline says what a waiting run waits for.
func waitHeadline(r *semel.Run, waits []semel.RunWait, now time.Time) string {
	if len(waits) == 0 {
		return untilWords(strings.TrimPrefix(r.Reason, "step "), r.DueAt, now) + "."
	}
	first := waits[0]
	text := first.Path + " " + waitWords(&first, now)
	if n := len(waits) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d more, below)", n)
	}
	return text + "."
}

// waitWords says what a step waits for.
func waitWords(w *semel.RunWait, now time.Time) string {
	switch w.Kind {
	case semel.WaitTime:
		if strings.HasSuffix(w.Reason, ": sleeps") && w.Until.IsZero() {
			return "its sleep is over"
		}
		if strings.HasSuffix(w.Reason, ": sleeps") {
			return "sleeps until " + moment(w.Until) + " (" + relative(w.Until, now) + ")"
		}
	case semel.WaitEvent:
		what := "waits for event " + w.Event
		if w.Match != "" {
			what += fmt.Sprintf(" with match %q", w.Match)
		}
		return untilWords(what, w.Until, now)
	case semel.WaitApproval:
		return untilWords("waits for approval "+w.Target.String(), w.Until, now)
	case semel.WaitRun:
		return "waits for run " + w.Target.String()
	case semel.WaitOperation, semel.WaitPerson:
		return waitReason(w)
	}
	return untilWords(waitReason(w), w.Until, now)
}

// waitReason is the reason of a wait without the name of its step.
func waitReason(w *semel.RunWait) string {
	return strings.TrimPrefix(w.Reason, "step "+w.Path+": ")
}

// shownWaits is for how many waits the commands are shown.
const shownWaits = 3

// waitCommands are the commands by which a person ends the waits of a run.
func (sh *shell) waitCommands(r *semel.Run, waits []semel.RunWait) (next []string) {
	more := 0
	for i := range waits {
		lines := sh.waitCommand(r, &waits[i])
		switch {
		case len(lines) == 0:
		case len(next) >= 2*shownWaits:
			more++
		default:
			next = append(next, lines...)
		}
	}
	if more > 0 {
		next = append(next, fmt.Sprintf("(and the same for %d more of its steps)", more))
	}
	return next
}

func (sh *shell) waitCommand(r *semel.Run, w *semel.RunWait) []string {
	target := w.Target.String()
	switch w.Kind {
	case semel.WaitEvent:
		line := "event send " + quoteForShell(w.Event)
		if w.Match != "" {
			line += " --match " + quoteForShell(w.Match)
		}
		return []string{"send the event, if it is true:   " + sh.command(line+" --id ID")}
	case semel.WaitApproval:
		return []string{"look at the request, and decide: " + sh.command("approval show "+target)}
	case semel.WaitRun:
		return []string{"look at the other run:           " + sh.command("run show "+target)}
	case semel.WaitOperation:
		lines := []string{"look at all evidence:            " + sh.command("op show "+target)}
		if w.Person {
			lines = append(lines, "say what is true:                "+sh.command("op settle "+target+" --happened|--did-not-happen --reason TEXT"))
		}
		return lines
	case semel.WaitPerson:
		return []string{"go on, when the cause is gone:   " + sh.command("run retry "+r.ID.String()+" --reason TEXT")}
	case semel.WaitTime:
	}
	return nil
}
