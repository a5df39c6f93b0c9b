package semeltest

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

// person is who decides in a World.
const person = "semeltest"

// Send sends an event: each call is another one. Data is encoded as JSON; nil is
// none. What it wakes or starts is executed by the next Await or Advance.
func (w *World) Send(name, match string, data any) {
	w.t.Helper()
	w.events++
	e := semel.InboxEvent{ID: fmt.Sprintf("semeltest-%d", w.events), Name: name, Match: match}
	if data != nil {
		var err error
		if e.Data, err = json.Marshal(data); err != nil {
			w.t.Fatalf("semeltest: encode event %s: %v", name, err)
			return
		}
	}
	err := e.Validate()
	if err == nil {
		_, err = w.store.Send(context.Background(), e)
	}
	if err != nil {
		w.t.Fatalf("semeltest: send event %s: %v", name, err)
	}
}

// Approve approves everything that a run asks approval for. It fails the test
// where that is nothing.
func (w *World) Approve(run semel.Run) {
	w.t.Helper()
	w.decide(run, semel.ApprovalGiven, "approved in a test")
}

// Reject rejects everything that a run asks approval for.
func (w *World) Reject(run semel.Run, reason string) {
	w.t.Helper()
	w.decide(run, semel.ApprovalRejected, reason)
}

func (w *World) decide(run semel.Run, state semel.ApprovalState, reason string) {
	w.t.Helper()
	ctx := context.Background()
	var pending []semel.Approval
	for a, err := range w.store.Approvals(ctx, run.ID, semel.ApprovalPending) {
		if err != nil {
			w.t.Fatalf("semeltest: %v", err)
			return
		}
		pending = append(pending, a)
	}
	if len(pending) == 0 {
		w.t.Fatalf("semeltest: run %s of %s asks for no approval", run.ID, run.Workflow)
		return
	}
	for _, a := range pending {
		if _, err := w.store.Decide(ctx, a.ID, semel.Decision{State: state, By: person, Reason: reason, Digest: a.Digest}); err != nil {
			w.t.Fatalf("semeltest: approval of step %s: %v", a.Path, err)
		}
	}
}

// Change asks to cancel, pause, resume or retry a run.
func (w *World) Change(run semel.Run, verb semel.RunVerb) {
	w.t.Helper()
	if _, err := w.store.ChangeRun(context.Background(), run.ID, semel.RunCommand{Verb: verb, By: person, Reason: "asked in a test"}); err != nil {
		w.t.Fatalf("semeltest: %s: %v", verb, err)
	}
}

// Happened settles the unknown operation of a step: a person found out that it
// happened, and what the answer was.
func (w *World) Happened(run semel.Run, path string, value any) {
	w.t.Helper()
	result, err := Completed(value).result()
	if err != nil {
		w.t.Fatalf("semeltest: %v", err)
		return
	}
	w.settle(run, path, engine.Settlement{Happened: true, Result: &result})
}

// DidNotHappen settles the unknown operation of a step: a person found out that
// nothing happened, however early that is. A person who errs makes it happen
// twice, which fails the test.
func (w *World) DidNotHappen(run semel.Run, path string) {
	w.t.Helper()
	w.settle(run, path, engine.Settlement{Force: true})
}

func (w *World) settle(run semel.Run, path string, s engine.Settlement) {
	w.t.Helper()
	s.By, s.Reason = person, "found out in a test"
	if _, err := w.engine.Settle(context.Background(), w.Step(run, path).Operation, s); err != nil {
		w.t.Fatalf("semeltest: settle step %s: %v", path, err)
	}
}
