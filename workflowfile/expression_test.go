package workflowfile_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel/workflowfile"
)

// with parses one value and returns it compiled.
func with(t testing.TB, value string) *workflowfile.Value {
	t.Helper()
	file := `name: one
version: 1
inputs:
  day: {type: string}
  count: {type: integer}
  price: {type: number}
  rows: {type: array}
  order: {type: object}
steps:
  - id: one
    uses: payments.charge
    with:
      v: ` + value + "\n"
	d, problems := workflowfile.Parse("one.yaml", []byte(file), checks)
	if d == nil {
		t.Fatalf("%s:\n%s", value, lines(problems))
	}
	return d.Steps[0].Uses.With.Field("v")
}

// vars decodes JSON as an interpreter does.
func vars(t testing.TB, text string) workflowfile.Vars {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v workflowfile.Vars
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

const oneOrder = `{"inputs": {
	"day": "2027-01-31", "count": 9007199254740993, "price": 0.10,
	"rows": [{"id": "a", "amount": 0.10}, {"id": "b", "amount": 123456789012345678901234567890}, {"id": "c", "amount": 5}],
	"order": {"id": 7, "total": 1e2, "lines": [1.50, null, true], "empty": "", "none": null}
}}`

// TestNumbersAreExact: what is handed on keeps its digits, and what is
// computed has no rounding.
func TestNumbersAreExact(t *testing.T) {
	tests := map[string]string{
		`${{ inputs.rows[0].amount }}`:                                  `0.10`,
		`${{ inputs.rows[1].amount }}`:                                  `123456789012345678901234567890`,
		`${{ inputs.rows[2].amount + 1 }}`:                              `6`,
		`${{ inputs.count + 1 }}`:                                       `9007199254740994`,
		`${{ inputs.order.total }}`:                                     `1e2`,
		`${{ inputs.order }}`:                                           `{"empty":"","id":7,"lines":[1.50,null,true],"none":null,"total":1e2}`,
		`"${{ inputs.price > 0.05 ? inputs.price : 0.0 }}"`:             `0.10`,
		`${{ inputs.rows.map(r, r.amount) }}`:                           `[0.10,123456789012345678901234567890,5]`,
		`${{ inputs.rows.filter(r, r.amount >= 5).map(r, r.id) }}`:      `["b","c"]`,
		`${{ inputs.price + 0.2 }}`:                                     `0.3`,
		`${{ 0.2 + inputs.price }}`:                                     `0.3`,
		`${{ 0.1 + 0.2 == 0.3 }}`:                                       `true`,
		`${{ inputs.price * 3 }}`:                                       `0.3`,
		`${{ 3 * inputs.price }}`:                                       `0.3`,
		`${{ inputs.rows[1].amount + 1 }}`:                              `123456789012345678901234567891`,
		`${{ inputs.rows[1].amount / 2 }}`:                              `61728394506172839450617283945`,
		`${{ 100 == inputs.order.total }}`:                              `true`,
		`${{ inputs.order.total != 100 }}`:                              `false`,
		`${{ 100 in [inputs.order.total] }}`:                            `true`,
		`${{ -inputs.price }}`:                                          `-0.1`,
		`${{ double(inputs.price) * 0.5 }}`:                             `0.05`,
		`${{ int(inputs.order.total) + 1 }}`:                            `101`,
		`${{ string(inputs.price) + ' EUR' }}`:                          `"0.10 EUR"`,
		`"${{ inputs.price }} EUR"`:                                     `"0.10 EUR"`,
		`${{ inputs.order.none == null }}`:                              `true`,
		`${{ [100, 0.1] == [inputs.order.total, inputs.price] }}`:       `true`,
		`"${{ {'a': [100]} == {'a': [inputs.order.total]} }}"`:          `true`,
		`"${{ {'a': [100]} == {'b': [inputs.order.total]} }}"`:          `false`,
		`${{ [1] == [1, 2] }}`:                                          `false`,
		`${{ inputs.order.none == 0.5 }}`:                               `false`,
		`${{ 7 / 2 }}`:                                                  `3`,
		`{a: ["${{ inputs.price }}", 1.50, "x"]}`:                       `{"a":[0.10,1.50,"x"]}`,
		`"${{ {'a': {'b': '}}'}} }}"`:                                   `{"a":{"b":"}}"}}`,
		`${{ timestamp(inputs.day + 'T00:00:00Z') + duration('24h') }}`: `"2027-02-01T00:00:00Z"`,
		`${{ inputs.day.split('-')[0] }}`:                               `"2027"`,
	}
	for value, want := range tests {
		got, err := with(t, value).Eval(t.Context(), vars(t, oneOrder))
		if err != nil {
			t.Errorf("%s: %v", value, err)
			continue
		}
		b, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		if string(b) != want {
			t.Errorf("%s: got %s, want %s", value, b, want)
		}
	}
}

func TestEvaluationErrors(t *testing.T) {
	tests := map[string]string{
		`"order ${{ inputs.order.none }}"`:  "one.yaml:13:21: inputs.order.none is not a text, a number or a truth value",
		`"order ${{ inputs.order.lines }}"`: "cannot be part of a text",
		`${{ inputs.order.nothing }}`:       "no such key: nothing",
		`${{ inputs.price / 3 }}`:           "no exact decimal",
		`${{ inputs.order.id / 0 }}`:        "division by zero",
		`${{ inputs.price / 0 }}`:           "division by zero",
		`${{ inputs.order.id + 'x' }}`:      "no such overload",
		`${{ inputs.price + inputs.day }}`:  "no such overload",
		`${{ inputs.rows[9] }}`:             "index out of bounds",
		`${{ {1: 2} }}`:                     "is not a text",
		`${{ b'x' }}`:                       "has no JSON form",
	}
	for value, want := range tests {
		if value == `${{ {1: 2} }}` {
			value = `"` + value + `"`
		}
		got, err := with(t, value).Eval(t.Context(), vars(t, oneOrder))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v, want an error with %q", value, got, err, want)
		}
	}
}

