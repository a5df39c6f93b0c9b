package check_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/check"
	"github.com/semel-dev/semel/workflowfile"
)

// payment is the input of the corpus in Go.
type payment struct {
	ID       string   `json:"id"`
	Customer string   `json:"customer"`
	Cents    int      `json:"cents"`
	Token    string   `json:"token"`
	Lines    []string `json:"lines"`
}

var anns = payment{ID: "A-17", Customer: "ann", Cents: 1250, Token: "tok4711", Lines: []string{"pen", "ink"}}

// with is an action under a contract.
func with[In, Out any](name string, c semel.Contract, key func(In) string) semel.Action[In, Out] {
	return semel.Action[In, Out]{Name: name, Key: key, Send: semel.Perform(c, func(context.Context, *semel.Send, In) (out Out, err error) {
		panic("a dry run performed " + name)
	})}
}

var (
	byKey    = semel.Contract{Effect: semel.External, Protection: semel.Keyed, Window: 24 * time.Hour, Timeout: 5 * time.Second}
	byNobody = semel.Contract{Effect: semel.External, Protection: semel.Unprotected, Timeout: 5 * time.Second}
)

func byID(p payment) string { return "payment-" + p.ID }

// TestCorpusOfGoWorkflows: wrong workflows, and what dry runs find in them.
func TestCorpusOfGoWorkflows(t *testing.T) {
	type do = func(ctx semel.Context, p payment) error
	keyed := func(key func(payment) string) do {
		charge := with[payment, string]("charge", byKey, key)
		return func(ctx semel.Context, p payment) error { _, err := semel.Do(ctx, charge, p); return err }
	}
	charge, refund := with[payment, string]("charge", byKey, byID), with[payment, string]("refund", byKey, byID)
	mail := with[payment, struct{ ID int }]("mail", byNobody, byID)
	read := with[payment, string]("read", semel.Contract{Protection: semel.Commutes}, nil)
	count := 0
	tests := map[string]struct {
		run  do
		want []string
	}{
		"key of a counter":        {keyed(func(payment) string { count++; return fmt.Sprint((count - 1) / 2) }), []string{"charge: error unstable_key"}},
		"key of nanoseconds":      {keyed(func(payment) string { return time.Now().String() }), []string{": error unstable_key"}},
		"key of today":            {keyed(func(p payment) string { return p.ID + time.Now().Format("-20060102") }), []string{"charge: error unstable_key"}},
		"key of nothing":          {keyed(func(payment) string { return "payment" }), []string{"charge: warning key"}},
		"key of who and how much": {keyed(func(p payment) string { return fmt.Sprintf("%s/%d", p.Customer, p.Cents) }), []string{"charge: warning weak_key"}},
		"key of a token":          {keyed(func(p payment) string { return p.ID + "-" + p.Token }), []string{"charge: error secret_in_key"}},
		"key of chance": {func(ctx semel.Context, p payment) error {
			p.ID = fmt.Sprint(rand.Int64())
			_, err := semel.Do(ctx, charge, p)
			return err
		}, []string{"charge: error unstable_key"}},
		"one key for one request, for ever": {func(ctx semel.Context, _ payment) error {
			_, err := semel.Do(ctx, charge, anns)
			return err
		}, nil},
		"key of the run's id": {func(ctx semel.Context, p payment) error {
			p.ID += ctx.Run().ID.String()
			_, err := semel.Do(ctx, charge, p)
			return err
		}, []string{"charge: error unstable_key"}},
		"retry without protection": {func(ctx semel.Context, p payment) error {
			_, err := semel.Retrying(ctx, mail, p, semel.Retry{Attempts: 2})
			return err
		}, []string{"mail: warning unprotected_retry"}},
		"retry after a sleep": {func(ctx semel.Context, p payment) error {
			if err := semel.Sleep(ctx, "rest", time.Hour); err != nil {
				return err
			}
			_, err := semel.Retrying(ctx, mail, p, semel.Retry{Attempts: 2})
			return err
		}, []string{"mail: warning irreversible_after_wait"}},
		"another amount than was approved": {func(ctx semel.Context, p payment) error {
			if err := semel.Approve(ctx, refund, p, semel.Ask{}); err != nil {
				return err
			}
			p.Cents++
			_, err := semel.Do(ctx, refund, p)
			return err
		}, []string{"refund: warning approval_not_covering"}},
		"approved, and then days": {func(ctx semel.Context, p payment) error {
			if err := semel.Approve(ctx, refund, p, semel.Ask{Valid: time.Hour}); err != nil {
				return err
			}
			if err := semel.Sleep(ctx, "rest", 48*time.Hour); err != nil {
				return err
			}
			_, err := semel.Do(ctx, refund, p)
			return err
		}, []string{"refund: error approval_expires"}},
		"deferred in a list": {func(ctx semel.Context, p payment) error {
			return semel.Each(ctx, "lines", p.Lines, func(s string) string { return s }, 2, func(ctx semel.Context, line string) error {
				p.ID = line
				defer func() { _, _ = semel.Do(ctx, refund, p) }()
				_, err := semel.Do(ctx, charge, p)
				return err
			})
		}, []string{"lines/refund: error consequential_defer"}},
		"an effect after a known failure": {func(ctx semel.Context, p payment) error {
			if _, err := semel.Do(ctx, charge, p); err != nil {
				_, err = semel.Do(ctx, refund, p)
				return err
			}
			return nil
		}, nil},
		"a wait without end, in a loop": {func(ctx semel.Context, p payment) error {
			for i := 0; ; i++ {
				if _, err := semel.Wait[string](ctx.Named(fmt.Sprint("news-", i)), "news", "", 0); err != nil {
					return err
				}
			}
		}, nil},
		"every kind of step": {func(ctx semel.Context, p payment) error {
			_, err := semel.Compute(ctx, "token", func() (int64, error) { return rand.Int64(), nil })
			out, err2 := semel.Do(ctx, with[payment, []int]("list", byKey, byID), p)
			flag, err3 := semel.Do(ctx, with[payment, bool]("flag", byKey, byID), p)
			err4 := semel.Parallel(ctx, "both", map[string]func(semel.Context) error{
				"a": func(ctx semel.Context) error { _, err := semel.Do(ctx, charge, p); return err },
				"b": func(ctx semel.Context) error { _, err := semel.Do(ctx, mail, p); return err },
			})
			ended, err5 := semel.Child(ctx, semel.Workflow[payment]{Name: "child"}, "c", p)
			return errors.Join(err, err2, err3, err4, err5, ctx.Return([]any{out, flag, ended}))
		}, []string{"child: note not_checked"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := semel.Workflow[payment]{Name: "corpus", Owner: "desk", Func: test.run, Actions: []semel.Definition{read.Definition()}}
			r, err := check.Workflow(w.Definition(), check.Options{Input: anns})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, briefly(r.Findings)); diff != "" {
				t.Errorf("(-want +got):\n%s\n%v", diff, r.Findings)
			}
		})
	}
}

