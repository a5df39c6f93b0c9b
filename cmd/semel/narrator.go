package main

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-dev/semel"
)

// narrator tells everything that runs do, for the writer of a workflow.
type narrator struct{ herald }

func (n *narrator) began(_ context.Context, r *semel.Run) {
	n.line(r, "begins, started "+startedBy(&r.Trigger))
}

func (n *narrator) moved(ctx context.Context, id semel.ID, next *semel.RunNext) {
	r, err := n.w.loaded(ctx, id)
	if err != nil {
		r = semel.Run{ID: id, UpdatedAt: time.Now()}
	}
	words := string(next.State)
	if next.Reason != "" {
		words += ": " + next.Reason
	}
	if next.State == semel.RunHeld || next.State == semel.RunFailed {
		words += ". See: " + n.sh.command("run show "+id.String())
	}
	n.line(&r, words)
}

func (n *narrator) settled(ctx context.Context, o *semel.Operation, ev *semel.Event) {
	if ev.Kind == semel.EvClaimed || ev.Kind == semel.EvJoined {
		return
	}
	words := o.State.Words()
	if ev.Reason != "" && o.State != semel.Completed {
		words += ": " + ev.Reason
	}
	if o.Run == (semel.ID{}) {
		n.herald.settled(ctx, o, ev)
		return
	}
	r, err := n.w.loaded(ctx, o.Run)
	if err != nil {
		r = semel.Run{ID: o.Run, UpdatedAt: o.UpdatedAt}
	}
	n.line(&r, "  "+o.Step+" "+words)
}

// line is one line about a run.
func (n *narrator) line(r *semel.Run, words string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := r.UpdatedAt
	if at.IsZero() {
		at = time.Now()
	}
	text := fmt.Sprintf("%s  %s %s  %s", moment(at), refOf(r), r.Key, words)
	_ = n.sh.write([]byte(oneLine(text) + "\n")) // a reader that went away stops no run
}
