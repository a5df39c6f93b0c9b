package connection_test

import (
	"encoding/json"
	"errors"
	"math/big"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/connection"
	"github.com/semel-dev/semel/workflowfile"
)

const withActions = `connections:
  payments:
    kind: http
    base: https://api.example.com/v2
    profile: stripe
    owner: billing
    timeout: 30s
    limits: {at_once: 4, per_second: 20}
    lookup: /v1/charges?reference={body.reference}
    actions:
      charge: {post: /v1/charges, required: [customer, amount, reference]}
      slow: {post: /v1/slow, window: 1h, timeout: 5m, max_processing: 10m, owner: slow-ops, metered: true, attempts: 3}
      status: {put: "/v1/tickets/{body.ticket.id}/status", effect: absolute, protection: absolute}
      find: {get: "/v1/charges?reference={body.reference}", timeout: 5s}
      send: {post: /v1/messages, template: text, required: [to, text]}
      close: {delete: "/v1/tickets/{body.id}"}
  plain:
    kind: http
    base: http://plain
    actions:
      poke: {post: /poke}
      note: {post: /note, lookup: "/notes/{body.id}"}
`

func TestCall(t *testing.T) {
	c := parse(t, withActions)
	big1, _ := new(big.Int).SetString("123456789012345678901234567890", 10)
	tests := map[string]struct {
		name string
		with map[string]any
		want string // method, URL, body, protection
	}{
		"post": {
			"payments.charge",
			map[string]any{"customer": "<a&b>", "amount": json.Number("10.10"), "reference": big1},
			`POST https://api.example.com/v2/v1/charges {"amount":10.10,"customer":"<a&b>","reference":123456789012345678901234567890} keyed`,
		},
		"path": {
			"payments.status",
			map[string]any{"ticket": map[string]any{"id": json.Number("9007199254740993")}, "status": "a/b"},
			`PUT https://api.example.com/v2/v1/tickets/9007199254740993/status {"status":"a/b","ticket":{"id":9007199254740993}} absolute`,
		},
		"query":    {"payments.find", map[string]any{"reference": "a/b &c"}, `GET https://api.example.com/v2/v1/charges?reference=a%2Fb+%26c  commutes`},
		"delete":   {"payments.close", map[string]any{"id": "../7"}, `DELETE https://api.example.com/v2/v1/tickets/..%2F7  keyed`},
		"template": {"payments.send", map[string]any{"to": "x", "template": "Dear X"}, `POST https://api.example.com/v2/v1/messages {"text":"Dear X","to":"x"} keyed`},
		"nothing":  {"plain.poke", nil, `POST http://plain/poke  none`},
		"empty":    {"plain.poke", map[string]any{}, `POST http://plain/poke {} none`},
		"lookup":   {"plain.note", map[string]any{"id": 7}, `POST http://plain/note {"id":7} lookup`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			conn, action, _ := strings.Cut(test.name, ".")
			call, err := c.Call(conn, action, test.with)
			if err != nil {
				t.Fatal(err)
			}
			r := call.Request
			got := strings.Join([]string{r.Method, r.URL, string(r.Body), string(call.Contract.Protection)}, " ")
			if got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
			if call.Action != action || r.Action != action || r.Connection != conn || call.Destination == nil {
				t.Errorf("got %+v", call)
			}
			if err := errors.Join(call.Contract.Validate(), r.Validate()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCallRefuses(t *testing.T) {
	c := parse(t, withActions)
	for want, call := range map[string]struct {
		name string
		with map[string]any
	}{
		"no reference, which payments.charge needs":   {"payments.charge", map[string]any{"customer": 1, "amount": 2}},
		`has "page", and payments.find sends no body`: {"payments.find", map[string]any{"reference": "r", "page": 2}},
		"{body.ticket.id} in":                         {"payments.status", map[string]any{"ticket": nil}},
		"which would change the path":                 {"payments.close", map[string]any{"id": ".."}},
		"both template and text":                      {"payments.send", map[string]any{"to": "x", "template": "a", "text": "b"}},
		`"chrage" is none of payments`:                {"payments.chrage", nil},
		`connection "paiments" is unknown`:            {"paiments.charge", nil},
		"cannot be written as JSON":                   {"plain.poke", map[string]any{"f": func() {}}},
		"sql.exec needs at and statement":             {"sql.exec", map[string]any{"at": "ledger"}},
		`has "file", which sql.exec does not take`:    {"sql.exec", map[string]any{"at": "ledger", "file": "a.sql"}},
		"args is not a list":                          {"sql.exec", map[string]any{"at": "ledger", "statement": "select 1", "args": "a"}},
		`connection "ledger" is unknown`:              {"sql.query", map[string]any{"at": "ledger", "statement": "select 1"}},
		`connection "plain" is of kind http, not sql`: {"sql.query", map[string]any{"at": "plain", "statement": "select 1"}},
	} {
		conn, action, _ := strings.Cut(call.name, ".")
		_, err := c.Call(conn, action, call.with)
		var input *semel.InputError
		if !errors.As(err, &input) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// An action inherits what its connection says, and says more for itself.
func TestActionContract(t *testing.T) {
	c := parse(t, withActions)
	base := semel.Contract{
		Protection: semel.Keyed, Window: 24 * time.Hour, KeyHeader: "Idempotency-Key", Profile: "stripe@1", Owner: "billing",
		Timeout: 30 * time.Second, LookupURL: "https://api.example.com/v2/v1/charges?reference={body.reference}",
	}
	slow, status, gone := base, base, base
	slow.Window, slow.Timeout, slow.MaxProcessing, slow.Owner, slow.Metered, slow.Attempts = time.Hour, 5*time.Minute, 10*time.Minute, "slow-ops", true, 3
	status.Protection, status.Effect = semel.Absolute, semel.SetsValue
	gone.LookupURL = ""
	want := map[string]workflowfile.ActionInfo{
		"charge": {Contract: &base, Required: []string{"customer", "amount", "reference"}},
		"slow":   {Contract: &slow},
		"status": {Contract: &status, Required: []string{"ticket"}},
		"find": {Read: true, Contract: &semel.Contract{
			Protection: semel.Commutes, Profile: "stripe@1", Owner: "billing", Timeout: 5 * time.Second,
		}, Required: []string{"reference"}, Optional: []string{}},
		"send":  {Contract: &base, Required: []string{"to"}},
		"close": {Contract: &gone, Required: []string{"id"}, Optional: []string{}},
	}
	info, ok := c.Checks().Connection("payments")
	if diff := cmp.Diff(want, info.Actions); !ok || diff != "" {
		t.Error(diff)
	}
	if info, _ = c.Checks().Connection("plain"); info.Contract != nil || info.Actions["poke"].Contract != nil {
		t.Errorf("got %+v, want that a step must say its effect: nobody did", info)
	}
	if info.Actions["note"].Contract == nil {
		t.Error("a lookup is an effect's contract")
	}
	if _, ok := c.Checks().Connection("gone"); ok {
		t.Error("a connection that is not there")
	}
}

// Recovery goes by what the action promises today, not only its connection.
func TestResolveAction(t *testing.T) {
	stored := func(t *testing.T, name string, with map[string]any) *semel.Operation {
		call, err := parse(t, withActions).Call("payments", name, with)
		if err != nil {
			t.Fatal(err)
		}
		return &semel.Operation{Identity: semel.Identity{Request: call.Request, Contract: call.Contract}}
	}
	slow, status := stored(t, "slow", nil), stored(t, "status", map[string]any{"ticket": map[string]any{"id": 1}})
	c := parse(t, strings.NewReplacer("window: 1h", "window: 30m", "protection: absolute", "protection: none").Replace(withActions))
	_, now, err := c.Resolve(slow)
	if err != nil || now.Window != 30*time.Minute || now.MaxProcessing != 10*time.Minute {
		t.Errorf("got %+v, %v", now, err)
	}
	_, now, err = c.Resolve(status)
	if got := status.Contract.Stricter(now); err != nil || got.Protection != semel.Unprotected {
		t.Errorf("got %+v, %v: it is not absolute any more", got, err)
	}
	status.Request.Action = "other"
	if _, now, err = c.Resolve(status); err != nil || now.Protection != semel.Absolute {
		t.Errorf("got %+v, %v", now, err)
	}
}

// Law 8, M24: whatever takes the protection away in the file - the action, its
// connection or its profile - holds for what was claimed before.
func TestProtectionThatIsTakenBack(t *testing.T) {
	const keyed = "protection: keyed\n    key_header: Idempotency-Key\n    window: 1h"
	const inferred = "key_header: Idempotency-Key\n    window: 1h"
	for name, tt := range map[string]struct{ before, now string }{
		"the connection": {keyed, "protection: none"},
		"the profile":    {inferred, "timeout: 5s"},
		"a lookup":       {keyed, "protection: lookup\n    lookup: '/v1/{key}'"},
		"the header":     {keyed, "protection: keyed\n    key_header: X-Request-Key\n    window: 1h"},
		"the spelling":   {keyed, keyed + "\n    key_quoted: true"},
	} {
		for _, action := range []string{"charge", ""} {
			if action == "" && !strings.HasPrefix(tt.now, "protection: none") && !strings.HasPrefix(tt.now, "protection: lookup") {
				continue // a flag may have said more than the connection
			}
			t.Run(name+" "+action, func(t *testing.T) {
				const actions = "\n    actions: {charge: {post: /v1/charges}}"
				call, err := parse(t, conn(tt.before+actions)).Call("payments", "charge", map[string]any{})
				if err != nil || call.Contract.Protection != semel.Keyed {
					t.Fatalf("got %+v, %v", call.Contract, err)
				}
				call.Request.Action = action
				o := &semel.Operation{Identity: semel.Identity{Request: call.Request, Contract: call.Contract}}
				_, now, err := parse(t, conn(tt.now+actions)).Resolve(o)
				if err != nil {
					t.Fatal(err)
				}
				if got := o.Contract.Stricter(now).Protection; got.Repeatable() {
					t.Errorf("what was claimed before is %s and sent again, although the file says %q now", got, tt.now)
				}
			})
		}
	}
}

func TestActionErrors(t *testing.T) {
	for want, action := range map[string]string{
		"5:15: action payments.a goes nowhere: add post: /path":            "a: {owner: x}",
		"goes elsewhere already":                                           "a: {post: /a, put: /b}",
		`5:19: action payments.a has no member "pots": did you mean post?`: "a: {pots: /a}",
		`action payments.a has no member "lookup"`:                         "a: {get: /a, lookup: /b}",
		"the path cannot be used":                                          "a: {post: 'https://elsewhere/a'}",
		"use {key}, {destination_key} or {body.FIELD}":                     "a: {post: /a, lookup: '/x/{amount}'}",
		"{key}":                                  "a: {post: '/a/{key}'}",
		"required is not a list":                 "a: {post: /a, required: x}",
		"sends no body, so it takes no template": "a: {delete: /a, template: text}",
		"its lookup cannot name members":         "a: {delete: /a, lookup: '/a/{body.id}'}",
		"transactional protection":               "a: {post: /a, protection: transactional}",
		"keyed protection needs the header":      "a: {post: /a, protection: keyed, window: 1h}",
		"lookup leads elsewhere":                 "a: {post: /a, lookup: 'https://elsewhere/{key}'}",
		`"A-b" is not a name for an action`:      "A-b: {post: /a}",
		"max-processing is missing":              "a: {post: /a, lookup: '/x/{key}', absence_is_proof: true}",
		`effect "big" is unknown`:                "a: {post: /a, effect: big}",
		"action payments.a is not a mapping":     "a: /v1",
		"actions has \"a\" already":              "a: {post: /a}, a: {post: /b}",
		`required could be read as something other than text: put it in quotes if it is meant`: "a: {post: /a, required: [1]}",
	} {
		_, err := connection.Parse("semel.yaml", []byte(conn("actions: {"+action+"}")))
		var errs connection.Errors
		if !errors.As(err, &errs) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got\n%v\nwant\n%s", action, err, want)
		}
	}
	long := conn("profile: stripe\n    actions: {a: {post: /a, window: 48h}}")
	if _, err := connection.Parse("semel.yaml", []byte(long)); err == nil || !strings.Contains(err.Error(), "window is longer than profile stripe@1 can rely on") {
		t.Errorf("got %v", err)
	}
	built := strings.Replace(conn("actions: {a: {post: /a}}"), "payments", "sql", 1)
	if _, err := connection.Parse("semel.yaml", []byte(built)); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("got %v", err)
	}
}

// The built-in actions work on a database by its name.
func TestBuiltInActions(t *testing.T) {
	c, err := connection.Parse(filepath.Join(t.TempDir(), "semel.yaml"), []byte("connections:\n  ledger: {kind: sql, url: sqlite:ledger.db, owner: books, limits: {at_once: 2}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, c)
	for name, want := range map[string]semel.Protection{"sql.query": semel.Commutes, "sql.exec": semel.Transactional, "claim.once": semel.Transactional} {
		conn, action, _ := strings.Cut(name, ".")
		statement := map[bool]string{true: "select ?", false: "update seat set holder = ? where holder is null"}[name == "sql.query"]
		call, err := c.Call(conn, action, map[string]any{"at": "ledger", "statement": statement, "args": []any{json.Number("1.50")}})
		if err != nil {
			t.Fatal(err)
		}
		if call.Action != name || call.Request.Action != name || call.Request.Connection != "ledger" || call.Contract.Protection != want || call.Contract.Owner != "books" {
			t.Errorf("%s: got %+v", name, call)
		}
		if !strings.Contains(string(call.Request.Body), "[1.50]") {
			t.Errorf("%s: got %s", name, call.Request.Body)
		}
		o := &semel.Operation{Identity: semel.Identity{Request: call.Request, Contract: call.Contract}}
		if d, now, err := c.Resolve(o); err != nil || d != call.Destination || now.Protection != want {
			t.Errorf("%s: got %+v, %v", name, now, err)
		}
		limited, ok := call.Destination.(interface{ Limit() semel.Limit })
		if !ok || limited.Limit() != (semel.Limit{Name: "ledger", AtOnce: 2}) {
			t.Errorf("got %+v", limited)
		}
	}
	info, ok := c.Checks().Connection("ledger")
	if !ok || info.Contract.Protection != semel.Transactional || len(info.Actions) != 0 || info.Actions == nil {
		t.Errorf("got %+v", info)
	}
	if !slices.Equal(c.Names(), []string{"ledger"}) {
		t.Errorf("got %v", c.Names())
	}
}
