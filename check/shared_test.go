package check_test

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/check"
	"github.com/semel-dev/semel/workflowfile"
)

// TestStepsThatShareAKey: one key is one piece of work.
func TestStepsThatShareAKey(t *testing.T) {
	type do = func(ctx semel.Context, p payment) error
	charge, refund := with[payment, string]("charge", byKey, byID), with[payment, string]("refund", byKey, byID)
	keyless := with[payment, string]("charge", byKey, nil)
	commutes := with[payment, string]("tag", semel.Contract{Effect: semel.SetsValue, Protection: semel.Commutes}, byID)
	twice := func(a semel.Action[payment, string], cents int) do {
		return func(ctx semel.Context, p payment) error {
			if _, err := semel.Do(ctx, a, p); err != nil {
				return err
			}
			p.Cents += cents
			_, err := semel.Do(ctx.Named("second"), a, p)
			return err
		}
	}
	lines := func(change func(p *payment, line string)) do {
		return func(ctx semel.Context, p payment) error {
			return semel.Each(ctx, "lines", p.Lines, func(s string) string { return s }, 2, func(ctx semel.Context, line string) error {
				change(&p, line)
				_, err := semel.Do(ctx, charge, p)
				return err
			})
		}
	}
	tests := map[string]struct {
		run  do
		want []string
	}{
		"the same twice":    {twice(charge, 0), []string{"second: warning shared_key"}},
		"another amount":    {twice(charge, 1), []string{"second: error shared_key"}},
		"without a key":     {twice(keyless, 0), nil},
		"what commutes":     {twice(commutes, 0), nil},
		"items alike":       {lines(func(*payment, string) {}), []string{"lines/charge: warning shared_key"}},
		"items that differ": {lines(func(p *payment, line string) { p.Token = line }), []string{"lines/charge: error shared_key"}},
		"items with a name": {lines(func(p *payment, line string) { p.ID = "A-17-" + line }), nil},
		"two actions": {func(ctx semel.Context, p payment) error {
			_, _ = semel.Do(ctx, charge, p)
			_, err := semel.Do(ctx, refund, p)
			return err
		}, nil},
		"one step, repeated": {func(ctx semel.Context, p payment) error {
			_, _ = semel.Do(ctx, charge, p)
			_, err := semel.Do(ctx, charge, p)
			return err
		}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := checkedRun(t, test.run, check.Options{Input: anns})
			if diff := cmp.Diff(test.want, briefly(r.Findings)); diff != "" {
				t.Errorf("(-want +got):\n%s\n%v", diff, r.Findings)
			}
		})
	}
	accept := check.Options{Input: anns, Accept: []check.Accept{{Step: "second", Code: workflowfile.CodeSharedKey, Reason: "one is enough"}}}
	if got := briefly(checkedRun(t, twice(charge, 0), accept).Findings); got != nil {
		t.Errorf("accepted as a warning: %v", got)
	}
	want := []string{"second: error shared_key", "second: warning unused_accept"}
	if diff := cmp.Diff(want, briefly(checkedRun(t, twice(charge, 1), accept).Findings)); diff != "" {
		t.Errorf("accepted as an error (-want +got):\n%s", diff)
	}
}

var negative = regexp.MustCompile(`(^|[^\w-])-\d`)

// TestContractsThatAreRefused: an engine sends nothing under them, and no time
// in an answer is less than nothing.
func TestContractsThatAreRefused(t *testing.T) {
	tests := map[string]struct {
		contract semel.Contract
		want     string // in the finding; empty where the contract is taken
	}{
		"no window":         {semel.Contract{Protection: semel.Keyed}, "window is missing"},
		"a negative window": {semel.Contract{Protection: semel.Keyed, Window: -6 * time.Second}, "window is negative (-6s)"},
		"negative timeout":  {semel.Contract{Protection: semel.Absolute, Timeout: -time.Second}, "timeout is negative"},
		"no lookup":         {semel.Contract{Protection: semel.Lookup}, "lookup is missing"},
		"a strange effect":  {semel.Contract{Protection: semel.Keyed, Window: time.Hour, Effect: "strange"}, "effect"},
		"a strange one":     {semel.Contract{Protection: "strange"}, "protection"},
		"a short window":    {semel.Contract{Protection: semel.Keyed, Window: 2 * time.Second, Timeout: 7 * time.Second}, ""},
		"no end":            {semel.Contract{Protection: semel.Absolute, Effect: semel.SetsValue, Timeout: math.MaxInt64 / 2}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set := with[payment, string]("set", test.contract, byID)
			r := checkedRun(t, func(ctx semel.Context, p payment) error { _, err := semel.Do(ctx, set, p); return err }, check.Options{Input: anns})
			got := ""
			for _, f := range r.Findings {
				if f.Code == workflowfile.CodeContract {
					got = f.Message
				}
				if test.want == "" && negative.MatchString(f.Message) {
					t.Errorf("a negative time: %s", f)
				}
			}
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("%q, want %q in it", got, test.want)
			}
			a := r.Steps[0].Answers
			a.Effect = "" // it says what is wrong
			if text := fmt.Sprint(a); negative.MatchString(text) || strings.Contains(text, " 0s after") {
				t.Errorf("answers with a strange time: %s", text)
			}
		})
	}
}

// TestChildren: a workflow whose runs are started is checked, or said not to be.
func TestChildren(t *testing.T) {
	mail := with[payment, string]("mail", byNobody, byID)
	inner := semel.Workflow[payment]{Name: "inner", Owner: "desk", Func: func(ctx semel.Context, p payment) error {
		_, err := semel.Retrying(ctx, mail, p, semel.Retry{Attempts: 3})
		return err
	}}
	itself := semel.Workflow[payment]{Name: "itself", Owner: "desk", Func: func(ctx semel.Context, p payment) error {
		_, err := semel.Child(ctx, semel.Workflow[payment]{Name: "itself"}, "again", p)
		return err
	}}
	outer := func(ctx semel.Context, p payment) error {
		if _, err := semel.Child(ctx, inner, "c", p); err != nil {
			return err
		}
		_, err := semel.Child(ctx, itself, "d", p)
		return err
	}
	r := checkedRun(t, outer, check.Options{Input: anns})
	if diff := cmp.Diff([]string{"inner: note not_checked", "itself: note not_checked"}, briefly(r.Findings)); diff != "" {
		t.Errorf("unknown (-want +got):\n%s", diff)
	}
	r = checkedRun(t, outer, check.Options{Input: anns, Children: []semel.WorkflowDefinition{inner.Definition(), itself.Definition()}})
	if diff := cmp.Diff([]string{"inner/mail: warning unprotected_retry", "itself/itself: note not_checked"}, briefly(r.Findings)); diff != "" {
		t.Errorf("given (-want +got):\n%s", diff)
	}
	if len(r.Steps) != 1 || r.Steps[0].Path != "inner/mail" {
		t.Errorf("steps: %+v", r.Steps)
	}
	r = checkedRun(t, outer, check.Options{
		Input: anns, Children: []semel.WorkflowDefinition{inner.Definition()},
		Accept: []check.Accept{{Step: "inner/mail", Code: workflowfile.CodeRetry, Reason: "the mail says no for sure"}},
	})
	if diff := cmp.Diff([]string{"itself: note not_checked"}, briefly(r.Findings)); diff != "" {
		t.Errorf("accepted (-want +got):\n%s", diff)
	}
}
