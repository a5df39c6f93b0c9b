package semeltest_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/semeltest"
)

// What Go code can do wrong with a Context is harmless, or the run is held with
// a sentence that says what to do. It is never a second effect, and a suspended
// branch never records a result.

// group is errgroup as far as it matters here: Wait returns nil where a child
// ended its goroutine.
type group struct {
	wg   sync.WaitGroup
	once sync.Once
	err  error
}

func (g *group) Go(fn func() error) {
	g.wg.Go(func() {
		if err := fn(); err != nil {
			g.once.Do(func() { g.err = err })
		}
	})
}

func (g *group) Wait() error {
	g.wg.Wait()
	return g.err
}

const ownGoroutine = "from a goroutine that the workflow started itself: parallel work is for Each and Parallel"

func TestMisuseIsHeld(t *testing.T) {
	do := func(ctx semel.Context, name string, in invoice) error {
		_, err := semel.Do(ctx.Named(name), charge, invoice{ID: name + in.ID})
		return err
	}
	tests := map[string]struct {
		fn     func(ctx semel.Context, in invoice) error
		reason string
		most   int // charges that may happen
	}{
		"errgroup": {func(ctx semel.Context, in invoice) error {
			var g group
			for _, name := range []string{"a", "b", "c"} {
				g.Go(func() error { return do(ctx, name, in) })
			}
			if err := g.Wait(); err != nil {
				return err
			}
			return do(ctx, "after", in)
		}, "wrong use of a Context", 0},
		"one goroutine, waited for": {func(ctx semel.Context, in invoice) error {
			var wg sync.WaitGroup
			wg.Go(func() { _ = do(ctx, "a", in) })
			wg.Wait()
			return nil
		}, ownGoroutine, 0},
		"a goroutine that sleeps": {func(ctx semel.Context, in invoice) error {
			var g group
			g.Go(func() error { return semel.Sleep(ctx, "rest", time.Hour) })
			if err := g.Wait(); err != nil {
				return err
			}
			return do(ctx, "too-early", in)
		}, ownGoroutine, 0},
		"select": {func(ctx semel.Context, in invoice) error {
			answer := make(chan error)
			go func() { answer <- do(ctx, "a", in) }()
			select {
			case err := <-answer:
				return err
			case <-time.After(50 * time.Millisecond):
				return do(ctx, "another-way", in)
			}
		}, ownGoroutine, 0},
		"wait for a goroutine's answer": {func(ctx semel.Context, in invoice) error {
			answer := make(chan error)
			go func() { answer <- do(ctx, "a", in) }()
			return <-answer // never comes
		}, ownGoroutine, 0},
		"a step inside Compute": {func(ctx semel.Context, in invoice) error {
			_, err := semel.Compute(ctx, "total", func() (int, error) { return 1, do(ctx, "a", in) })
			return err
		}, "steps total and a run at once on one Context", 0},
		"the outer Context in Each": {func(outer semel.Context, in invoice) error {
			return semel.Each(outer, "names", []string{"x", "y"}, func(s string) string { return s }, 2, func(_ semel.Context, s string) error {
				return do(outer, s, in)
			})
		}, "run at once on one Context: parallel work is for Each and Parallel, with the Context that they hand on", 0},
		"a panic": {func(ctx semel.Context, in invoice) error {
			if err := do(ctx, "a", in); err != nil {
				return err
			}
			panic("oh no")
		}, "panicked: oh no", 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			billing := workflow(test.fn)
			w := semeltest.New(t, billing.Definition())
			run := w.Run(billing.New("", one))
			wantRun(t, run, semel.RunHeld, test.reason)
			if len(run.Result) > 0 {
				t.Errorf("a held run has the result %s", run.Result)
			}
			if n := len(w.Requests("charge")); n > test.most {
				t.Errorf("%d requests were sent, want at most %d", n, test.most)
			}
			w.Change(run, semel.RetryRun)
			wantRun(t, w.Await(run), semel.RunHeld, test.reason)
			if n := len(w.Requests("charge")); n > test.most {
				t.Errorf("%d requests were sent after a retry, want at most %d", n, test.most)
			}
		})
	}
}

func TestHabitsThatAreHarmless(t *testing.T) {
	rest := func(ctx semel.Context) error { return semel.Sleep(ctx, "rest", time.Hour) }
	tests := map[string]func(ctx semel.Context, in invoice) error{
		"recover around a suspension": func(ctx semel.Context, in invoice) (err error) {
			func() {
				defer func() {
					if r := recover(); r != nil {
						err = errors.New("a suspension is no panic")
					}
				}()
				err = rest(ctx)
			}()
			if err != nil {
				return err
			}
			_, err = semel.Do(ctx, charge, in)
			return err
		},
		"a deferred step": func(ctx semel.Context, in invoice) (err error) {
			defer func() { _, err = semel.Do(ctx, charge, in) }()
			return rest(ctx)
		},
		"a deferred result": func(ctx semel.Context, in invoice) error {
			done := "too early"
			defer func() { _ = ctx.Return(done) }()
			if err := rest(ctx); err != nil {
				return err
			}
			_, err := semel.Do(ctx, charge, in)
			done = "done"
			return err
		},
		"a deferred panic": func(ctx semel.Context, in invoice) error {
			slept := false
			defer func() {
				if !slept {
					panic("not slept")
				}
			}()
			if err := rest(ctx); err != nil {
				return err
			}
			slept = true
			_, err := semel.Do(ctx, charge, in)
			return err
		},
		"an error that is swallowed": func(ctx semel.Context, in invoice) error {
			_ = rest(ctx)
			_, _ = semel.Do(ctx, charge, in)
			return nil
		},
		"work of its own beside the steps": func(ctx semel.Context, in invoice) error {
			var g group
			total := int64(0)
			g.Go(func() error { total = in.Cents * 2; return nil })
			if err := errors.Join(g.Wait(), rest(ctx)); err != nil {
				return err
			}
			_, err := semel.Do(ctx, charge, invoice{ID: in.ID, Cents: total})
			return err
		},
		"a lock that is held over a suspension": func() func(ctx semel.Context, in invoice) error {
			var mu sync.Mutex
			return func(ctx semel.Context, in invoice) error {
				mu.Lock()
				defer mu.Unlock()
				if err := rest(ctx); err != nil {
					return err
				}
				_, err := semel.Do(ctx, charge, in)
				return err
			}
		}(),
	}
	for name, fn := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			billing := workflow(fn)
			w := semeltest.New(t, billing.Definition())
			w.On("charge", semeltest.LostAfter(nil), semeltest.Completed(nil))
			run := w.Start(billing.New("", one))
			w.Advance(0)
			if waits := w.Runs()[0]; waits.State != semel.RunWaiting || len(waits.Result) > 0 || len(w.Steps(run)) > 0 {
				t.Errorf("suspended run is %s (%s) with result %q and steps %v", waits.State, waits.Reason, waits.Result, w.Steps(run))
			}
			wantCount(t, w, "charge", 0, 0)
			wantRun(t, w.Await(run), semel.RunCompleted)
			wantCount(t, w, "charge", 2, 1)
		})
	}
}

