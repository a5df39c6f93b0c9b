package semel_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
)

// recorder is a Guard that keeps the call and answers what it is told to.
type recorder struct {
	call    semel.Call
	asked   int
	outcome semel.Outcome
	err     error
}

func (r *recorder) Do(_ context.Context, c semel.Call) (semel.Outcome, error) {
	r.call = c
	r.asked++
	return r.outcome, r.err
}

type charge struct {
	Invoice string `json:"invoice"`
	Cents   int64  `json:"cents"`
}

type receipt struct {
	ID string `json:"id"`
}

func chargeCard() semel.Action[charge, receipt] {
	return semel.Action[charge, receipt]{
		Name:  "charge",
		Owner: "billing@example.com",
		Key:   func(c charge) string { return c.Invoice + "-charge" },
		Send:  semel.Effect[charge, receipt]{Connection: "stripe", Contract: keyed()},
	}
}

func answered(body string) semel.Outcome {
	return semel.Outcome{Status: semel.StatusCompleted, Operation: semel.Operation{State: semel.Completed, Result: &semel.Result{Body: []byte(body)}}}
}

func TestActionBecomesOneCall(t *testing.T) {
	g := &recorder{outcome: answered(`{"id":"ch_1"}`)}
	a := chargeCard()
	a.Volatile = []string{"sent_at"}
	done, err := a.Do(t.Context(), g, charge{"4417", 9007199254740993})
	if err != nil {
		t.Fatal(err)
	}
	want := semel.Call{Action: "charge", Key: "4417-charge", Contract: keyed(), Request: semel.Request{
		Connection: "stripe", Action: "charge", Kind: "call",
		MediaType: "application/json", Body: []byte(`{"invoice":"4417","cents":9007199254740993}`), Volatile: []string{"sent_at"},
	}}
	want.Contract.Owner = "billing@example.com"
	if diff := cmp.Diff(want, g.call, cmp.Exporter(anyType)); diff != "" {
		t.Error(diff)
	}
	if got, ok := done.Value(); !ok || got.ID != "ch_1" || done.Unreadable() != nil {
		t.Errorf("got %v %v %v", got, ok, done.Unreadable())
	}
}

func TestActionKeepsWhatItsEffectDeclares(t *testing.T) {
	g := &recorder{}
	a := chargeCard()
	a.Owner, a.Send.Contract.Owner = "", "ops@example.com"
	a.Volatile = []string{"sent_at"}
	a.Send.Request = func(charge) (semel.Request, error) { return semel.Request{Kind: "http", Volatile: []string{"id"}}, nil }
	if _, err := a.Do(t.Context(), g, charge{}); err != nil {
		t.Fatal(err)
	}
	if g.call.Contract.Owner != "ops@example.com" {
		t.Errorf("nobody owns it: %q", g.call.Contract.Owner)
	}
	if diff := cmp.Diff([]string{"id", "sent_at"}, g.call.Request.Volatile); diff != "" {
		t.Error(diff)
	}
}

// Law 12 and law 17: what cannot be asked is an error before anything is asked.
func TestActionThatCannotBeAsked(t *testing.T) {
	count := 0
	broken := errors.New("no such template")
	for _, c := range []struct {
		name   string
		change func(*semel.Action[charge, receipt])
		want   string
	}{
		{"no name", func(a *semel.Action[charge, receipt]) { a.Name = "" }, "has no Name or no Key"},
		{"no key", func(a *semel.Action[charge, receipt]) { a.Key = nil }, "has no Name or no Key"},
		{"a key per attempt", func(a *semel.Action[charge, receipt]) {
			a.Key = func(charge) string { count++; return strings.Repeat("x", count) }
		}, "is \"x\" and then \"xx\""},
		{"no request", func(a *semel.Action[charge, receipt]) {
			a.Send.Request = func(charge) (semel.Request, error) { return semel.Request{}, broken }
		}, "no such template"},
	} {
		g := &recorder{}
		a := chargeCard()
		c.change(&a)
		done, err := a.Do(t.Context(), g, charge{})
		if notAsked, ok := errors.AsType[*semel.NotAskedError](err); !ok || !strings.Contains(notAsked.Error(), c.want) {
			t.Errorf("%s: got %v, want a NotAskedError with %q", c.name, err, c.want)
		}
		if _, ok := done.Value(); ok || g.asked != 0 {
			t.Errorf("%s: it was asked %d times", c.name, g.asked)
		}
	}
	g := &recorder{err: &semel.NotAskedError{Key: "k", Err: semel.ErrUnavailable}}
	if _, err := chargeCard().Do(t.Context(), g, charge{}); !errors.Is(err, semel.ErrUnavailable) {
		t.Errorf("got %v, want what the guard said", err)
	}
}

