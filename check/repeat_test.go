package check_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/check"
)

// TestWorkflowsThatDoNotRepeat: what a run would be held for after a crash, and
// what only looks like it.
func TestWorkflowsThatDoNotRepeat(t *testing.T) {
	type do = func(ctx semel.Context, p payment) error
	charge, refund := with[payment, string]("charge", byKey, byID), with[payment, string]("refund", byKey, byID)
	read := with[payment, string]("read", semel.Contract{Protection: semel.Commutes}, byID)
	volatile := charge
	volatile.Volatile = []string{"token"}
	parts := map[string]int{"pen": 1, "ink": 2}
	tests := map[string]struct {
		run  do
		want []string
	}{
		"random in a body": {func(ctx semel.Context, p payment) error {
			p.Token = fmt.Sprint(rand.Int64())
			_, err := semel.Do(ctx, charge, p)
			return err
		}, []string{"charge: error unstable_request"}},
		"time in a body": {func(ctx semel.Context, p payment) error {
			p.Token = time.Now().String()
			_, err := semel.Do(ctx, charge, p)
			return err
		}, []string{"charge: error unstable_request"}},
		"today in a body": {func(ctx semel.Context, p payment) error {
			p.Token = time.Now().Format("02.01.2006")
			_, err := semel.Do(ctx, charge, p)
			return err
		}, []string{"charge: error unstable_request"}},
		"the second in a body": {func(ctx semel.Context, p payment) error {
			p.Token = fmt.Sprint(time.Now().Unix())
			_, err := semel.Do(ctx, charge, p)
			return err
		}, []string{"charge: error unstable_request"}},
		"the second in a key": {func(ctx semel.Context, p payment) error {
			_, err := semel.Do(ctx, with[payment, string]("charge", byKey, func(p payment) string { return fmt.Sprint(p.ID, "-", time.Now().Unix()) }), p)
			return err
		}, []string{"charge: error unstable_key"}},
		"the run's id in a key": {func(ctx semel.Context, p payment) error {
			_, err := semel.Do(ctx, with[payment, string]("charge", byKey, func(payment) string { return ctx.Run().ID.String() }), p)
			return err
		}, []string{"charge: error unstable_key"}},
		"random in a volatile member": {func(ctx semel.Context, p payment) error {
			p.Token = fmt.Sprint(rand.Int64())
			_, err := semel.Do(ctx, volatile, p)
			return err
		}, nil},
		"random in a read": {func(ctx semel.Context, p payment) error {
			p.Token = fmt.Sprint(rand.Int64())
			_, err := semel.Do(ctx, read, p)
			return err
		}, nil},
		"recorded chance and time": {func(ctx semel.Context, p payment) error {
			now, err := semel.Now(ctx, "now")
			if err != nil {
				return err
			}
			chance, err := semel.Random(ctx, "chance")
			if err != nil {
				return err
			}
			p.Token = fmt.Sprint(now, chance)
			_, err = semel.Do(ctx, charge, p)
			return err
		}, nil},
		"the order of a map": {func(ctx semel.Context, p payment) error {
			for part := range parts {
				item := p
				item.ID += "-" + part
				if _, err := semel.Do(ctx.Named(part), charge, item); err != nil {
					return err
				}
			}
			return nil
		}, []string{"*: error unstable_steps"}},
		"the order of a map, as a recorded list": {func(ctx semel.Context, p payment) error {
			var names []string
			for part := range parts {
				names = append(names, part)
			}
			return semel.Each(ctx, "parts", names, func(s string) string { return s }, 1, func(ctx semel.Context, part string) error {
				p := p
				p.ID += "-" + part
				_, err := semel.Do(ctx, charge, p)
				return err
			})
		}, nil},
		"chance decides": {func(ctx semel.Context, p payment) error {
			if rand.IntN(2) == 0 {
				return semel.Sleep(ctx, "rest", time.Hour)
			}
			return semel.Sleep(ctx, "rest-long", time.Hour)
		}, []string{"*: error unstable_steps"}},
		"another event": {func(ctx semel.Context, p payment) error {
			_, err := semel.Wait[string](ctx, "paid", fmt.Sprint(rand.Int64()), time.Hour)
			return err
		}, []string{"paid: error unstable_request"}},
		"another approval": {func(ctx semel.Context, p payment) error {
			p.Token = fmt.Sprint(rand.Int64())
			return semel.Approve(ctx, refund, p, semel.Ask{})
		}, []string{"approve-refund: error unstable_request"}},
		"another child": {func(ctx semel.Context, p payment) error {
			p.Token = fmt.Sprint(rand.Int64())
			_, err := semel.Child(ctx, semel.Workflow[payment]{Name: "child"}, "c", p)
			return err
		}, []string{"child: error unstable_request", "child: note not_checked"}},
		"the attempt": {func(ctx semel.Context, p payment) error {
			p.Cents += ctx.Run().Attempt
			_, err := semel.Do(ctx, charge, p)
			return err
		}, []string{"charge: error unstable_request"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := briefly(checkedRun(t, test.run, check.Options{Input: anns}).Findings)
			for i := range got {
				if i < len(test.want) && test.want[i][0] == '*' {
					got[i] = "*" + got[i][indexOf(got[i], ':'):]
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func indexOf(s string, c byte) int {
	for i := range len(s) {
		if s[i] == c {
			return i
		}
	}
	return 0
}

func checkedRun(t *testing.T, run func(semel.Context, payment) error, o check.Options) check.Report {
	t.Helper()
	w := semel.Workflow[payment]{Name: "corpus", Owner: "desk", Func: run}
	r, err := check.Workflow(w.Definition(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestWrongUseOfAContext: what an engine holds a run for is found, and nothing
// else is made of it.
func TestWrongUseOfAContext(t *testing.T) {
	type do = func(ctx semel.Context, p payment) error
	charge, refund := with[payment, string]("charge", byKey, byID), with[payment, string]("refund", byKey, byID)
	step := func(ctx semel.Context, a semel.Action[payment, string], p payment) error {
		_, err := semel.Do(ctx, a, p)
		return err
	}
	tests := map[string]do{
		"two goroutines": func(ctx semel.Context, p payment) error {
			var both sync.WaitGroup
			both.Go(func() { _ = step(ctx, charge, p) })
			both.Go(func() { _ = step(ctx, refund, p) })
			both.Wait()
			return nil
		},
		"many goroutines beside the function": func(ctx semel.Context, p payment) error {
			var all sync.WaitGroup
			for i := range 20 {
				all.Go(func() { _ = step(ctx.Named(fmt.Sprint("charge-", i)), charge, p) })
				_ = step(ctx.Named(fmt.Sprint("refund-", i)), refund, p)
			}
			all.Wait()
			return nil
		},
		"one goroutine, waited for by a channel": func(ctx semel.Context, p payment) error {
			done := make(chan error)
			go func() { done <- step(ctx, charge, p) }()
			return <-done
		},
		"a branch with the outer Context": func(ctx semel.Context, p payment) error {
			return semel.Parallel(ctx, "both", map[string]func(semel.Context) error{
				"a": func(semel.Context) error { return step(ctx, charge, p) },
				"b": func(ctx semel.Context) error { return step(ctx, refund, p) },
			})
		},
		"an item with the outer Context": func(ctx semel.Context, p payment) error {
			return semel.Each(ctx, "lines", p.Lines, func(s string) string { return s }, 1, func(_ semel.Context, line string) error {
				p.ID = line
				return step(ctx.Named(line), charge, p)
			})
		},
		"a branch that is over": func(ctx semel.Context, p payment) error {
			var kept semel.Context
			_ = semel.Parallel(ctx, "both", map[string]func(semel.Context) error{
				"a": func(ctx semel.Context) error { kept = ctx; return nil },
			})
			return step(kept, charge, p)
		},
		"a step within a value": func(ctx semel.Context, p payment) error {
			_, err := semel.Compute(ctx, "value", func() (int, error) { return 1, step(ctx, charge, p) })
			return err
		},
	}
	for name, run := range tests {
		t.Run(name, func(t *testing.T) {
			r := checkedRun(t, run, check.Options{Input: anns})
			if len(r.Findings) != 1 || r.Findings[0].Code != "wrong_context" || r.Findings[0].Severity != "error" || r.Findings[0].Step == "" {
				t.Errorf("found %v, want wrong_context alone", r.Findings)
			}
		})
	}
}

// TestAForeignGoroutineStrandsNobody: a function that waits for ever is left
// alone.
func TestAForeignGoroutineStrandsNobody(t *testing.T) {
	charge := with[payment, string]("charge", byKey, byID)
	end := make(chan struct{})
	defer close(end)
	r := checkedRun(t, func(ctx semel.Context, p payment) error {
		go func() { _, _ = semel.Do(ctx, charge, p) }()
		<-end
		return nil
	}, check.Options{Input: anns})
	if len(r.Findings) != 1 || r.Findings[0].Code != "wrong_context" {
		t.Errorf("found %v, want wrong_context", r.Findings)
	}
}
