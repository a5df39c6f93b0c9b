package httpdest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
)

// Every built-in profile is complete and says where each field comes from
// (D12; M33).
func TestBuiltInProfiles(t *testing.T) {
	for _, p := range httpdest.Profiles() {
		c := p.Contract()
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", p.ID(), err)
		}
		for _, a := range p.Answers {
			if p.Name == "generic" && a.Confidence != httpdest.Assumed && a.Confidence != httpdest.Documented {
				t.Errorf("generic %v is %s: nobody promised it", a.Status, a.Confidence)
			}
		}
	}
	if p, err := httpdest.BuiltIn("stripe"); err != nil || p.ID() != "stripe@1" {
		t.Errorf("got %v, %v", p, err)
	}
	if _, err := httpdest.BuiltIn("stripe@99"); err == nil {
		t.Error("a version that does not exist was found")
	}
}

const (
	header = "name: x\nversion: 1\ntitle: t\n"
	fact   = "source: s, checked: 2026-01-02, confidence: "
)

// What is uncertain takes the unsafe reading (D12).
func TestUncertainIsUnsafe(t *testing.T) {
	p, err := httpdest.ParseProfile([]byte(header + `
key: {header: Idempotency-Key, ` + fact + `documented}
window: {is: 24h, ` + fact + `uncertain}
answers:
  - {status: [200], means: completed, ` + fact + `uncertain}
  - {status: [400], means: refused, ` + fact + `uncertain}
  - {status: [402], means: retained, ` + fact + `uncertain}
`))
	if err != nil {
		t.Fatal(err)
	}
	if c := p.Contract(); c.Protection != semel.Unprotected || c.Window != 0 {
		t.Errorf("got %+v, want no protection from an uncertain window", c)
	}
	w := newWorld(t, "h1")
	d := w.destination(httpdest.Options{Profile: p})
	for _, status := range []int{200, 400, 402, 418} {
		w.says(status, "")
		s, _ := w.attempt("POST", body(1))
		if ev := d.Send(t.Context(), s); ev.Kind != semel.EvLost {
			t.Errorf("%d: got %s, want lost", status, ev.Kind)
		}
	}
}

// An operation whose profile is not known here is not sent.
func TestUnknownProfile(t *testing.T) {
	w := newWorld(t, "h1")
	d := w.destination(httpdest.Options{})
	s, begins := w.attempt("POST", body(1), func(o *semel.Operation) { o.Contract.Profile = "future@7" })
	if ev := d.Send(t.Context(), s); ev.Kind != semel.EvRefused || begins.Load() != 0 {
		t.Errorf("got %+v", ev)
	}
}

func TestStrictProfiles(t *testing.T) {
	for text, want := range map[string]string{
		"name: X\nversion: 1\n":                           "lower-case",
		"name: x\nversion: 0\n":                           "version",
		header + "windows: 3\n":                           "windows",
		header + "window: {is: 24, " + fact + "tested}\n": "duration",
		header + "window: {is: 24h}\n":                    "names no source",
		header + "window: {is: 24h, source: s, checked: soon, confidence: tested}\n": "not a date",
		header + "window: {is: 24h, " + fact + "sure}\n":                             "confidence",
		header + "key: {header: 'a b', " + fact + "tested}\n":                        "not a header name",
		header + "answers: [{means: completed, " + fact + "tested}]\n":               "matches every answer",
		header + "answers: [{status: [20], means: completed, " + fact + "tested}]\n": "not an HTTP status",
		header + "answers: [{status: [200], means: fine, " + fact + "tested}]\n":     "means",
	} {
		if _, err := httpdest.ParseProfile([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want something about %q", text, err, want)
		}
	}
}

func TestStripeContract(t *testing.T) {
	p, _ := httpdest.BuiltIn("stripe")
	want := semel.Contract{Protection: semel.Keyed, Window: 24 * time.Hour, KeyHeader: "Idempotency-Key", Profile: "stripe@1"}
	if got := p.Contract(); got.Protection != want.Protection || got.Window != want.Window || got.KeyHeader != want.KeyHeader || got.Profile != want.Profile {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
