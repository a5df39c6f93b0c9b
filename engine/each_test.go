package engine_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

// TestItemsThatSleepKeepTheirWaits: an execution that another item woke leaves
// alone what still waits, and forgets none of it.
func TestItemsThatSleepKeepTheirWaits(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := &world{answer: silent}
		charge, mail := act("charge", w, semel.Contract{Protection: semel.Unprotected}), act("mail", w, semel.Contract{Protection: semel.Unprotected})
		night := semel.Workflow[[]invoice]{Name: "night", Func: func(ctx semel.Context, due []invoice) error {
			return semel.Each(ctx, "bill", due, func(i invoice) string { return i.ID }, 1, func(ctx semel.Context, i invoice) error {
				if _, err := semel.Do(ctx, charge, i); err != nil {
					return err
				}
				_, err := semel.Do(ctx, mail, i)
				return err
			})
		}}
		r := newRig(t, open(), night.Definition())
		run := r.pass(r.start(night.New("n-1", []invoice{{ID: "a"}, {ID: "b"}})).ID)
		for _, path := range []string{"bill[a]/charge", "bill[b]/charge", "bill[b]/mail", "bill[a]/mail"} {
			r.want(run, semel.RunHeld, "outcome unknown")
			steps, err := r.runs.Steps(t.Context(), run.ID)
			if err != nil {
				t.Fatal(err)
			}
			settled := false
			for _, s := range steps {
				if s.Path != path || s.Effect == nil {
					continue
				}
				if _, err := r.e.Settle(t.Context(), s.Operation, engine.Settlement{Happened: true, By: "ann", Reason: "seen"}); err != nil {
					t.Fatal(err)
				}
				settled = true
			}
			if !settled {
				t.Fatalf("step %s was not reached", path)
			}
			run = r.pass(run.ID)
		}
		r.want(run, semel.RunCompleted, "")
	})
}

// TestDeathsOverDifferentItemsBlameNone: three workers in a row hang for ever,
// each while it executes another item; the fourth finishes the list.
func TestDeathsOverDifferentItemsBlameNone(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		var w world
		charge := act("charge", &w, semel.Contract{Protection: semel.Unprotected})
		var died sync.Map
		hung, release := make(chan struct{}), make(chan struct{})
		night := semel.Workflow[[]invoice]{Name: "night", Func: func(ctx semel.Context, due []invoice) error {
			return semel.Each(ctx, "bill", due, func(i invoice) string { return i.ID }, 1, func(ctx semel.Context, i invoice) error {
				if _, again := died.LoadOrStore(i.ID, true); !again && i.ID < "i-3" {
					hung <- struct{}{}
					<-release
				}
				_, err := semel.Do(ctx, charge, i)
				return err
			})
		}}
		store := open()
		r := newRig(t, store, night.Definition())
		run := r.start(night.New("n-1", []invoice{{ID: "i-0"}, {ID: "i-1"}, {ID: "i-2"}, {ID: "i-3"}}))
		var dead sync.WaitGroup
		defer dead.Wait()
		defer close(release)
		for n := range 3 {
			worker := r.w
			dead.Go(func() { _, _ = worker.Pass(t.Context()) })
			<-hung
			store = open()
			store.Shift(time.Duration(n+1) * time.Minute) // of a handle, from now
			r = newRig(t, store, night.Definition())
		}
		run = r.pass(run.ID)
		r.want(run, semel.RunCompleted, "")
		if total(&w) != 4 {
			t.Errorf("%d effects, want 4", total(&w))
		}
	})
}

// Law 2: code that stops because its worker does has not failed, whatever error
// it makes of that, and has not changed.
func TestCodeThatStopsWithItsWorkerHasNotFailed(t *testing.T) {
	for _, where := range []string{"run", "item"} {
		t.Run(where, func(t *testing.T) {
			eachStore(t, func(t *testing.T, open func() shifted) {
				var w world
				charge, ship := act("charge", &w, semel.Contract{Protection: semel.Unprotected}), act("ship", &w, semel.Contract{Protection: semel.Unprotected})
				var calls atomic.Int32
				entered := make(chan struct{})
				body := func(ctx semel.Context, i invoice) error {
					if _, err := semel.Do(ctx, charge, i); err != nil {
						return err
					}
					if calls.Add(1) == 2 { // this time something between the steps takes long
						close(entered)
						<-ctx.Done()
						return errors.New("connection closed")
					}
					if _, err := semel.Do(ctx, ship, i); err != nil {
						return err
					}
					return semel.Sleep(ctx, "rest", time.Hour)
				}
				wf := semel.Workflow[invoice]{Name: "bill", Func: func(ctx semel.Context, i invoice) error {
					if where == "run" {
						return body(ctx, i)
					}
					return semel.Each(ctx, "of", []invoice{i}, func(i invoice) string { return i.ID }, 1, body)
				}}
				store := open()
				r := newRig(t, store, wf.Definition())
				run := r.pass(r.start(wf.New("k", invoice{ID: "i"})).ID)
				r.want(run, semel.RunWaiting, "rest")
				store.Shift(time.Hour)
				ended := make(chan error, 1)
				go func() { ended <- r.w.Run(context.WithoutCancel(t.Context())) }()
				<-entered
				if err := r.e.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := <-ended; err != nil {
					t.Fatal(err)
				}
				r.want(r.load(run.ID), semel.RunRunning, "")
				r = newRig(t, store, wf.Definition())
				r.want(r.pass(run.ID), semel.RunCompleted, "")
				if n := total(&w); n != 2 {
					t.Errorf("%d effects, want 2", n)
				}
			})
		})
	}
}

// An item whose code does not come to the steps on record any more needs a
// person, also where it returns an error.
func TestItemThatLostAStepIsHeldThoughItFails(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() shifted) {
		w := &world{answer: func(int, *semel.Send) (semel.Event, bool) { return lost("timeout"), true }}
		charge := act("charge", w, semel.Contract{Protection: semel.Unprotected})
		define := func(broken error) semel.WorkflowDefinition {
			return semel.Workflow[invoice]{Name: "bill", Func: func(ctx semel.Context, i invoice) error {
				return semel.Each(ctx, "of", []invoice{i}, func(i invoice) string { return i.ID }, 1, func(ctx semel.Context, i invoice) error {
					if broken != nil {
						return broken
					}
					_, err := semel.Do(ctx, charge, i)
					return err
				})
			}}.Definition()
		}
		store := open()
		r := newRig(t, store, define(nil))
		run := r.pass(r.start(semel.NewRun{Workflow: "bill", Version: 1, Key: "k", Input: []byte(`{"id":"i"}`)}, nil).ID)
		r.want(run, semel.RunHeld, "unknown")
		r = newRig(t, store, define(errors.New("no template")))
		store.Shift(time.Hour)
		r.want(r.pass(run.ID), semel.RunHeld, "no longer reaches; it returned: no template")
	})
}
