package drill_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/drill"
)

// cell is what a drill says of a step under one fault.
type cell struct {
	fault drill.Fault
	step  string
	want  drill.Outcome
}

// M38: workflows that are wrong, each as people write them. Some the drill
// shows, some Semel holds before anything happens twice, and some nobody can
// see from here: those trust what the contract declares.
func TestCorpusWorkflows(t *testing.T) {
	unhurried(t)
	var clock atomic.Int64 // of code that looks at its own
	pay, wire := action("pay", bare), action("wire", bare)
	set := func(name string) semel.Action[order, answer] {
		a := action(name, status)
		a.Send.Connection = "board"
		a.Send.Request = func(order) (semel.Request, error) {
			return semel.Request{Kind: "call", URL: "https://board.example/o1", Body: []byte(`"` + name + `"`), MediaType: "application/json"}, nil
		}
		return a
	}
	cases := []struct {
		name  string
		steps func(semel.Context, order) error
		cells []cell
		bad   bool // the drill fails
	}{
		{
			"two values are set on one subject", do(set("packed"), set("shipped")).Func,
			[]cell{{drill.LandsLate, "shipped", drill.Lost}, {drill.AnswerLost, "shipped", drill.Once}},
			true,
		},
		{ // Do returns only where nothing happened, so no second key is made
			"a loop mints keys", func(ctx semel.Context, o order) error {
				var err error
				for try := range 3 {
					var id float64
					if id, err = semel.Random(ctx, fmt.Sprint("id-", try)); err != nil {
						return err
					}
					if _, err = semel.Do(ctx.Named(fmt.Sprint("try-", try)), action("publish", looked), order{ID: fmt.Sprint(id)}); err == nil {
						return nil
					}
				}
				return err
			},
			[]cell{{drill.AnswerLost, "try-0", drill.Once}, {drill.LookupBlind, "try-0", drill.Once}, {drill.DiesAfter, "try-0", drill.Once}},
			false,
		},
		{
			"a step without a key behind code that changes its request", func(ctx semel.Context, _ order) error {
				a := action("note", bare)
				a.Key = nil
				_, err := semel.Do(ctx, a, order{ID: fmt.Sprint(clock.Add(1))})
				return err
			},
			[]cell{{drill.AnswerLost, "note", drill.Unknown}, {drill.DiesAfter, "note", drill.Unknown}},
			false,
		},
		{ // the record names the first key, and the run is held
			"a key that depends on the time", func(ctx semel.Context, _ order) error {
				_, err := semel.Do(ctx, action("note", bare), order{ID: fmt.Sprint(clock.Add(1))})
				return err
			},
			[]cell{{drill.DiesAfter, "note", drill.Unknown}},
			false,
		},
		{ // the simulated destination keeps what is declared: this cannot be seen
			"a charge that is declared to commute", do(action("charge", tag)).Func,
			[]cell{{drill.AnswerLost, "charge", drill.Once}, {drill.DiesAfter, "charge", drill.Once}},
			false,
		},
		{
			"a failure is swallowed, and another way is taken", func(ctx semel.Context, o order) error {
				_, err := semel.Do(ctx, pay, o)
				if _, ok := errors.AsType[*semel.FailedError](err); ok {
					_, err = semel.Do(ctx, wire, o)
				}
				return err
			},
			[]cell{{drill.Refused, "pay", drill.Never}, {drill.Refused, "wire", drill.Once}, {drill.AnswerLost, "pay", drill.Unknown}, {drill.AnswerLost, "wire", ""}},
			false,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			def := semel.Workflow[order]{Name: "wrong", Func: c.steps}.Definition()
			v, err := drill.Run(t.Context(), def, drill.Options{Input: order{ID: "o1"}, Pairs: -1})
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range c.cells {
				i := slices.IndexFunc(v.Rows, func(r drill.Row) bool { return r.Fault == want.fault })
				if i < 0 {
					t.Errorf("%s: no row", want.fault)
				} else if got := v.Rows[i].Cells[want.step]; got != want.want {
					t.Errorf("%s: %s is %q, want %q", want.fault, want.step, got, want.want)
				}
			}
			if v.OK() == c.bad {
				t.Errorf("%d twice and %d lost, want bad: %v", v.Twice, v.Lost, c.bad)
			}
			for _, s := range v.Stories {
				t.Logf("%s %s: %s\n%s", s.Outcome, s.Step, s.Why, strings.Join(s.Lines, "\n"))
			}
		})
	}
}

// A key that leaves out the item is one effect for all of them: the list is
// held before a second one could be taken for the first.
func TestCorpusKeyWithoutTheItem(t *testing.T) {
	def := semel.Workflow[order]{Name: "wrong", Func: func(ctx semel.Context, o order) error {
		return semel.Each(ctx, "items", o.Items, func(i string) string { return i }, 2, func(ctx semel.Context, i string) error {
			a := action("note", bare)
			a.Key = func(order) string { return o.ID }
			_, err := semel.Do(ctx, a, order{ID: i})
			return err
		})
	}}.Definition()
	_, err := drill.Run(t.Context(), def, drill.Options{Input: order{ID: "o1", Items: []string{"a", "b"}}, Pairs: -1})
	unbroken, ok := errors.AsType[*drill.UnbrokenError](err)
	if !ok || !strings.Contains(unbroken.Why, "this key belongs to another request") {
		t.Errorf("got %v, want a run that is held even where nothing is broken", err)
	}
}
