package probe_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	httpdest "github.com/semel-dev/semel/destination/http"
	"github.com/semel-dev/semel/probe"
	"github.com/semel-dev/semel/sandbox"
)

// messages is a target at a provider that ignores keys, declared as if it
// honoured them for a day.
func messages(url string) (probe.Target, error) {
	declared, err := httpdest.BuiltIn("sandbox")
	if err != nil {
		return probe.Target{}, err
	}
	d, err := httpdest.New(httpdest.Options{Profile: declared})
	if err != nil {
		return probe.Target{}, err
	}
	r, _, err := httpdest.NewRequest("POST", url+"/v1/messages", nil, []byte(`{"text":"hello"}`))
	return probe.Target{Destination: d, Request: r, Contract: d.Contract(), Label: "reference"}, err
}

func ExampleProbe_Run() {
	provider, err := sandbox.New(sandbox.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(provider)
	defer server.Close()
	target, err := messages(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = target.Destination.Close(context.Background()) }()
	p, err := probe.New(target, probe.Options{ID: "example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := p.Run(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.Of(probe.SameKey).Finding, report.Holds())
	fmt.Println(report.Verdicts[0].Declared + ": " + string(report.Verdicts[0].Ruling))
	fmt.Println(report.Verdicts[0].Means)
	fmt.Println(report.Effects.AtLeast, len(provider.Effects()))
	// Output:
	// several_effects does_not_hold
	// keyed for 24h: sending again has no second effect: does_not_hold
	// the destination acted twice under one key: a resend would do it twice. Declare protection: none, or lookup if the destination can be asked by a reference.
	// 2 2
}

func ExampleProbe_Plan() {
	target, err := messages("https://test.example.com")
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := probe.New(target, probe.Options{ID: "example", MaxEffects: 6})
	if err != nil {
		fmt.Println(err)
		return
	}
	plan := p.Plan()
	fmt.Println("at most", plan.Effects, "effects at", plan.URL)
	fmt.Println(plan.Body)
	for _, s := range plan.Steps {
		if s.Skipped == "" {
			fmt.Println(s.Question, s.Requests)
		}
	}
	// Output:
	// at most 6 effects at https://test.example.com/v1/messages
	// {"reference":"semel-probe-example-first","text":"hello"}
	// same_key 2
	// at_once 3
	// changed_body 1
}

func ExampleNew() {
	target, err := messages("https://test.example.com")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = probe.New(target, probe.Options{Name: "stripe"})
	fmt.Println(err)
	// Output: name stripe is the name of a built-in profile: give yours a name of its own
}

func ExampleReport_Of() {
	report := probe.Report{Observations: []probe.Observation{{Question: probe.SameKey, Finding: probe.OneEffect}}}
	fmt.Println(report.Of(probe.SameKey).Finding, report.Of(probe.AtOnce).Finding)
	// Output: one_effect not_tested
}

func ExampleReport_Holds() {
	report := probe.Report{Verdicts: []probe.Verdict{{Ruling: probe.Holds}, {Ruling: probe.Undecided}, {Ruling: probe.Untested}}}
	fmt.Println(report.Holds())
	// Output: unknown
}

func ExampleQuestions() {
	fmt.Println(probe.Questions())
	// Output: [absence same_key visibility other_key at_once changed_body after_error spelling without_key after_delay]
}

func ExampleFindings() {
	fmt.Println(probe.Findings())
	// Output: [one_effect several_effects refused replayed kept free absent found not_found unknown not_tested]
}