// TestContractsOfGoWorkflows: what an action declares is judged as that of a
// file is.
func TestContractsOfGoWorkflows(t *testing.T) {
	tests := map[string]struct {
		contract semel.Contract
		header   string
		want     []string
	}{
		"absolute":                {contract: semel.Contract{Protection: semel.Absolute}, want: []string{"set: warning no_single_writer"}},
		"absolute over a version": {contract: semel.Contract{Protection: semel.Absolute}, header: "If-Match"},
		"nothing declared":        {want: []string{"set: error invalid_contract"}},
		"no protection":           {contract: byNobody},
		"slow":                    {contract: semel.Contract{Protection: semel.Keyed, Window: 24 * time.Hour, Timeout: time.Second, MaxProcessing: time.Minute}, want: []string{"set: warning timeout_too_short"}},
		"looks for nothing":       {contract: semel.Contract{Protection: semel.Lookup, CanLookUp: true}, want: []string{"set: warning missing_delays"}},
		"asks a program":          {contract: semel.Contract{Protection: semel.Lookup, Check: "was-it-done"}},
		"short window":            {contract: semel.Contract{Protection: semel.Keyed, Window: time.Hour}, want: []string{"set: warning window_too_short"}},
		"a read":                  {contract: semel.Contract{Protection: semel.Commutes}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set := with[payment, struct{}]("set", test.contract, byID)
			set.Send.Request = func(payment) (semel.Request, error) {
				r := semel.Request{Kind: "http", Method: http.MethodPut, URL: "https://desk.example.com/A-17"}
				if test.header != "" {
					r.Header = map[string]string{test.header: `"7"`}
				}
				return r, nil
			}
			w := semel.Workflow[payment]{Name: "corpus", Owner: "desk", Func: func(ctx semel.Context, p payment) error {
				_, err := semel.Do(ctx, set, p)
				return err
			}}
			r, err := check.Workflow(w.Definition(), check.Options{Input: anns})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, briefly(r.Findings)); diff != "" {
				t.Errorf("(-want +got):\n%s\n%v", diff, r.Findings)
			}
		})
	}
}

