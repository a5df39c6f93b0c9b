package check_test

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/check"
)

// message and order are what the workflows of the page work on.
type (
	message struct{ Order, To, Text string }
	order   struct {
		ID      string
		Express bool
		Voucher string
	}
)

// action performs nothing; its destination knows a key.
func action[In any](name string, key func(In) string) semel.Action[In, struct{}] {
	contract := semel.Contract{Effect: semel.External, Protection: semel.Keyed, Window: 24 * time.Hour, Timeout: 5 * time.Second}
	return semel.Action[In, struct{}]{Name: name, Key: key, Send: semel.Perform(contract, func(context.Context, *semel.Send, In) (struct{}, error) {
		panic("a dry run performed " + name)
	})}
}

// onPage are the workflows in Go of docs/reference/findings.md, by the name that
// stands before the lines which the page shows.
func onPage(t *testing.T) map[string]check.Report {
	t.Helper()
	done := map[string]check.Report{}
	checked := func(name string, d semel.WorkflowDefinition, o check.Options) {
		r, err := check.Workflow(d, o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		done[name] = r
	}
	mailed := func(name string, key func(message) string) {
		mail := action("mail", key)
		w := semel.Workflow[message]{Name: "welcome", Owner: "sales", Func: func(ctx semel.Context, m message) error {
			_, err := semel.Do(ctx, mail, m)
			return err
		}}
		checked(name, w.Definition(), check.Options{Input: message{Order: "A-4417", To: "ann@example.com", Text: "hello"}})
	}
	// unstableKey
	key := func(m message) string { return m.Order + "-" + time.Now().Format(time.DateOnly) }
	// end
	mailed("unstableKey", key)
	// stableKey
	key = func(m message) string { return m.Order + "-welcome" }
	// end
	mailed("stableKey", key)

	orderID := func(o order) string { return "order-" + o.ID }
	charge, release, courier := action("charge", orderID), action("release", orderID), action("courier", orderID)
	w := semel.Workflow[order]{Name: "order", Owner: "billing"}
	// deferredRelease
	w.Func = func(ctx semel.Context, o order) error {
		defer func() { _, _ = semel.Do(ctx, release, o) }()
		_, err := semel.Do(ctx, charge, o)
		return err
	}
	// end
	checked("deferredRelease", w.Definition(), check.Options{Input: order{ID: "A-4417"}})
	// releaseInPlace
	w.Func = func(ctx semel.Context, o order) error {
		if _, err := semel.Do(ctx, charge, o); err != nil {
			return err
		}
		_, err := semel.Do(ctx, release, o)
		return err
	}
	// end
	checked("releaseInPlace", w.Definition(), check.Options{Input: order{ID: "A-4417"}})

	// oneKey
	w.Func = func(ctx semel.Context, o order) error {
		if _, err := semel.Do(ctx, charge, o); err != nil {
			return err
		}
		_, err := semel.Do(ctx.Named("charge-deposit"), charge, o)
		return err
	}
	// end
	checked("oneKey", w.Definition(), check.Options{Input: order{ID: "A-4417"}})
	// twoKeys
	w.Func = func(ctx semel.Context, o order) error {
		if _, err := semel.Do(ctx, charge, o); err != nil {
			return err
		}
		_, err := semel.Do(ctx.Named("charge-deposit"), charge, order{ID: o.ID + "-deposit"})
		return err
	}
	// end
	checked("twoKeys", w.Definition(), check.Options{Input: order{ID: "A-4417"}})
	// ofAMap
	w.Func = func(ctx semel.Context, o order) error {
		for part := range map[string]int{"pen": 2, "ink": 1, "nib": 5} {
			if _, err := semel.Do(ctx.Named("charge-"+part), charge, order{ID: o.ID + "-" + part}); err != nil {
				return err
			}
		}
		return nil
	}
	// end
	checked("ofAMap", w.Definition(), check.Options{Input: order{ID: "A-4417"}})
	// sorted
	w.Func = func(ctx semel.Context, o order) error {
		for _, part := range slices.Sorted(maps.Keys(map[string]int{"pen": 2, "ink": 1, "nib": 5})) {
			if _, err := semel.Do(ctx.Named("charge-"+part), charge, order{ID: o.ID + "-" + part}); err != nil {
				return err
			}
		}
		return nil
	}
	// end
	checked("sorted", w.Definition(), check.Options{Input: order{ID: "A-4417"}})
	// anyVoucher
	w.Func = func(ctx semel.Context, o order) error {
		o.Voucher = rand.Text()
		_, err := semel.Do(ctx, charge, o)
		return err
	}
	// end
	checked("anyVoucher", w.Definition(), check.Options{Input: order{ID: "A-4417"}})
	// keptVoucher
	w.Func = func(ctx semel.Context, o order) error {
		voucher, err := semel.Compute(ctx, "voucher", func() (string, error) { return rand.Text(), nil })
		if err != nil {
			return err
		}
		o.Voucher = voucher
		_, err = semel.Do(ctx, charge, o)
		return err
	}
	// end
	checked("keptVoucher", w.Definition(), check.Options{Input: order{ID: "A-4417"}})
	// goroutines
	w.Func = func(ctx semel.Context, o order) error {
		var both sync.WaitGroup
		both.Go(func() { _, _ = semel.Do(ctx, charge, o) })
		both.Go(func() { _, _ = semel.Do(ctx, courier, o) })
		both.Wait()
		return nil
	}
	// end
	checked("goroutines", w.Definition(), check.Options{Input: order{ID: "A-4417"}})
	// branches
	w.Func = func(ctx semel.Context, o order) error {
		return semel.Parallel(ctx, "both", map[string]func(semel.Context) error{
			"charge":  func(ctx semel.Context) error { _, err := semel.Do(ctx, charge, o); return err },
			"courier": func(ctx semel.Context) error { _, err := semel.Do(ctx, courier, o); return err },
		})
	}
	// end
	checked("branches", w.Definition(), check.Options{Input: order{ID: "A-4417"}})
	charged := func(name string, c semel.Contract) {
		charge := with[order, struct{}]("charge", c, orderID)
		w.Func = func(ctx semel.Context, o order) error { _, err := semel.Do(ctx, charge, o); return err }
		checked(name, w.Definition(), check.Options{Input: order{ID: "A-4417"}})
	}
	// noWindow
	contract := semel.Contract{Effect: semel.External, Protection: semel.Keyed, Timeout: 5 * time.Second}
	// end
	charged("noWindow", contract)
	// aWindow
	contract = semel.Contract{Effect: semel.External, Protection: semel.Keyed, Timeout: 5 * time.Second, Window: 24 * time.Hour}
	// end
	charged("aWindow", contract)

	w.Actions = []semel.Definition{charge.Definition(), courier.Definition()}
	w.Func = func(ctx semel.Context, o order) error {
		if _, err := semel.Do(ctx, charge, o); err != nil || !o.Express {
			return err
		}
		_, err := semel.Do(ctx, courier, o)
		return err
	}
	// notReached
	options := check.Options{Input: order{ID: "A-4417"}}
	// end
	checked("notReached", w.Definition(), options)
	// reached
	options = check.Options{Input: order{ID: "A-4417", Express: true}}
	// end
	checked("reached", w.Definition(), options)
	return done
}