func TestHugeNumbersAreHandedOnButNotComputedWith(t *testing.T) {
	huge := vars(t, `{"inputs": {"price": 1e999999999}}`)
	if got, err := with(t, "${{ inputs.price }}").Eval(t.Context(), huge); err != nil || got != json.Number("1e999999999") {
		t.Errorf("got %v, %v", got, err)
	}
	for _, value := range []string{"inputs.price + 1", "inputs.price > 1", "-inputs.price", "int(inputs.price)"} {
		if got, err := with(t, "${{ "+value+" }}").Eval(t.Context(), huge); err == nil {
			t.Errorf("%s: got %v, want an error", value, got)
		}
	}
	for _, value := range []string{"inputs.price == 1", "1 in [inputs.price]", "[inputs.price] == [1.5]", "inputs.price == 1.5", "inputs.price != inputs.price"} {
		if got, err := with(t, "${{ "+value+" }}").Eval(t.Context(), huge); err != nil || got != false {
			t.Errorf("%s: got %v, %v, want false", value, got, err)
		}
	}
}

func TestKeysNeedContent(t *testing.T) {
	tests := map[string]struct{ want, err string }{
		`"a-${{ inputs.order.id }}"`:    {want: "a-7"},
		`${{ inputs.day }}`:             {want: "2027-01-31"},
		`fixed`:                         {want: "fixed"},
		`"a-${{ inputs.order.empty }}"`: {err: "cannot be a key"},
		`"a-${{ inputs.order.none }}"`:  {err: "cannot be a key"},
		`"a-${{ inputs.price }}"`:       {err: "cannot be a key"},
		`[a]`:                           {err: "cannot be a key"},
		`{a: b}`:                        {err: "cannot be a key"},
		`""`:                            {err: "cannot be a key"},
		`17`:                            {err: "cannot be a key"},
	}
	for value, test := range tests {
		got, err := with(t, value).Key(t.Context(), vars(t, oneOrder))
		if got != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: got %q, %v, want %+v", value, got, err, test)
		}
	}
}