// M13, M28: only a completed operation has a value.
func TestOnlyCompletedHasAValue(t *testing.T) {
	for _, s := range []semel.Status{semel.StatusFailed, semel.StatusUnknown, semel.StatusInProgress, semel.StatusConflict, semel.StatusExpired, semel.StatusIncident, semel.StatusUnsafe, ""} {
		out := answered(`{"id":"ch_1"}`)
		out.Status = s
		done, err := chargeCard().Do(t.Context(), &recorder{outcome: out}, charge{})
		if got, ok := done.Value(); ok || err != nil || got.ID != "" {
			t.Errorf("%s: got %v %v %v", s, got, ok, err)
		}
	}
}

func TestAnswerThatCannotBeReadIsStillCompleted(t *testing.T) {
	cut := answered(`{"id":"ch`)
	cut.Operation.Result.Size = 1000
	happened := answered("")
	happened.Operation.Result = nil
	custom := chargeCard()
	custom.Send.Result = func(r *semel.Result) (receipt, error) { return receipt{ID: "status " + r.Reference}, nil }
	for _, c := range []struct {
		name    string
		action  semel.Action[charge, receipt]
		outcome semel.Outcome
		ok      bool
	}{
		{"no JSON", chargeCard(), answered("ok"), false},
		{"cut", chargeCard(), cut, false},
		{"empty", chargeCard(), answered(""), true},
		{"a person said so", chargeCard(), happened, true},
		{"a person said so, read by the action", custom, happened, true},
	} {
		done, err := c.action.Do(t.Context(), &recorder{outcome: c.outcome}, charge{})
		_, ok := done.Value()
		if err != nil || done.Status != semel.StatusCompleted || ok != c.ok || (done.Unreadable() == nil) != c.ok {
			t.Errorf("%s: %v %s %v %v", c.name, err, done.Status, ok, done.Unreadable())
		}
	}
}

func TestPerformMakesEvidenceOfAFunction(t *testing.T) {
	refusal := errors.New("the claim was lost")
	for _, c := range []struct {
		name, body string
		begin      error
		fn         func() (receipt, error)
		want       semel.EventKind
		called     bool
	}{
		{"answer", `{}`, nil, func() (receipt, error) { return receipt{"ch_1"}, nil }, semel.EvConfirmed, true},
		{"unclassified error", `{}`, nil, func() (receipt, error) { return receipt{}, errors.New("reset") }, semel.EvLost, true},
		{"timeout", `{}`, nil, func() (receipt, error) { return receipt{}, context.DeadlineExceeded }, semel.EvLost, true},
		{"no effect", `{}`, nil, func() (receipt, error) { return receipt{}, semel.NoEffect(errors.New("declined")) }, semel.EvRefused, true},
		{"no error is no refusal", `{}`, nil, func() (receipt, error) { return receipt{"ch_1"}, semel.NoEffect(nil) }, semel.EvConfirmed, true},
		{"the claim was lost", `{}`, refusal, nil, semel.EvRefused, false},
		{"unreadable input", `x`, nil, nil, semel.EvRefused, false},
	} {
		called := false
		effect := semel.Perform(keyed(), func(context.Context, *semel.Send, charge) (receipt, error) { called = true; return c.fn() })
		o := replay(t, keyed(), claim(1, 0))
		o.Request.Body = []byte(c.body)
		ev := effect.Destination.Send(t.Context(), &semel.Send{Operation: &o, Attempt: 1, DestinationKey: o.DestinationKey(), Begin: func() error { return c.begin }})
		if ev.Kind != c.want || called != c.called {
			t.Errorf("%s: got %s (%s), called %v; want %s", c.name, ev.Kind, ev.Reason, called, c.want)
		}
	}
}

// M35: each refusal says that nothing was sent; the four states are none.
func TestRefusalsSayThatNothingWasSent(t *testing.T) {
	many := make([]string, 12)
	for i := range many {
		many[i] = "body.f" + string(rune('a'+i))
	}
	for s, want := range map[semel.Status]string{
		semel.StatusConflict: "body.fa, body.fb, body.fc, body.fd, body.fe, body.ff, body.fg, body.fh, body.fi, body.fj and 2 more; the first request is unchanged, and nothing was sent",
		semel.StatusExpired:  "the record of this key has expired, so nobody can tell whether it happened; nothing was sent",
		semel.StatusIncident: "duplicate effect; nothing was sent, a person must close the incident",
		semel.StatusUnsafe:   "only a person can tell",
	} {
		out := semel.Outcome{Status: s, Fields: many, Operation: semel.Operation{Incident: "duplicate effect"}, Next: semel.Move{Reason: "only a person can tell"}}
		if got := out.Refusal(); !strings.HasSuffix(got, want) {
			t.Errorf("%s: got %q, want %q", s, got, want)
		}
	}
	for _, s := range []semel.Status{semel.StatusCompleted, semel.StatusFailed, semel.StatusUnknown, semel.StatusInProgress} {
		if got := (&semel.Outcome{Status: s}).Refusal(); got != "" {
			t.Errorf("%s is refused: %s", s, got)
		}
	}
}
