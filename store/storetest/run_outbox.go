package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

// testOutbox: what is started and sent inside a caller's transaction is there
// if and when the caller commits.
func testOutbox(t *testing.T, h Harness) {
	s := openRuns(t, h)
	if h.Transaction == nil {
		t.Fatal("the harness has no Transaction")
	}
	register(t, s, semel.WorkflowDefinition{Name: "shipping", Version: 1, Events: []string{"paid"}})
	waiting := suspend(t, s, begin(t, s), semel.RunWait{Path: "w", Kind: semel.WaitEvent, Event: "paid", Match: "a"})
	n, e := newRun(), event("1", "a")
	errRollback := errors.New("the application changed its mind")
	for _, want := range []error{errRollback, nil, nil} {
		var started semel.Run
		err := h.Transaction(t, func(o Outbox) error {
			r, existing, err := o.Start(t.Context(), n)
			if err != nil {
				t.Errorf("start: %v", err)
			}
			_, loadErr := s.LoadRun(t.Context(), r.ID)
			if !existing {
				wantErrorf(t, "before the commit", loadErr, semel.ErrNotFound)
			}
			started = r
			if err := o.Send(t.Context(), e); err != nil {
				t.Errorf("send: %v", err)
			}
			if err := o.Send(t.Context(), semel.InboxEvent{}); err == nil {
				t.Error("an event without a name was sent")
			}
			return want
		})
		wantErr(t, "the transaction", err, want)
		if want != nil {
			_, err := s.LoadRun(t.Context(), started.ID)
			wantErr(t, "after a rollback", err, semel.ErrNotFound)
			if n, err := s.Deliver(t.Context(), 10); err != nil || n != 0 {
				t.Fatalf("delivered %d after a rollback, error %v", n, err)
			}
			continue
		}
		got := loadRun(t, s, started.ID)
		if got.Trigger.Kind != semel.ByTransaction || got.State != semel.RunRunning {
			t.Fatalf("started %+v", got)
		}
		wantDue(t, s, "started", started.ID, true)
	}
	var entries []semel.InboxEntry
	for entry, err := range s.Inbox(t.Context(), semel.EventFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, entry)
	}
	if len(entries) != 1 || entries[0].Delivered {
		t.Fatalf("inbox: %+v", entries)
	}
	wantDue(t, s, "before the delivery", waiting.ID, false)
	for _, want := range []int{1, 0} {
		if n, err := s.Deliver(t.Context(), 10); err != nil || n != want {
			t.Fatalf("delivered %d, error %v, want %d", n, err, want)
		}
	}
	wantDue(t, s, "after the delivery", waiting.ID, true)
	r, err := s.FindRun(t.Context(), "shipping", semel.EventKey(&e))
	if err != nil {
		t.Fatal(err)
	}
	wantDue(t, s, "a run that the event started", r.ID, true)
	for _, c := range claimRuns(t, s) {
		if c.ID == waiting.ID {
			rec, err := take(t, s, c, "w", "a", time.Time{})
			wantTaken(t, "delivered", rec, err, e)
		}
	}
	err = h.Transaction(t, func(o Outbox) error {
		for i := range 5 {
			more := event(string(newKey()), "b")
			more.Name = "more"
			if err := o.Send(t.Context(), more); err != nil {
				t.Errorf("send %d: %v", i, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{2, 2, 1, 0} {
		if n, err := s.Deliver(t.Context(), 2); err != nil || n != want {
			t.Fatalf("delivered %d, error %v, want %d", n, err, want)
		}
	}
}
