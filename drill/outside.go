package drill

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/semel-dev/semel"
)

// outside does what people and other systems do: it approves what is asked, and
// sends the events that runs wait for. moved: something was done.
func (t *trial) outside(ctx context.Context) (moved bool, err error) {
	for a, err := range t.store.Approvals(ctx, semel.ID{}, semel.ApprovalPending) {
		if err != nil {
			return moved, err
		}
		_, err := t.store.Decide(ctx, a.ID, semel.Decision{State: semel.ApprovalGiven, By: "operator", Digest: a.Digest})
		if late, ok := errors.AsType[*semel.ApprovalStateError](err); ok {
			t.tell("nobody can approve any more: %s", late.Problem)
			continue
		}
		if err != nil {
			return moved, err
		}
		t.tell("a person approves %s", t.placeOf(t.run(a.Run), a.Path))
		moved = true
	}
	for run, err := range t.store.ListRuns(ctx, semel.RunFilter{State: semel.RunWaiting}) {
		if err != nil {
			return moved, err
		}
		waits, err := t.store.Waits(ctx, run.ID)
		if err != nil {
			return moved, err
		}
		for _, w := range waits {
			if w.Kind != semel.WaitEvent {
				continue
			}
			data := t.d.eventData(w.Event, w.Path)
			if data == nil {
				continue
			}
			e := semel.InboxEvent{ID: "drill " + w.Event + " " + w.Match, Name: w.Event, Match: w.Match, Data: data}
			existing, err := t.store.Send(ctx, e)
			if err != nil {
				return moved, err
			}
			if !existing {
				t.tell("event %s comes", w.Event)
				t.sent = append(t.sent, e)
				moved = true
			}
		}
	}
	return moved, nil
}

// eventData is what an event brings; nil keeps it from coming.
func (d *drill) eventData(name, path string) []byte {
	for _, given := range []string{path, withoutItems(path), name} {
		v, ok := d.options.Events[given]
		if ok && v == nil {
			return nil
		}
		if ok {
			data, _ := json.Marshal(v) // it was encoded before
			return data
		}
	}
	return []byte("{}")
}

// run is a run by its ID, as far as it can be read.
func (t *trial) run(id semel.ID) *semel.Run {
	r, err := t.store.LoadRun(t.ctx, id)
	if err != nil {
		t.fail(err)
	}
	return &r
}

// cancel asks every run to stop. before: the claim under way must see it.
func (t *trial) cancel(before bool) {
	t.tell("somebody cancels the run")
	t.mu.Lock()
	t.cancels = true
	t.mu.Unlock()
	for run, err := range t.store.ListRuns(t.ctx, semel.RunFilter{}) {
		if err != nil {
			t.fail(err)
			return
		}
		_, err := t.store.ChangeRun(t.ctx, run.ID, semel.RunCommand{Verb: semel.CancelRun, By: "operator", Reason: "drill"})
		if _, late := errors.AsType[*semel.RunStateError](err); late {
			continue
		}
		if err != nil {
			t.fail(err)
			return
		}
		if before {
			t.world.stop(run.ID)
		}
	}
}

// revoke takes back every approval.
func (t *trial) revoke() {
	for a, err := range t.store.Approvals(t.ctx, semel.ID{}, semel.ApprovalGiven) {
		if err != nil {
			t.fail(err)
			return
		}
		t.tell("the person takes the approval back")
		if _, err := t.store.Decide(t.ctx, a.ID, semel.Decision{State: semel.ApprovalRevoked, By: "operator", Digest: a.Digest}); err != nil {
			t.fail(err)
			return
		}
		t.world.revoke()
	}
}

// stop takes note of a run that must claim nothing from now on.
func (w *world) stop(run semel.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped[run] = true
}

// revoke takes note that nothing is approved any more.
func (w *world) revoke() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.revoked = true
}