func TestAnswersSayHowStepsEnd(t *testing.T) {
	charge, refund := with[payment, string]("charge", byKey, byID), with[payment, string]("refund", byKey, byID)
	var got []string
	w := semel.Workflow[payment]{Name: "ends", Owner: "desk", Func: func(ctx semel.Context, p payment) error {
		_, err := semel.Do(ctx, charge, p)
		_, failed := errors.AsType[*semel.FailedError](err)
		err = semel.Approve(ctx, refund, p, semel.Ask{})
		_, waited := semel.Wait[string](ctx, "paid", "", time.Hour)
		news, err2 := semel.Wait[string](ctx, "news", "", time.Hour)
		number, err3 := semel.Compute(ctx, "number", func() (int, error) { return 0, errors.New("not asked for") })
		if got != nil {
			return nil // the other runs have other answers
		}
		got = []string{fmt.Sprint(failed, errors.Is(err, semel.ErrRejected), errors.Is(waited, semel.ErrTimedOut)), news, fmt.Sprint(number, err2, err3)}
		return nil
	}}
	if _, err := check.Workflow(w.Definition(), check.Options{Input: anns, Answers: map[string]any{
		"charge": errors.New("no money"), "approve-refund": semel.ErrRejected, "paid": semel.ErrTimedOut, "news": "good", "number": 6,
	}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"true true true", "good", "6 <nil> <nil>"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatCannotBeRunDry(t *testing.T) {
	run := func(ctx semel.Context, p payment) error { return nil }
	tests := map[string]struct {
		w    semel.Workflow[payment]
		o    check.Options
		want string
	}{
		"no function":    {w: semel.Workflow[payment]{Name: "w"}, want: "workflow w has no function"},
		"panic":          {w: semel.Workflow[payment]{Name: "w", Func: func(semel.Context, payment) error { panic("oops") }}, want: "workflow w panicked in a dry run: oops"},
		"unknown code":   {w: semel.Workflow[payment]{Name: "w", Func: run}, o: check.Options{Accept: []check.Accept{{Code: "syntax", Reason: "x"}}}, want: "there is no such risk"},
		"no reason":      {w: semel.Workflow[payment]{Name: "w", Func: run}, o: check.Options{Accept: []check.Accept{{Code: workflowfile.CodeOwner, Reason: " "}}}, want: "say why"},
		"input no JSON":  {w: semel.Workflow[payment]{Name: "w", Func: run}, o: check.Options{Input: func() {}}, want: "encode input"},
		"answer no JSON": {w: semel.Workflow[payment]{Name: "w", Func: run}, o: check.Options{Answers: map[string]any{"a": func() {}}}, want: "encode the answer of a"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := check.Workflow(test.w.Definition(), test.o)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}
