package connection_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/connection"
)

// M37: all errors at once, each with its place and its cure.
func TestErrors(t *testing.T) {
	tests := map[string]struct{ file, want string }{
		"many at once": {`tenant: 00123
connections:
  payments:
    kind: http
    base: https://u:p@api.example.com
    timeot: 30s
    window: 24
    absence_is_proof: yes
  Orders:
    kind: ftp
    secret: hunter2
  stock:
    kind: http
`, `semel.yaml:1:9: tenant could be read as something other than text: put it in quotes if it is meant as text
semel.yaml:3:3: window is missing: keyed protection needs to know`},
		"unknown member": {"tenat: acme\n", `semel.yaml:1:1: the file has no member "tenat": did you mean tenant?`},
		"twice": {
			"tenant: a\ntenant: b\n",
			`semel.yaml:2:1: the file has "tenant" already, in line 1: keep one of them`,
		},
		"not a mapping": {"- a\n", "semel.yaml:1:1: the file is not a mapping: write members as name: value, indented below it"},
		"bad yaml":      {"a: [\n", "semel.yaml:"},
		"two documents": {"tenant: a\n---\ntenant: b\n", "a second document begins here"},
		"alias":         {"connections:\n  a: &x {kind: http, base: 'https://h'}\n  b: *x\n", `semel.yaml:2:6: "a" uses an anchor or alias: write the value itself`},
		"plain secret":  {conn("secret: sk_live_123"), "secret is not a reference: keep the value out of the file: write env:NAME or file:PATH"},
		"plain credential": {
			conn("headers: {authorization: Bearer sk_live_123}"),
			"header Authorization is a credential: keep the value out of the file",
		},
		"long window":    {conn("profile: stripe\n    window: 48h"), "semel.yaml:6:13: window is longer than profile stripe@1 can rely on: use 24h0m0s or less"},
		"unitless":       {conn("timeout: 30"), "semel.yaml:5:14: timeout is not a duration: write it with its unit, for example 30s or 24h"},
		"foreign lookup": {conn("lookup: https://elsewhere.example.com/{key}"), "lookup leads elsewhere than base, where the secret must not go: begin it with /"},
		"bad lookup":     {conn("lookup: /x/{amount}"), "use {key}, {destination_key} or {body.FIELD}"},
		"proof without time": {
			conn("lookup: /x/{key}\n    absence_is_proof: true"),
			"max-processing is missing",
		},
		"no such profile":      {conn("profile: strip"), `semel.yaml:5:14: profile "strip" is unknown: use one of generic@1, sandbox@1, stripe@1`},
		"managed header":       {conn("headers: {content-length: '3'}"), "header Content-Length cannot be given: it follows from the body"},
		"database without url": {"connections:\n  l: {kind: sql}\n", `semel.yaml:2:3: connection "l" has no url: add url: postgres://user@host/name`},
		"database with base":   {"connections:\n  l: {kind: sql, base: 'http://h', url: 'sqlite:l.db'}\n", `connection l has no member "base"`},
		"plain password":       {"connections:\n  l: {kind: sql, url: 'postgres://u:hunter2@h/d'}\n", "url holds a password: give it as secret: env:NAME"},
		"password parameter":   {"connections:\n  l: {kind: sql, url: 'postgres://u@h/d?password=hunter2'}\n", "url holds a password"},
		"other database":       {"connections:\n  l: {kind: sql, url: 'mysql://h/d'}\n", "url is for no database that is known"},
		"secret of a file":     {"connections:\n  l: {kind: sql, url: 'sqlite:l.db', secret: 'env:X'}\n", "an SQLite database takes no secret"},
		"database effect":      {"connections:\n  l: {kind: sql, url: 'sqlite:l.db', effect: big}\n", `effect "big" is unknown`},
		"rate":                 {conn("limits: {per_second: .inf}"), "per_second is not a number from 0.001 to 1000000"},
		"keyed nowhere":        {conn("protection: keyed\n    window: 1h"), "keyed protection needs the header that carries the key"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := connection.Parse("semel.yaml", []byte(test.file))
			var errs connection.Errors
			if !errors.As(err, &errs) {
				t.Fatalf("got %v, want Errors", err)
			}
			if name == "many at once" {
				if len(errs) < 8 {
					t.Errorf("got only %d errors:\n%v", len(errs), err)
				}
				test.want = strings.SplitN(test.want, "\n", 2)[0]
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("got\n%v\nwant\n%s", err, test.want)
			}
			for _, secret := range []string{"sk_live", "hunter2", "u:p"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the message repeats a secret: %v", err)
				}
			}
		})
	}
}

