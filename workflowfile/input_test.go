package workflowfile_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/workflowfile"
)

func sortedRefs(v *workflowfile.Value) []string { return slices.Sorted(slices.Values(v.Refs())) }

func TestResolveInputs(t *testing.T) {
	d, problems := workflowfile.Parse("i.yaml", []byte(`name: i
version: 1
on: {schedule: {cron: "0 2 * * *"}}
inputs:
  day: {type: string, format: date, default: "${{ tick.date }}"}
  at: {type: string, format: date-time, default: "2027-01-31T09:00:00Z"}
  count: {type: integer}
  price: {type: number, default: 1.50}
steps: [{id: a, sleep: {for: 1s}}]
`), checks)
	if d == nil {
		t.Fatal(lines(problems))
	}
	tick := workflowfile.Vars{"tick": map[string]any{"date": "2027-01-31"}}
	n := func(s string) json.Number { return json.Number(s) }
	got, err := d.ResolveInputs(t.Context(), map[string]any{"count": n("3")}, tick)
	want := map[string]any{"day": "2027-01-31", "at": "2027-01-31T09:00:00Z", "count": n("3"), "price": n("1.50")}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("inputs (-want +got):\n%s%v", diff, err)
	}
	tests := map[string]struct {
		given map[string]any
		want  string
	}{
		"missing":    {map[string]any{}, "inputs.count"},
		"unknown":    {map[string]any{"count": n("3"), "cuont": n("3")}, "inputs.cuont"},
		"fraction":   {map[string]any{"count": n("3.5")}, "inputs.count"},
		"wrong type": {map[string]any{"count": "3"}, "inputs.count"},
		"no date":    {map[string]any{"count": n("3"), "day": "31.1.2027"}, "inputs.day"},
		"no time":    {map[string]any{"count": n("3"), "at": "09:00"}, "inputs.at"},
		"null":       {map[string]any{"count": nil}, "inputs.count"},
	}
	for name, test := range tests {
		_, err := d.ResolveInputs(t.Context(), test.given, tick)
		if e, ok := errors.AsType[*semel.InputError](err); !ok || e.Field != test.want {
			t.Errorf("%s: got %v, want an error about %s", name, err, test.want)
		}
	}
	if _, err := d.ResolveInputs(t.Context(), map[string]any{"count": n("3")}, nil); err == nil {
		t.Error("a default without its tick was accepted")
	}
}

func TestInputsThatOnlyATriggerGivesMustBeGiven(t *testing.T) {
	d, problems := workflowfile.Parse("w.yaml", []byte(`
name: w
version: 1
on: {schedule: {cron: "0 2 * * *"}, http: {}}
inputs: {day: {type: string, default: "${{ tick.date }}"}, kind: {type: string, default: "full"}}
steps: [{id: rest, sleep: {for: 1s}}]
`), workflowfile.Checks{})
	if d == nil {
		t.Fatal(problems)
	}
	_, err := d.New("k", []byte(`{}`))
	if err == nil || !strings.Contains(err.Error(), "inputs.day is missing") || !strings.Contains(err.Error(), "schedule") {
		t.Errorf("without the day: error %v", err)
	}
	if _, err := d.New("k", []byte(`{"day":"2026-03-01"}`)); err != nil {
		t.Errorf("with the day: %v", err)
	}
}
