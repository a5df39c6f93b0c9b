package drill_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/drill"
)

// Code that takes another way after a known failure, or when time is up, loses
// nothing.
func TestAnotherWayIsNoLoss(t *testing.T) {
	unhurried(t)
	charge, mail := action("charge", keyed), action("mail", bare)
	for name, body := range map[string]func(semel.Context, order) error{
		"a failure is dealt with": func(ctx semel.Context, o order) error {
			if _, err := semel.Do(ctx, charge, o); err != nil {
				return ctx.Return("declined")
			}
			_, err := semel.Do(ctx, mail, o)
			return err
		},
		"a wait has an end": func(ctx semel.Context, o order) error {
			if _, err := semel.Wait[any](ctx, "paid", o.ID, 30*time.Second); errors.Is(err, semel.ErrTimedOut) {
				_, err = semel.Do(ctx, mail, o)
				return err
			} else if err != nil {
				return err
			}
			_, err := semel.Do(ctx, charge, o)
			return err
		},
		"a key is made once": func(ctx semel.Context, o order) error {
			at, err := semel.Now(ctx, "at")
			if err != nil {
				return err
			}
			_, err = semel.Do(ctx, charge, order{ID: at.String()})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			wf := semel.Workflow[order]{Name: "shop", Func: body}
			drill.Test(t, wf.Definition(), drill.Options{Input: order{ID: "o1"}, Pairs: 20})
		})
	}
}

// A workflow that does not come to its end unharmed cannot be drilled: half of
// it would look well.
func TestUnbrokenRunMustComplete(t *testing.T) {
	charge := action("charge", keyed)
	for want, then := range map[string]func(semel.Context) error{
		"boom":    func(semel.Context) error { panic("boom") },
		"no more": func(semel.Context) error { return errors.New("no more") },
	} {
		wf := semel.Workflow[order]{Name: "shop", Func: func(ctx semel.Context, o order) error {
			if _, err := semel.Do(ctx, charge, o); err != nil {
				return err
			}
			return then(ctx)
		}}
		_, err := drill.Run(t.Context(), wf.Definition(), drill.Options{Input: order{ID: "o1"}})
		if unbroken, ok := errors.AsType[*drill.UnbrokenError](err); !ok || !strings.Contains(unbroken.Why, want) {
			t.Errorf("got %v, want that it says %q", err, want)
		}
	}
}

// Two transfers that one lookup cannot tell apart: the second is taken for
// done.
func TestLookupThatFindsAnother(t *testing.T) {
	shared := looked
	shared.LookupURL = "http://bank/transfers?customer={body.id}"
	transfer := func(name string) semel.Action[order, answer] {
		a := action(name, shared)
		a.Send.Connection = "bank"
		return a
	}
	v, err := drill.Run(t.Context(), do(transfer("first"), transfer("second")).Definition(), drill.Options{Input: order{ID: "ann"}, Pairs: -1, Replay: drill.Schedule{{Fault: drill.RequestLost, Call: 10}}})
	if err != nil {
		t.Fatal(err)
	}
	if v.Lost != 1 {
		t.Errorf("%d lost, want 1:\n%s", v.Lost, strings.Join(v.Replay, "\n"))
	}
}
