package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/semel-dev/semel"
)

// newsJSON is one event of a worker, as a program reads it.
type newsJSON struct {
	At        *time.Time     `json:"at,omitempty"`
	News      string         `json:"news"` // started, run_held, run_failed, operation_needs_person
	Run       string         `json:"run,omitempty"`
	Workflow  string         `json:"workflow,omitempty"`
	Version   int            `json:"version,omitempty"`
	Key       string         `json:"key,omitempty"`
	State     semel.RunState `json:"state,omitempty"`
	Operation string         `json:"operation,omitempty"`
	Reason    string         `json:"reason,omitempty"`
	Listen    string         `json:"listen,omitempty"`
	Workflows []string       `json:"workflows,omitempty"`
}

// newsOfStart tells a program what was loaded.
func (sh *shell) newsOfStart(s *serving) error {
	if !sh.json() {
		return nil
	}
	n := newsJSON{News: "started"}
	for _, d := range s.p.definitions() {
		n.Workflows = append(n.Workflows, semel.WorkflowRef{Name: d.Name, Version: d.Version}.String())
	}
	if s.listener != nil {
		n.Listen = s.listener.Addr().String()
	}
	return sh.print(n)
}

// herald tells what a person wants to hear of a worker: what needs one, and
// what failed. Ordinary runs are not told.
type herald struct {
	sh *shell
	w  *witness
	mu sync.Mutex // of stdout and stderr
}

func (*herald) began(context.Context, *semel.Run) {}

func (h *herald) moved(ctx context.Context, id semel.ID, next *semel.RunNext) {
	news := map[semel.RunState]string{semel.RunHeld: "run_held", semel.RunFailed: "run_failed"}[next.State]
	if news == "" {
		return
	}
	r, err := h.w.loaded(ctx, id)
	if err != nil {
		r = semel.Run{ID: id, UpdatedAt: time.Now()}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sh.json() {
		_ = h.sh.print(newsJSON{
			At: instant(r.UpdatedAt), News: news, Run: id.String(), Workflow: r.Workflow, Version: r.Version, Key: string(r.Key), State: next.State, Reason: next.Reason,
		}) // a reader that went away stops no run
	}
	what := "failed"
	if next.State == semel.RunHeld {
		what = "is held and needs a person"
	}
	h.sh.say("%s run of %s with key %q %s: %s. See: %s", moment(r.UpdatedAt), refOf(&r), r.Key, what, next.Reason, h.sh.command("run show "+id.String()))
}

func (h *herald) settled(_ context.Context, o *semel.Operation, ev *semel.Event) {
	if ev.Kind == semel.EvJoined || ev.Kind == semel.EvCancelAsked || o.State == semel.Failed && o.Incident == "" || !needsPerson(o, o.UpdatedAt) {
		return
	}
	a := h.sh.advise(o, semel.Decide(o, o.Contract, o.UpdatedAt), o.UpdatedAt)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sh.json() {
		_ = h.sh.print(newsJSON{At: instant(o.UpdatedAt), News: "operation_needs_person", Operation: o.ID.String(), Key: string(o.Key), Reason: a.headline})
	}
	who := ""
	if o.Contract.Owner != "" {
		who = fmt.Sprintf(" (%s)", o.Contract.Owner)
	}
	h.sh.say("%s operation with key %q needs a person%s: %s See: %s", moment(o.UpdatedAt), o.Key, who, a.headline, h.sh.command("op show "+o.ID.String()))
}
