package drill

import (
	"fmt"
	"testing"

	"github.com/semel-dev/semel"
)

// wrongEngine performs the items of lists that it was made to, and says of
// every step what it was made to say.
type wrongEngine struct {
	run   semel.Run
	items []string
	rec   semel.StepRecord
	err   error
}

func (e *wrongEngine) Run() *semel.Run  { return &e.run }
func (e *wrongEngine) Return(any) error { return nil }

func (e *wrongEngine) Step(ctx semel.Context, path string, s semel.Step) (semel.StepRecord, error) {
	if list, ok := s.(*semel.EachStep); ok {
		for i, key := range e.items {
			if err := list.Body(semel.NewContext(ctx, e, path+"["+key+"]"), list.Items[i]); err != nil {
				return e.rec, err
			}
		}
	}
	return e.rec, e.err
}

// on is a trial of a workflow that a wrong engine executes.
func on(t *testing.T, e *wrongEngine) (*trial, *process) {
	t.Helper()
	d, remove, err := prepare(everyFault(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(remove)
	tried := d.trial(t.Context(), nil)
	if tried.player, tried.store, err = d.player(t.Context(), tried); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tried.store.Close() })
	e.run = semel.Run{ID: semel.NewID(epoch, [10]byte{1}), Workflow: "shop", Key: "drill", State: semel.RunCompleted}
	return tried, tried.process()
}

// M5: no item is left out.
func TestAnItemThatIsLeftOutIsLost(t *testing.T) {
	cases := []struct {
		name  string
		asked [][]string // the keys of the list, each time that the code asks for it
		items []string   // that are executed
		want  string
	}{
		{"all are done", [][]string{{"a", "b"}}, []string{"a", "b"}, ""},
		{"one is left out", [][]string{{"a", "b"}}, []string{"a"}, "it is completed, though items[b] was left out"},
		{"the code brings another list", [][]string{{"a"}, {"a", "b"}}, []string{"a"}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := &wrongEngine{items: c.items}
			tried, p := on(t, e)
			ctx := semel.NewContext(t.Context(), p.executor(e), "")
			for _, keys := range c.asked {
				err := semel.Each(ctx, "items", keys, func(s string) string { return s }, 1, func(semel.Context, string) error { return nil })
				if err != nil {
					t.Fatal(err)
				}
			}
			tried.setReturned(e.run.ID)
			if got := tried.stranded(t.Context(), &e.run, nil); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// Law 12: an error is never an invitation.
func TestWhatNobodyKnowsIsNoFailure(t *testing.T) {
	of := intention{"shop", "o1"}
	attempt := func(n int, state semel.State) *semel.Operation {
		o := semel.Operation{Identity: semel.Identity{Scope: of.scope, Key: of.key, Step: "note"}, State: state, Attempt: n}
		o.Contract.Protection = semel.Unprotected
		for i := range n {
			o.Attempts = append(o.Attempts, semel.Attempt{Number: i + 1, Open: true})
		}
		return &o
	}
	failed := &semel.FailedError{Path: "note", Reason: "no answer"}
	cases := []struct {
		name string
		err  error
		then *semel.Operation
		dies bool
		want Outcome
	}{
		{"nobody knows", failed, attempt(1, semel.Unknown), false, Lost},
		{"nothing happened", failed, attempt(1, semel.Failed), false, Never},
		{"it was tried again", failed, attempt(2, semel.Unknown), false, Unknown},
		{"the worker died over it", failed, attempt(1, semel.Unknown), true, Unknown},
		{"the workflow was told nothing", nil, attempt(1, semel.Unknown), false, Unknown},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := &wrongEngine{rec: semel.StepRecord{Effect: attempt(1, semel.Unknown)}, err: c.err}
			tried, p := on(t, e)
			_, _ = p.executor(e).Step(semel.NewContext(t.Context(), e, ""), "note", &semel.DoStep{Call: semel.Call{Scope: of.scope, Key: of.key}})
			if c.dies {
				p.die()
			}
			if got := tried.about(of, c.then, true); got.outcome != c.want {
				t.Errorf("%s (%s), want %s", got.outcome, got.why, c.want)
			}
		})
	}
}

func TestAStoreThatDoesNotAnswerIsNoFailure(t *testing.T) {
	for of, want := range map[error]int{semel.ErrUnavailable: 1, semel.ErrUnconfirmed: 1, &semel.FailedError{Reason: "declined"}: 0} {
		e := &wrongEngine{err: fmt.Errorf("claim: %w", of)}
		tried, p := on(t, e)
		_, _ = p.executor(e).Step(semel.NewContext(t.Context(), e, ""), "note", &semel.DoStep{Call: semel.Call{Scope: "shop", Key: "o1"}})
		if got := len(tried.world.faults); got != want {
			t.Errorf("%v: %d faults, want %d", of, got, want)
		}
	}
}
