package engine_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

// TestAListIsMadeOnce: what the code would list later does not count. A retry
// executes the items that failed, and no other.
func TestAListIsMadeOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		down := true
		w := &world{answer: func(n int, s *semel.Send) (semel.Event, bool) {
			if down && s.Operation.Key == "b-charge" {
				return semel.Event{Kind: semel.EvRefused, Reason: "closed"}, false
			}
			return confirmed(n), true
		}}
		charge := act("charge", w, semel.Contract{Protection: semel.Unprotected})
		due := []invoice{{ID: "a"}, {ID: "b"}}
		var called []string
		night := semel.Workflow[string]{Name: "night", Func: func(ctx semel.Context, _ string) error {
			return semel.Each(ctx, "bill", due, func(i invoice) string { return i.ID }, 1, func(ctx semel.Context, i invoice) error {
				called = append(called, i.ID)
				_, err := semel.Do(ctx, charge, i)
				return err
			})
		}}
		r := newRig(t, open(), night.Definition())
		run := r.pass(r.start(night.New("n-1", "")).ID)
		r.want(run, semel.RunFailed, "1 of 2 items of bill failed")
		down, due = false, []invoice{{ID: "b"}, {ID: "c"}}
		if _, err := r.runs.ChangeRun(t.Context(), run.ID, semel.RunCommand{Verb: semel.RetryRun, By: "ann", Reason: "it is open"}); err != nil {
			t.Fatal(err)
		}
		r.want(r.pass(run.ID), semel.RunCompleted, "")
		if want := []string{"a", "b", "b"}; !slices.Equal(called, want) || total(w) != 2 {
			t.Errorf("called for %v, %d effects; want %v, 2", called, total(w), want)
		}
	})
}

// hangs is code in which the worker hangs for ever, the first times.
type hangs struct {
	times   int
	hung    chan struct{}
	release chan struct{}
}

func (h *hangs) here() {
	if h.times > 0 {
		h.times--
		h.hung <- struct{}{}
		<-h.release
	}
}

// dies has workers hang over a run, one after the other, each of which counts
// as dead when its lease is over. It returns the next.
func (h *hangs) dies(t *testing.T, open func() shifted, dead *sync.WaitGroup, def semel.WorkflowDefinition, times int) *rig {
	t.Helper()
	r := newRig(t, open(), def)
	for n := range times {
		worker := r.w
		dead.Go(func() { _, _ = worker.Pass(t.Context()) })
		<-h.hung
		store := open()
		store.Shift(time.Duration(n+1) * time.Minute)
		r = newRig(t, store, def)
	}
	return r
}

// TestAnItemThatKillsWorkersIsHeld: after three deaths, which it takes to be
// sure, and the other items are executed.
func TestAnItemThatKillsWorkersIsHeld(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		var w world
		charge := act("charge", &w, semel.Contract{Protection: semel.Unprotected})
		h := &hangs{times: 3, hung: make(chan struct{}), release: make(chan struct{})}
		night := semel.Workflow[[]invoice]{Name: "night", Func: func(ctx semel.Context, due []invoice) error {
			return semel.Each(ctx, "bill", due, func(i invoice) string { return i.ID }, 1, func(ctx semel.Context, i invoice) error {
				if i.ID == "bad" {
					h.here()
				}
				_, err := semel.Do(ctx, charge, i)
				return err
			})
		}}
		run := newRig(t, open(), night.Definition()).start(night.New("n-1", []invoice{{ID: "a"}, {ID: "bad"}, {ID: "b"}}))
		var dead sync.WaitGroup
		defer dead.Wait()
		defer close(h.release)
		r := h.dies(t, open, &dead, night.Definition(), 3)
		r.want(r.pass(run.ID), semel.RunHeld, "the worker died while it executed bill[bad], more than once")
		wantEffects(t, &w, 2, 2)
	})
}

// TestARunThatKillsWorkersIsHeld: after five deaths in a row nobody executes it
// until a person says so.
func TestARunThatKillsWorkersIsHeld(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		var w world
		charge := act("charge", &w, semel.Contract{Protection: semel.Unprotected})
		h := &hangs{times: 5, hung: make(chan struct{}), release: make(chan struct{})}
		bill := semel.Workflow[invoice]{Name: "bill", Func: func(ctx semel.Context, i invoice) error {
			h.here()
			_, err := semel.Do(ctx, charge, i)
			return err
		}}
		run := newRig(t, open(), bill.Definition()).start(bill.New("b-1", invoice{ID: "i-1"}))
		var dead sync.WaitGroup
		defer dead.Wait()
		defer close(h.release)
		r := h.dies(t, open, &dead, bill.Definition(), 5)
		r.want(r.pass(run.ID), semel.RunHeld, "the worker died 5 times in a row")
		wantEffects(t, &w, 0, 0)
		if _, err := r.runs.ChangeRun(t.Context(), run.ID, semel.RunCommand{Verb: semel.RetryRun, By: "ann", Reason: "mended"}); err != nil {
			t.Fatal(err)
		}
		r.want(r.pass(run.ID), semel.RunCompleted, "")
		wantEffects(t, &w, 1, 1)
	})
}