func TestEvaluationEndsWithItsContext(t *testing.T) {
	v := with(t, "${{ inputs.rows.all(a, inputs.rows.all(b, a >= 0 || b >= 0)) }}")
	rows := make([]any, 500)
	for i := range rows {
		rows[i] = json.Number(fmt.Sprint(i))
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("the lease is lost")
	cancel(reason)
	_, err := v.Eval(ctx, workflowfile.Vars{"inputs": map[string]any{"rows": rows}})
	if !errors.Is(err, reason) {
		t.Errorf("got %v, want %v", err, reason)
	}
}

func TestEvaluationHasABoundedCost(t *testing.T) {
	v := with(t, "${{ inputs.rows.all(a, inputs.rows.all(b, inputs.rows.all(c, a + b + c >= 0))) }}")
	rows := make([]any, 2000)
	for i := range rows {
		rows[i] = json.Number(fmt.Sprint(i))
	}
	_, err := v.Eval(t.Context(), workflowfile.Vars{"inputs": map[string]any{"rows": rows}})
	if err == nil || !strings.Contains(err.Error(), "cost limit exceeded") {
		t.Errorf("got %v, want the cost limit", err)
	}
}

func TestStepExpressions(t *testing.T) {
	d, problems := workflowfile.Parse("b.yaml", files(t, "testdata/good/nightly_billing.yaml")["testdata/good/nightly_billing.yaml"], checks)
	if d == nil {
		t.Fatal(lines(problems))
	}
	each := d.Steps[1].Each
	vs := vars(t, `{"inputs": {"day": "2027-01-31"}, "steps": {"due": {"rows": [{"id": 17, "amount": 0.10}]}}}`)
	items, err := each.In.List(t.Context(), vs)
	if err != nil || len(items) != 1 {
		t.Fatal(items, err)
	}
	vs["invoice"] = items[0]
	key, err := each.Key.Key(t.Context(), vs)
	if err != nil || key != "17" {
		t.Errorf("item key %q, %v", key, err)
	}
	key, err = each.Steps[0].Uses.Effect.Key.Key(t.Context(), vs)
	if err != nil || key != "invoice-17-charge" {
		t.Errorf("effect key %q, %v", key, err)
	}
	if diff := cmp.Diff([]string{"invoice.amount", "invoice.customer", "invoice.id"}, sortedRefs(each.Steps[0].Uses.With)); diff != "" {
		t.Errorf("refs (-want +got):\n%s", diff)
	}
	if _, err := each.In.Bool(t.Context(), vs); err == nil || !strings.Contains(err.Error(), "is not true or false") {
		t.Errorf("a list as a condition: %v", err)
	}
}

func TestSleepValues(t *testing.T) {
	d, problems := workflowfile.Parse("s.yaml", []byte(`name: s
version: 1
inputs: {x: {type: string}}
steps:
  - {id: a, sleep: {for: 1h30m}}
  - {id: b, sleep: {for: "${{ inputs.x }}"}}
  - {id: c, sleep: {until: "2027-01-31T09:00:00+01:00"}}
  - {id: d, sleep: {until: "${{ timestamp(inputs.x) + duration('1h') }}"}}
`), checks)
	if d == nil {
		t.Fatal(lines(problems))
	}
	in := func(x string) workflowfile.Vars { return workflowfile.Vars{"inputs": map[string]any{"x": x}} }
	if got, err := d.Steps[0].Sleep.For.Duration(t.Context(), nil); got != 90*time.Minute || err != nil {
		t.Errorf("literal: %v, %v", got, err)
	}
	if got, err := d.Steps[1].Sleep.For.Duration(t.Context(), in("72h")); got != 72*time.Hour || err != nil {
		t.Errorf("computed: %v, %v", got, err)
	}
	if _, err := d.Steps[1].Sleep.For.Duration(t.Context(), in("72")); err == nil {
		t.Error("72 without a unit was accepted")
	}
	want := time.Date(2027, 1, 31, 8, 0, 0, 0, time.UTC)
	if got, err := d.Steps[2].Sleep.Until.Time(t.Context(), nil); !got.Equal(want) || err != nil {
		t.Errorf("literal: %v, %v", got, err)
	}
	if got, err := d.Steps[3].Sleep.Until.Time(t.Context(), in("2027-01-31T07:00:00Z")); !got.Equal(want) || err != nil {
		t.Errorf("computed: %v, %v", got, err)
	}
}

// TestExpressionsAreSafeForConcurrentUse: run with -race.
func TestExpressionsAreSafeForConcurrentUse(t *testing.T) {
	v := with(t, `{a: "${{ inputs.rows.map(r, r.amount) }}", b: "n ${{ inputs.price * 2 }}"}`)
	vs := vars(t, oneOrder)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				if _, err := v.Eval(t.Context(), vs); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
