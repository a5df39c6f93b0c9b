package probe_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/probe"
	"github.com/semel-dev/semel/sandbox"
)

// quick is a provider whose delays are short.
func quick() sandbox.Options {
	return sandbox.Options{Delay: 200 * time.Millisecond, VisibleAfter: 100 * time.Millisecond}
}

// A provider that honours keys: everything that sandbox@1 declares is true.
func TestChargesAreAsDeclared(t *testing.T) {
	p := newProvider(t, quick())
	r := run(t, target(t, p.url+"/v1/charges", "sandbox"), probe.Options{Delay: 200 * time.Millisecond})
	truthful(t, p, r, probe.DefaultMaxEffects)
	want := map[probe.Question]probe.Finding{
		probe.Absence: probe.NotTested, probe.Visibility: probe.NotTested, probe.OtherKey: probe.NotTested,
		probe.SameKey: probe.OneEffect, probe.Spelling: probe.OneEffect, probe.ChangedBody: probe.Refused, probe.AtOnce: probe.OneEffect,
		probe.AfterError: probe.Free, probe.WithoutKey: probe.SeveralEffects, probe.AfterDelay: probe.OneEffect,
	}
	if diff := cmp.Diff(want, findings(r)); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	if r.Holds() != probe.Holds || len(r.Differences) > 0 {
		t.Errorf("%s, want holds, without differences: %+v", r.Holds(), r.Differences)
	}
	got := rulings(r)
	if got[probe.PromiseWindow] != probe.Untested || got[probe.PromiseKey] != probe.Holds {
		t.Errorf("rulings: %v", got)
	}
	if c := r.Of(probe.ChangedBody).Conflict; c.Status != 400 || c.Code != "idempotency_error" {
		t.Errorf("conflict of a changed body: %+v", c)
	}
	if m := r.Of(probe.SameKey).Marker; m == nil || *m != (probe.Marker{Header: "Idempotent-Replayed", Is: "true"}) {
		t.Errorf("marker: %+v", m)
	}
}

// Every fault of the sandbox, on every request and on the first only, at each
// kind of provider: the report never says what the ledger denies.
func TestTruthInAllModes(t *testing.T) {
	faults := []string{
		"none", "drop_before", "drop_after", "error_before", "error_after", "bad_gateway", "late", "slow", "refuse", "retained_error", "partial",
	}
	for _, resource := range []string{"charges", "transfers", "messages"} {
		for _, fault := range faults {
			for _, when := range []string{"", "@1", "@2"} {
				if fault == "none" && when != "" {
					continue
				}
				t.Run(resource+"/"+fault+when, func(t *testing.T) {
					t.Parallel()
					p := newProvider(t, quick())
					profile := map[bool]string{true: "sandbox", false: "generic"}[resource == "charges"]
					tg := target(t, p.url+"/v1/"+resource, profile, "Sandbox-Fault: "+fault+when)
					if resource == "transfers" {
						tg.Contract.Protection = semel.Lookup
						tg.Contract.LookupURL, tg.Contract.FoundIn = p.url+"/v1/transfers?reference={body.reference}&fault=none", "data"
					}
					r := run(t, tg, probe.Options{LookFor: 300 * time.Millisecond})
					truthful(t, p, r, probe.DefaultMaxEffects)
					if fault == "none" && r.Holds() != probe.Holds {
						t.Errorf("%s: %+v", r.Holds(), r.Verdicts)
					}
				})
			}
		}
	}
}

// What the report says where answers are lost, and where keys do nothing.
func TestFindingsOfFaults(t *testing.T) {
	tests := map[string]struct {
		resource, fault string
		same            probe.Finding
		holds           probe.Ruling
	}{
		"the first answer is lost":         {"charges", "drop_after@1", probe.OneEffect, probe.Undecided},
		"all answers are lost":             {"charges", "drop_after", probe.Unknown, probe.Undecided},
		"nothing ever happens":             {"charges", "drop_before", probe.Unknown, probe.Undecided},
		"a 500 is kept under the key":      {"charges", "error_after", probe.Unknown, probe.Undecided},
		"it acts when the client has gone": {"charges", "late@1", probe.Unknown, probe.Undecided},
		"it is slow":                       {"charges", "slow", probe.OneEffect, probe.Holds},
		"the card is declined":             {"charges", "retained_error", probe.Refused, probe.Undecided},
		"half of it happens":               {"charges", "partial", probe.OneEffect, probe.Holds},
		"keys are ignored":                 {"messages", "none", probe.SeveralEffects, probe.Broken},
		"keys are ignored, and lost":       {"messages", "drop_after@1", probe.Unknown, probe.Broken},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, quick())
			tg := target(t, p.url+"/v1/"+test.resource, "sandbox", "Sandbox-Fault: "+test.fault)
			r := run(t, tg, probe.Options{})
			truthful(t, p, r, probe.DefaultMaxEffects)
			if o := r.Of(probe.SameKey); o.Finding != test.same || r.Holds() != test.holds {
				t.Errorf("%s (%s) and %s, want %s and %s", o.Finding, o.Words, r.Holds(), test.same, test.holds)
			}
		})
	}
}