func conn(more string) string {
	return "connections:\n  payments:\n    kind: http\n    base: https://api.example.com\n    " + more + "\n"
}

func TestContract(t *testing.T) {
	c := parse(t, `tenant: acme
connections:
  payments:
    kind: http
    base: https://api.stripe.com/
    profile: stripe
    timeout: 30s
    max_processing: 2m
    visible_after: 1m
    absence_is_proof: true
    lookup: /v1/charges?reference={body.reference}
    found_in: data
    owner: billing@acme.example
    limits: {at_once: 4, per_second: 0.5}
  tickets:
    kind: http
    base: http://tickets
`)
	_, got, err := c.Open("payments")
	if err != nil {
		t.Fatal(err)
	}
	want := semel.Contract{
		Protection: semel.Keyed, Window: 24 * time.Hour, KeyHeader: "Idempotency-Key", Profile: "stripe@1",
		Timeout: 30 * time.Second, MaxProcessing: 2 * time.Minute, VisibleAfter: time.Minute, AbsenceIsProof: true,
		LookupURL: "https://api.stripe.com/v1/charges?reference={body.reference}", FoundIn: "data", Owner: "billing@acme.example",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, got, err = c.Open("tickets"); err != nil || got.Protection != semel.Unprotected || got.Profile != "generic@1" || got.KeyHeader != "" {
		t.Errorf("got %+v, %v; want no protection and no key, since nothing is declared", got, err)
	}
	if c.Tenant != "acme" {
		t.Errorf("tenant %q", c.Tenant)
	}
	if _, err := c.HTTP("paymets"); err == nil || !strings.Contains(err.Error(), "did you mean payments?") {
		t.Errorf("got %v", err)
	}
	if d, err := c.HTTP("payments"); err == nil {
		if url, _ := d.URL("/v1/charges"); url != "https://api.stripe.com/v1/charges" {
			t.Errorf("got %s", url)
		}
	}
}

// A secret goes to the destination and nowhere else; it is read for each
// attempt (law 10).
func TestSecrets(t *testing.T) {
	const value = "sk_live_hunter2"
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization")+"|"+r.Header.Get("X-Api-Key")+"|"+r.Header.Get("Api-Version"))
		w.WriteHeader(http.StatusCreated)
	}))
	defer server.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "key")
	write(t, file, value+"\n")
	write(t, filepath.Join(dir, "semel.yaml"), `connections:
  payments:
    kind: http
    base: `+server.URL+`
    secret: env:SEMEL_TEST_KEY
    headers: {x-api-key: "file:key", Api-Version: "7"}
`)
	t.Setenv("SEMEL_TEST_KEY", value)
	c, err := connection.Load(filepath.Join(dir, "semel.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, c)
	d, err := c.HTTP("payments")
	if err != nil {
		t.Fatal(err)
	}
	request, _, err := d.NewRequest("POST", "/charges", nil, []byte(`{"a":1}`))
	if err != nil {
		t.Fatal(err)
	}
	op := &semel.Operation{Identity: semel.Identity{Scope: "s", Key: "k", Request: request, Contract: d.Contract()}, Attempt: 1}
	send := func() semel.Event {
		return d.Send(t.Context(), &semel.Send{Operation: op, Attempt: 1, Begin: func() error { return nil }})
	}
	first := send()
	write(t, file, "rotated")
	second := send()
	t.Setenv("SEMEL_TEST_KEY", "")
	third := send()
	if diff := cmp.Diff([]string{"Bearer " + value + "|" + value + "|7", "Bearer " + value + "|rotated|7"}, got); diff != "" {
		t.Error(diff)
	}
	if third.Kind != semel.EvRefused || !strings.Contains(third.Reason, "secret env:SEMEL_TEST_KEY is empty") {
		t.Errorf("got %+v, want refused: nothing can be sent without the secret", third)
	}
	everything, err := json.Marshal([]any{op, first, second, third, c.Secrets("payments")})
	if err != nil {
		t.Fatal(err)
	}
	shown := string(everything) + fmt.Sprintf("%v %+v %#v %s", c, c, c.Secrets("payments"), c.Secrets("payments"))
	if strings.Contains(shown, "hunter2") || strings.Contains(shown, "rotated") {
		t.Errorf("a secret is shown in %s", shown)
	}
	if !strings.Contains(shown, "env:SEMEL_TEST_KEY") {
		t.Errorf("the reference is not shown in %s", shown)
	}
}

// Recovery finds the way of a stored operation (M21), under the stricter of
// what was and what is promised (law 8).
func TestResolve(t *testing.T) {
	c := parse(t, conn("profile: stripe\n    window: 1h\n    visible_after: 5m"))
	stored := &semel.Operation{Identity: semel.Identity{
		Request:  semel.Request{Kind: "http", Connection: "payments"},
		Contract: semel.Contract{Protection: semel.Keyed, Window: 24 * time.Hour, Owner: "me", Profile: "stripe@1"},
	}}
	d, current, err := c.Resolve(stored)
	if err != nil || d == nil {
		t.Fatal(err)
	}
	if current.Window != time.Hour || current.VisibleAfter != 5*time.Minute || current.Owner != "me" {
		t.Errorf("got %+v", current)
	}
	stored.Request.Connection = ""
	if d, current, err = c.Resolve(stored); err != nil || d == nil || current.Window != 24*time.Hour {
		t.Errorf("got %v, %+v, %v", d, current, err)
	}
	stored.Request.Connection = "gone"
	if _, _, err := c.Resolve(stored); err == nil {
		t.Error("a connection that is gone was resolved")
	}
	stored.Request = semel.Request{Kind: "call"}
	if _, _, err := c.Resolve(stored); err == nil {
		t.Error("another kind was resolved")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(conn("profile: stripe")))
	f.Add([]byte("tenant: a\nconnections: {x: {kind: http, base: 'http://h', limits: {at_once: 1}}}"))
	f.Add([]byte("connections: {x: {kind: sql, url: 'postgres://u@h/d'}, y: {kind: sql, url: 'sqlite:a.db'}}"))
	f.Add([]byte("? [a]\n: b\n"))
	f.Add([]byte("a: &a [*a]\n<<: *a\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := connection.Parse("semel.yaml", data)
		if err != nil {
			var errs connection.Errors
			if !errors.As(err, &errs) || len(errs) == 0 {
				t.Fatalf("error %v is not Errors", err)
			}
			for _, e := range errs {
				if e.Line < 1 || e.Column < 1 || e.Problem == "" {
					t.Errorf("error without a place: %+v", e)
				}
			}
			return
		}
		for _, name := range c.Names() {
			_, contract, err := c.Open(name)
			if err != nil && len(c.Secrets(name)) > 0 {
				continue // its url is kept elsewhere
			}
			if err != nil {
				t.Fatalf("%s was accepted and cannot be opened: %v", name, err)
			}
			if err := contract.Validate(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	})
}

func parse(t *testing.T, file string) *connection.Config {
	t.Helper()
	c, err := connection.Parse("semel.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, c)
	return c
}

func closeAfter(t *testing.T, c *connection.Config) {
	t.Cleanup(func() {
		if err := c.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
