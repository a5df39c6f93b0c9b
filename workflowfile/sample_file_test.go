package workflowfile_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel/workflowfile"
)

func TestOwnValuesReplaceInferredOnes(t *testing.T) {
	d := loaded(t, "../examples/billing/nightly_billing.yaml")
	s, problems := d.ReadSample("drill/nightly_billing.yaml", []byte(`
input: {day: "2027-01-31"}
answers:
  due: {rows: [{id: "4417", customer: c-1, email: ann@example.com, amount: 12.50}, {id: "4418", customer: c-2, email: bob@example.com, amount: 90071992547409931234}]}
  bill/mark_paid: {affected: 1}
  bill[4418]/charge: {id: ch_2}
`))
	want := `starts by person
input {"day":"2027-01-31"}
bill/charge: {"id":"charge-1"}
bill/mark_paid: {"affected":1}
bill/receipt: {}
bill[4418]/charge: {"id":"ch_2"}
due: {"rows":[{"amount":12.50,"customer":"c-1","email":"ann@example.com","id":"4417"},{"amount":90071992547409931234,"customer":"c-2","email":"bob@example.com","id":"4418"}]}
`
	if diff := cmp.Diff(want, shownSample(t, s)); diff != "" || problems != nil {
		t.Errorf("(-want +got):\n%s%s", diff, lines(problems))
	}
	if got := string(s.Answer("bill[4417]/charge")) + string(s.Answer("bill[4418]/charge")) + string(s.Answer("none")); got != `{"id":"charge-1"}{"id":"ch_2"}` {
		t.Errorf("the answers are %s", got)
	}
	for _, nothing := range []string{"", "# nothing yet\n", "null"} {
		s, problems := d.ReadSample("drill/nightly_billing.yaml", []byte(nothing))
		if diff := cmp.Diff(d.Sample(), s); diff != "" || problems != nil {
			t.Errorf("%q (-want +got):\n%s%s", nothing, diff, lines(problems))
		}
	}
}

// TestOwnEvents: null lets a wait time out, and a path goes before a name.
func TestOwnEvents(t *testing.T) {
	started := loaded(t, "testdata/sample/started.yaml")
	s, problems := started.ReadSample("drill/started.yaml", []byte(`
events:
  lines/packed: {count: 7}
  packed: {count: 8}
  order.placed: {customer: {email: ann@example.com}, total: 100, pause: 5m, order: {id: o, lines: [{sku: a, count: 7}]}}
`))
	want := `starts by event
input {}
starts with order.placed {"customer":{"email":"ann@example.com"},"order":{"id":"o","lines":[{"count":7,"sku":"a"}]},"pause":"5m","total":100}
charge: {"settles":"2040-01-02T09:00:00Z"}
lines/tell: {}
lines[a]/packed gets packed(a) {"count":7}
`
	if diff := cmp.Diff(want, shownSample(t, s)); diff != "" || problems != nil {
		t.Errorf("(-want +got):\n%s%s", diff, lines(problems))
	}
	refunds := loaded(t, "testdata/sample/refunds.yaml")
	s, problems = refunds.ReadSample("drill/refunds.yaml", []byte("events: {refund.confirmed: {at: noon}}"))
	if problems != nil || len(s.Events) != 1 || len(s.Unsure) != 1 || !strings.Contains(s.Unsure[0], "step remind is not reached, as its if is not true: steps.reply.result == null: write events.reply in drill/refunds.yaml") {
		t.Errorf("%+v\n%s", s, lines(problems))
	}
	s, _ = started.ReadSample("drill/started.yaml", []byte("events: {packed: null}"))
	if len(s.Unsure) == 0 || !strings.Contains(s.Unsure[0], "the sample brings no event, and the wait has no timeout") {
		t.Errorf("unsure: %q", s.Unsure)
	}
}

// TestOwnValuesLeadElsewhere: what they keep from being reached is said.
func TestOwnValuesLeadElsewhere(t *testing.T) {
	d := loaded(t, "../examples/helpdesk-yaml/sla.yaml")
	for text, want := range map[string]string{
		"answers: {breached/claim: {won: false}}":            "step breached/escalate is not reached, as its if is not true: steps.claim.result.won: write answers.breached/claim in drill/sla.yaml",
		"answers: {overdue: {rows: []}}":                     "step breached/claim is not reached: its list has no item for it",
		"answers: {overdue: {rows: [{id: a}, {id: a}]}}":     `has two items with the key "a"`,
		"answers: {overdue: {rows: [{id: a}]}}":              "no such key: title: write answers.breached/claim or answers.overdue in drill/sla.yaml",
		"answers: {'breached[ticket-3]/claim': {won: true}}": "answers.breached[ticket-3]/claim is not used: no item has this key",
		"answers: {overdue: much}":                           "steps.overdue.rows",
	} {
		s, problems := d.ReadSample("drill/sla.yaml", []byte(text))
		if len(s.Unsure) == 0 || !strings.Contains(s.Unsure[0], want) || problems != nil {
			t.Errorf("%s: unsure %q, want %s\n%s", text, s.Unsure, want, lines(problems))
		}
	}
}

func TestOwnValuesAreReadStrictly(t *testing.T) {
	d := loaded(t, "testdata/sample/ways.yaml")
	data, err := os.ReadFile("testdata/sample/drill/ways.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, problems := d.ReadSample("drill/ways.yaml", data)
	got := lines(problems)
	_, problems = loaded(t, "testdata/sample/started.yaml").ReadSample("drill/started.yaml", []byte("input: {total: 3}\nevents: {order.placed: null, order.plaecd: {}}\nanswers: [charge]\n"))
	got += lines(problems)
	_, problems = d.ReadSample("drill/ways.yaml", []byte("- answers\n"))
	got += lines(problems)
	_, problems = d.ReadSample("drill/ways.yaml", []byte("answers: {\n"))
	got += lines(problems)
	const golden = "testdata/sample/drill/problems"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if diff := cmp.Diff(string(want), got); diff != "" || err != nil {
		t.Errorf("(-want +got):\n%s%v", diff, err)
	}
	for _, p := range problems {
		if p.Severity != workflowfile.SeverityError {
			t.Errorf("%v is no error", p)
		}
	}
}