// Requests that overlap meet the answer for a key in use.
func TestKeyInUse(t *testing.T) {
	p := newProvider(t, quick())
	r := run(t, target(t, p.url+"/v1/charges", "sandbox", "Sandbox-Fault: slow"), probe.Options{MaxEffects: 7})
	truthful(t, p, r, 7)
	o := r.Of(probe.AtOnce)
	if o.Finding != probe.OneEffect || o.Conflict == nil || o.Conflict.Status != 409 || o.Conflict.Code != "idempotency_key_in_use" {
		t.Errorf("at once: %+v", o)
	}
	if rulings(r)[probe.PromiseRunning] != probe.Holds {
		t.Errorf("rulings: %v", rulings(r))
	}
}

// A key that is forgotten inside the declared window.
func TestWindowThatIsShorterThanDeclared(t *testing.T) {
	o := quick()
	o.Window = time.Second
	p := newProvider(t, o)
	tg := target(t, p.url+"/v1/charges", "sandbox")
	r := run(t, tg, probe.Options{Delay: 1200 * time.Millisecond})
	if n := p.Count(sandbox.Charges, "semel-probe-"+r.ID+"-first"); n != 2 {
		t.Fatalf("%d effects of the first request, want 2", n)
	}
	if r.Of(probe.AfterDelay).Finding != probe.SeveralEffects || rulings(r)[probe.PromiseWindow] != probe.Broken || r.Holds() != probe.Broken {
		t.Errorf("after the window: %+v, %v", r.Of(probe.AfterDelay), rulings(r))
	}
	tg.Contract.Window = time.Second
	if r = run(t, tg, probe.Options{Delay: 1200 * time.Millisecond}); rulings(r)[probe.PromiseWindow] != probe.Holds {
		t.Errorf("a window that ends as declared: %+v", r.Verdicts)
	}
}

// A provider that shows new objects late: the delay is measured (M22).
func TestVisibilityIsMeasured(t *testing.T) {
	p := newProvider(t, sandbox.Options{VisibleAfter: 600 * time.Millisecond})
	tg := target(t, p.url+"/v1/transfers", "generic")
	tg.Contract.Protection = semel.Lookup
	tg.Contract.LookupURL = p.url + "/v1/transfers/by-reference/{body.reference}"
	tg.Contract.VisibleAfter, tg.Contract.MaxProcessing, tg.Contract.AbsenceIsProof = 100*time.Millisecond, time.Second, true
	r := run(t, tg, probe.Options{})
	truthful(t, p, r, probe.DefaultMaxEffects)
	o := r.Of(probe.Visibility)
	if missed, found := time.Duration(o.MissedAt), time.Duration(o.FoundAfter); missed <= 100*time.Millisecond || missed > 600*time.Millisecond || found < 600*time.Millisecond || found > 3*time.Second {
		t.Errorf("missed at %v, found after %v; the truth is 600 ms", missed, found)
	}
	want := map[probe.Promise]probe.Ruling{
		probe.PromiseLookup: probe.Holds, probe.PromiseVisible: probe.Broken, probe.PromiseAbsence: probe.Holds, probe.PromiseTime: probe.Untested,
	}
	if diff := cmp.Diff(want, rulings(r)); diff != "" {
		t.Errorf("rulings (-want +got):\n%s", diff)
	}
	tg.Contract.VisibleAfter = 5 * time.Second
	if r = run(t, tg, probe.Options{}); r.Holds() != probe.Holds {
		t.Errorf("declared long enough: %+v", r.Verdicts)
	}
	r = run(t, tg, probe.Options{LookFor: 100 * time.Millisecond})
	if r.Of(probe.Visibility).Finding != probe.NotFound || rulings(r)[probe.PromiseLookup] != probe.Broken {
		t.Errorf("not found in time: %+v", r.Of(probe.Visibility))
	}
}

// Never more requests than allowed, whatever happens to them; what does not fit
// is said.
func TestMaxEffectsIsNeverExceeded(t *testing.T) {
	for _, resource := range []string{"charges", "transfers", "messages"} {
		for _, fault := range []string{"none", "drop_after", "error_after", "late"} {
			for allowed := 1; allowed <= 12; allowed++ {
				p := newProvider(t, sandbox.Options{Delay: time.Millisecond, VisibleAfter: -1})
				tg := target(t, p.url+"/v1/"+resource, "sandbox", "Sandbox-Fault: "+fault)
				pr, err := probe.New(tg, probe.Options{MaxEffects: allowed, Delay: time.Millisecond})
				if err != nil {
					t.Fatal(err)
				}
				if plan := pr.Plan(); plan.Effects > allowed {
					t.Errorf("the plan has %d", plan.Effects)
				}
				r, err := pr.Run(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if err := p.FinishLate(); err != nil {
					t.Fatal(err)
				}
				if n := len(p.Effects()); n > allowed || r.Effects.Requests > allowed {
					t.Errorf("%s with %s: %d effects, %d requests, allowed %d", resource, fault, n, r.Effects.Requests, allowed)
				}
				if resource == "charges" && fault == "none" && (allowed >= 5) != (r.Of(probe.AtOnce).Finding == probe.OneEffect) {
					t.Errorf("at once: %+v", r.Of(probe.AtOnce))
				}
			}
		}
	}
}
