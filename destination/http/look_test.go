package httpdest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
)

// What a lookup says (M21, M22, law 15, C14).
func TestLook(t *testing.T) {
	const asked = `{"ref":"o-1","amount":20000,"currency":"EUR","note":"x"}`
	found, absent, silent := semel.EvFound, semel.EvAbsent, semel.EvNoAnswer
	tests := map[string]struct {
		status  int
		answer  string
		foundIn string
		want    semel.EventKind
		person  bool
		ref     string
	}{
		"found":                     {200, `{"id":"ch_1","ref":"o-1","amount":20000}`, "", found, false, "ch_1"},
		"found, spelled otherwise":  {200, `{"id":"ch_1","amount":"20000.00","currency":"eur"}`, "", found, false, "ch_1"},
		"found, expanded":           {200, `{"id":"ch_1","amount":{"value":20000}}`, "", found, false, "ch_1"},
		"found, changed since":      {200, `{"id":"ch_1","note":"y"}`, "", found, false, "ch_1"},
		"another amount":            {200, `{"id":"ch_1","ref":"o-1","amount":999}`, "", silent, true, ""},
		"another reference":         {200, `{"id":"ch_1","ref":"o-2"}`, "", silent, true, ""},
		"not found":                 {404, ``, "", absent, false, ""},
		"gone":                      {410, ``, "", silent, false, ""},
		"empty object":              {200, `{}`, "", silent, false, ""},
		"a list in an object":       {200, `{"data":[],"has_more":false}`, "", silent, false, ""},
		"a field and no name":       {200, `{"ref":"o-1"}`, "", found, false, ""},
		"a list by surprise":        {200, `[]`, "", silent, false, ""},
		"a page":                    {200, `<html>`, "", silent, false, ""},
		"repeated member":           {200, `{"id":"a","id":"b"}`, "", silent, false, ""},
		"no content":                {204, ``, "", silent, false, ""},
		"redirect":                  {302, ``, "", silent, false, ""},
		"unauthorised":              {401, ``, "", silent, false, ""},
		"overloaded":                {429, ``, "", silent, false, ""},
		"broken":                    {500, ``, "", silent, false, ""},
		"too long":                  {200, `{"id":"` + strings.Repeat("a", semel.MaxResult) + `"}`, "", silent, false, ""},
		"list of one":               {200, `{"data":{"items":[{"id":9007199254740993}]}}`, "data.items", found, false, "9007199254740993"},
		"empty list":                {200, `{"data":{"items":[]}}`, "data.items", absent, false, ""},
		"list of two":               {200, `{"data":{"items":[{"id":"a"},{"id":"b"}]}}`, "data.items", silent, true, ""},
		"part of a list":            {200, `{"has_more":true,"data":{"items":[]}}`, "data.items", silent, false, ""},
		"list elsewhere":            {200, `{"items":[]}`, "data.items", silent, false, ""},
		"list of null":              {200, `{"data":{"items":[null]}}`, "data.items", silent, false, ""},
		"list of numbers":           {200, `{"data":{"items":[7]}}`, "data.items", silent, false, ""},
		"no list for it":            {404, ``, "data.items", absent, false, ""},
		"listed, with another data": {200, `{"data":{"items":[{"id":"a","amount":1}]}}`, "data.items", silent, true, ""},
	}
	w := newWorld(t, "h1")
	d := w.destination(httpdest.Options{})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w.says(test.status, test.answer, "Location", "/elsewhere")
			before := len(w.seen())
			s, begins := w.attempt("POST", []byte(asked), func(o *semel.Operation) {
				o.Key = "a/b ?"
				o.Contract.LookupURL = w.URL + "/by/{key}/{destination_key}?ref={body.ref}&key={key}"
				o.Contract.FoundIn = test.foundIn
				o.Request.Header = map[string]string{"Account": "7", "If-Match": "x"}
				keyed(o)
			})
			ev := d.Look(t.Context(), s)
			if ev.Kind != test.want || ev.Person != test.person || ev.Reference != test.ref {
				t.Errorf("got %+v, want %s, person %v, reference %q", ev, test.want, test.person, test.ref)
			}
			if ev.Kind == semel.EvFound && ev.Result.Reference != test.ref {
				t.Errorf("result %+v", ev.Result)
			}
			seen := w.seen()[before:]
			if len(seen) != 1 || begins.Load() != 0 {
				t.Fatalf("%d requests and %d Begins, want one and none", len(seen), begins.Load())
			}
			got := seen[0]
			want := "/by/a%2Fb%20%3F/" + s.DestinationKey + "?ref=o-1&key=a%2Fb+%3F"
			if got.Method != http.MethodGet || got.Target != want || len(got.Body) != 0 {
				t.Errorf("got %s %s, want GET %s", got.Method, got.Target, want)
			}
			h := got.Header
			if h.Get("Account") != "7" || h.Get("If-Match") != "" || h.Get("Idempotency-Key") != "" || h.Get("Content-Type") != "" {
				t.Errorf("headers %v", h)
			}
		})
	}
}