// TestAGoroutineThatOutlivesTheWorkflowSendsNothing: its run has ended.
func TestAGoroutineThatOutlivesTheWorkflowSendsNothing(t *testing.T) {
	returned, tried := make(chan struct{}), make(chan struct{})
	billing := workflow(func(ctx semel.Context, in invoice) error {
		go func() {
			defer close(tried)
			<-returned
			_, _ = semel.Do(ctx, charge, in)
		}()
		return nil
	})
	w := semeltest.New(t, billing.Definition())
	wantRun(t, w.Run(billing.New("", one)), semel.RunCompleted)
	close(returned)
	<-tried
	wantCount(t, w, "charge", 0, 0)
}

// TestTheContextOfAnEarlierExecutionIsOver: a run is executed again with a
// Context of its own.
func TestTheContextOfAnEarlierExecutionIsOver(t *testing.T) {
	var kept *semel.Context
	billing := workflow(func(ctx semel.Context, in invoice) error {
		if kept == nil {
			kept = &ctx
		}
		if err := semel.Sleep(ctx, "rest", time.Hour); err != nil {
			return err
		}
		_, err := semel.Do(*kept, charge, in)
		return err
	})
	w := semeltest.New(t, billing.Definition())
	run := w.Run(billing.New("", one))
	wantRun(t, run, semel.RunHeld, "ended its goroutine by itself")
	wantCount(t, w, "charge", 0, 0)
}

// TestTheContextOfAnotherItemIsOver: what one item does is never recorded as
// another's.
func TestTheContextOfAnotherItemIsOver(t *testing.T) {
	var first *semel.Context
	billing := workflow(func(ctx semel.Context, in invoice) error {
		return semel.Each(ctx, "names", []string{"x", "y"}, func(s string) string { return s }, 1, func(ctx semel.Context, s string) error {
			if first == nil {
				first = &ctx
			}
			_, err := semel.Do(*first, charge, invoice{ID: s})
			return err
		})
	})
	w := semeltest.New(t, billing.Definition())
	wantRun(t, w.Run(billing.New("", one)), semel.RunHeld, "a step on the Context of a branch that is over")
	wantCount(t, w, "charge", 1, 1)
}

// TestAHeldRunStaysHeld: a wait from before that is over meanwhile does not
// wake it, and a sleep that began is not begun anew.
func TestAHeldRunStaysHeld(t *testing.T) {
	waits := map[string]func(semel.Context, invoice) error{
		"time": func(ctx semel.Context, _ invoice) error { return semel.Sleep(ctx, "rest", time.Hour) },
		"event": func(ctx semel.Context, in invoice) error {
			_, err := semel.Wait[charged](ctx, "paid", in.ID, 0)
			return err
		},
		"approval": func(ctx semel.Context, in invoice) error { return semel.Approve(ctx, charge, in, semel.Ask{}) },
	}
	for name, wait := range waits {
		for bug, broken := range map[string]func(ctx semel.Context, in invoice) error{
			"changed code": func(ctx semel.Context, in invoice) error { _, err := semel.Do(ctx, mail, in); return err },
			"a panic":      func(semel.Context, invoice) error { panic("oh no") },
		} {
			t.Run(name+", "+bug, func(t *testing.T) {
				t.Parallel()
				sound := workflow(wait)
				faulty := workflow(func(ctx semel.Context, in invoice) error { return errors.Join(broken(ctx, in), wait(ctx, in)) })
				w := semeltest.New(t, sound.Definition())
				began := w.Now()
				run := w.Start(sound.New("", one))
				w.Advance(0)
				w.Restart(faulty.Definition())
				switch name {
				case "event":
					w.Send("paid", one.ID, nil)
				case "approval":
					w.Approve(run)
				}
				w.Advance(30 * time.Minute)
				w.Advance(time.Hour)
				held := w.Await(run)
				wantRun(t, held, semel.RunHeld)
				if held.Attempt > 3 {
					t.Errorf("it was executed %d times", held.Attempt)
				}
				w.Restart(sound.Definition())
				w.Change(run, semel.RetryRun)
				wantRun(t, w.Await(run), semel.RunCompleted)
				if took := w.Now().Sub(began); took > 2*time.Hour {
					t.Errorf("it slept anew: %v", took)
				}
				wantCount(t, w, "mail", 0, 0)
			})
		}
	}
}