// A lookup that cannot be asked safely is not asked.
func TestLookIsNotAsked(t *testing.T) {
	w := newWorld(t, "h1")
	elsewhere := newWorld(t, "h1")
	d := w.destination(httpdest.Options{})
	for name, change := range map[string]func(*semel.Operation){
		"no lookup":         func(o *semel.Operation) {},
		"no such member":    func(o *semel.Operation) { o.Contract.LookupURL = w.URL + "/{body.nothing}" },
		"member is no text": func(o *semel.Operation) { o.Contract.LookupURL = w.URL + "/{body.list}" },
		"path would change": func(o *semel.Operation) { o.Contract.LookupURL = w.URL + "/{body.dots}/x" },
		"value in the host": func(o *semel.Operation) { o.Contract.LookupURL = "http://{body.host}/x" },
		"no closing brace":  func(o *semel.Operation) { o.Contract.LookupURL = w.URL + "/{key" },
		"withheld elsewhere": func(o *semel.Operation) {
			o.Contract.LookupURL = elsewhere.URL + "/{key}"
			o.Request.Withheld = []string{"Authorization"}
		},
	} {
		s, _ := w.attempt("POST", []byte(`{"list":[1],"dots":"..","host":"evil"}`), change)
		s.Withheld = map[string]string{}
		if len(s.Operation.Request.Withheld) > 0 {
			s.Withheld["Authorization"] = "x"
		}
		if ev := d.Look(t.Context(), s); ev.Kind != semel.EvNoAnswer || ev.Reason == "" {
			t.Errorf("%s: got %+v", name, ev)
		}
	}
	if n := len(w.seen()) + len(elsewhere.seen()); n != 0 {
		t.Errorf("%d requests were made", n)
	}
}

// "It exists already" completes a resend, if what exists is what was asked for
// (C14 steps 3 and 4).
func TestExists(t *testing.T) {
	profile, err := httpdest.ParseProfile([]byte(`
name: orders
version: 3
title: an order system with natural keys
compare: {fields: [ref, amount], source: its manual, checked: 2026-11-29, confidence: documented}
reference: {at: id, source: its manual, checked: 2026-11-29, confidence: documented}
answers:
  - {status: [409], means: exists, reference: existing, source: its manual, checked: 2026-11-29, confidence: documented}
`))
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, "h1")
	d := w.destination(httpdest.Options{Profile: profile})
	for answer, want := range map[string]semel.EventKind{
		`{"existing":"ch_1","ref":"o-1","amount":20000}`: semel.EvConfirmed,
		`{"existing":"ch_1","ref":"o-1","amount":999}`:   semel.EvLost,
		`{"ref":"o-1"}`: semel.EvLost,
		``:              semel.EvLost,
	} {
		w.says(409, answer)
		s, _ := w.attempt("POST", []byte(`{"ref":"o-1","amount":20000}`))
		ev := d.Send(t.Context(), s)
		if ev.Kind != want || want == semel.EvConfirmed && ev.Reference != "ch_1" || want == semel.EvLost && !ev.Person {
			t.Errorf("%s: got %+v, want %s", answer, ev, want)
		}
	}
}
