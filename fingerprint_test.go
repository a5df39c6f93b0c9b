package semel_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
)

// jsonRequest is a request with a JSON body.
func jsonRequest(body string, volatile ...string) *semel.Request {
	return &semel.Request{Kind: "http", Method: "POST", URL: "https://pay.example/charges", MediaType: "application/json", Body: []byte(body), Volatile: volatile}
}

func fingerprint(t *testing.T, r *semel.Request) semel.Fingerprint {
	t.Helper()
	f, err := r.Fingerprint()
	if err != nil {
		t.Fatalf("%s: %v", r.Body, err)
	}
	return f
}

// C01, C03, M10: what differs only in representation is one request.
func TestBodiesThatDifferOnlyInRepresentationAreOneRequest(t *testing.T) {
	for _, same := range [][]string{
		{`{"amount":1200,"currency":"EUR","meta":{"a":1,"b":[1,2]}}`, `{ "meta": {"b":[1,2],"a":1}, "currency":"EUR", "amount":1200 }`},
		{`{"a":1,"b":2,"c":3}`, `{"c":3,"b":2,"a":1}`, "\t{\n\"b\" : 2 ,\r\n\"a\":1,\"c\":3}  "},
		{`1`, `1.0`, `1e0`, `1E0`, `1E+0`, `1e-0`, `10e-1`, `0.1e1`, `1.000`, `100E-2`, ` 1 `},
		{`0`, `-0`, `0.0`, `-0.0`, `0e5`, `0E-7`, `0.000e+9`},
		{`0.10`, `0.1`, `1e-1`, `10E-2`},
		{`-12.5`, `-125e-1`, `-1.25e1`},
		{`1e400`, `10e399`, `0.1e401`},
		{`123456789012345678901234567890`, `123456789012345678901234567890.0`, `1.2345678901234567890123456789e29`},
		{`"a"`, `"\u0061"`},
		{`"/"`, `"\/"`, `"\u002f"`, `"\u002F"`},
		{`"\n\t\"\\"`, `"\u000a\u0009\u0022\u005C"`},
		{`"é"`, `"\u00e9"`, `"\u00E9"`},
		{`"😀"`, `"\ud83d\ude00"`, `"\uD83D\uDE00"`},
		{`"<&>"`, `"\u003c\u0026\u003e"`},
		{`{"\u0061":1,"":2}`, `{"":2,"a":1}`},
		{`{"é":1,"z":2}`, `{"z":2,"\u00e9":1}`},
	} {
		first := fingerprint(t, jsonRequest(same[0]))
		for _, other := range same[1:] {
			if fingerprint(t, jsonRequest(other)) != first {
				t.Errorf("%s and %s are two requests, want one", same[0], other)
			}
			if d := jsonRequest(same[0]).Diff(jsonRequest(other)); len(d) > 0 {
				t.Errorf("%s and %s differ in %v, want nothing", same[0], other, d)
			}
		}
	}
}

// Law 9, C01 step 3, C03 step 2: what differs is two requests, and the
// conflict names the fields.
func TestConflictNamesTheFieldsThatDiffer(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want []string
	}{
		{`{"amount":1200,"meta":{"a":1,"b":[1,2]}}`, `{"amount":1200,"meta":{"a":1,"b":[2,1]}}`, []string{"body.meta.b"}},
		{`{"to":9007199254740993}`, `{"to":9007199254740992}`, []string{"body.to"}},
		{`{"to":7615917337495251231}`, `{"to":7615917337495251232}`, []string{"body.to"}},
		{`{"big":123456789012345678901234567890}`, `{"big":123456789012345678901234567891}`, []string{"body.big"}},
		{`{"x":0.1}`, `{"x":0.10000000000000001}`, []string{"body.x"}},
		{`{"x":1e400}`, `{"x":1e401}`, []string{"body.x"}},
		{`{"x":1}`, `{"x":-1}`, []string{"body.x"}},
		{`{"x":1}`, `{"x":"1"}`, []string{"body.x"}},
		{`{"x":null}`, `{}`, []string{"body.x"}},
		{`{}`, `{"x":null}`, []string{"body.x"}},
		{`{"x":false}`, `{"x":null}`, []string{"body.x"}},
		{`{"x":[]}`, `{"x":{}}`, []string{"body.x"}},
		{`{"x":""}`, `{"x":" "}`, []string{"body.x"}},
		{`{"x":"e\u0301"}`, `{"x":"\u00e9"}`, []string{"body.x"}}, // no Unicode normalisation
		{`{"a":1,"b":2,"d":4}`, `{"a":1,"c":3,"d":5}`, []string{"body.b", "body.c", "body.d"}},
		{`{"a":{"b":{"c":1,"d":2}}}`, `{"a":{"b":{"c":1,"d":3}}}`, []string{"body.a.b.d"}},
		{`{"":1}`, `{"":2}`, []string{`body.""`}},
		{`{"a.b":1}`, `{"a":{"b":1}}`, []string{`body.a`, `body."a.b"`}},
		{`[1,2]`, `[2,1]`, []string{"body"}},
		{`1`, `2`, []string{"body"}},
		{`{}`, `[]`, []string{"body"}},
	} {
		a, b := jsonRequest(c.a), jsonRequest(c.b)
		if fingerprint(t, a) == fingerprint(t, b) {
			t.Errorf("%s and %s are one request, want two", c.a, c.b)
		}
		if diff := cmp.Diff(c.want, a.Diff(b)); diff != "" {
			t.Errorf("%s, %s: %s", c.a, c.b, diff)
		}
	}
}

// C04: declared volatile members are left out, and nothing else is.
func TestOnlyDeclaredVolatileMembersAreLeftOut(t *testing.T) {
	first := `{"id":1,"sent_at":"2026-12-01T10:00:00Z","params":{"cart":"c9","total":500}}`
	again := `{"id":2,"sent_at":"2026-12-01T10:00:31Z","params":{"cart":"c9","total":500}}`
	other := `{"id":2,"sent_at":"2026-12-01T10:00:31Z","params":{"cart":"c9","total":501}}`
	for _, c := range []struct {
		name, a, b string
		volatile   []string
		want       []string // nil: one request
	}{
		{"declared", first, again, []string{"id", "sent_at"}, nil},
		{"declared, and the total differs", first, other, []string{"id", "sent_at"}, []string{"body.params.total"}},
		{"not declared", first, again, nil, []string{"body.id", "body.sent_at"}},
		{"present or absent", first, `{"params":{"cart":"c9","total":500}}`, []string{"id", "sent_at"}, nil},
		{"a whole object", first, other, []string{"id", "sent_at", "params"}, nil},
		{"in an object", `{"meta":{"at":1,"x":1}}`, `{"meta":{"at":2,"x":1}}`, []string{"meta.at"}, nil},
		{"only at that place", `{"meta":{"at":1},"at":1}`, `{"meta":{"at":2},"at":2}`, []string{"meta.at"}, []string{"body.at"}},
		{"not by its last name", `{"meta":{"at":1}}`, `{"meta":{"at":2}}`, []string{"at"}, []string{"body.meta.at"}},
		{"in every element", `{"items":[{"at":1,"n":1},{"at":2,"n":2}]}`, `{"items":[{"at":3,"n":1},{"n":2}]}`, []string{"items[].at"}, nil},
		{"in every element, and one differs", `{"items":[{"at":1,"n":1}]}`, `{"items":[{"at":3,"n":2}]}`, []string{"items[].at"}, []string{"body.items"}},
		{"array length is meaning", `{"items":[{"at":1}]}`, `{"items":[{"at":1},{"at":1}]}`, []string{"items[].at"}, []string{"body.items"}},
		{"in an array of arrays", `[[{"at":1}]]`, `[[{"at":2}]]`, []string{"[][].at"}, nil},
		{"a dot in a name is not a path", `{"meta":{"at":1},"meta.at":1}`, `{"meta":{"at":1},"meta.at":2}`, []string{"meta.at"}, []string{`body."meta.at"`}},
		{"a name with a dot", `{"meta.at":1}`, `{"meta.at":2}`, []string{`"meta.at"`}, nil},
		{"an empty name is not the top", `{"":{"at":1},"at":1}`, `{"":{"at":2},"at":1}`, []string{"at"}, []string{`body."".at`}},
		{"brackets in a name are not an array", `{"items[]":{"at":1}}`, `{"items[]":{"at":2}}`, []string{"items[].at"}, []string{`body."items[]".at`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := jsonRequest(c.a, c.volatile...), jsonRequest(c.b, c.volatile...)
			if same := fingerprint(t, a) == fingerprint(t, b); same != (c.want == nil) {
				t.Errorf("one request: %v", same)
			}
			if diff := cmp.Diff(c.want, a.Diff(b)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A change of what is volatile is named, too: no conflict is without a field.
func TestChangeOfVolatileIsNamed(t *testing.T) {
	body := `{"id":1,"n":1}`
	a, b := jsonRequest(body), jsonRequest(body, "id")
	if fingerprint(t, a) == fingerprint(t, b) {
		t.Fatal("leaving out a member changes nothing")
	}
	if diff := cmp.Diff([]string{"volatile"}, a.Diff(b)); diff != "" {
		t.Error(diff)
	}
	if d := a.Diff(jsonRequest(body, "absent")); d != nil {
		t.Errorf("a volatile member that is absent makes a difference: %v", d)
	}
}

// Bodies that two readers could read differently are refused, never guessed.
func TestAmbiguousBodiesAreRefused(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, c := range []struct{ name, body, field string }{
		{"duplicate member", `{"a":1,"a":1}`, "body.a"},
		{"duplicate member in an array", `{"x":[{},{"a":1,"b":2,"a":3}]}`, "body.x[1].a"},
		{"duplicate member by escape", `{"a":1,"\u0061":2}`, "body.a"},
		{"duplicate empty member", `{"":1,"":2}`, `body.""`},
		{"duplicate volatile member", `{"id":1,"id":2}`, "body.id"},
		{"lone high surrogate", `"\ud800"`, "body"},
		{"lone low surrogate", `"\udc00"`, "body"},
		{"low before high", `"\udc00\ud800"`, "body"},
		{"high, then something else", `"\ud800a"`, "body"},
		{"high, then another escape", `"\ud800\n"`, "body"},
		{"high, then high", `"\ud800\ud800\udc00"`, "body"},
		{"lone surrogate in a name", `{"\uDBFF":1}`, "body"},
		{"invalid UTF-8", "\"\xff\"", "body"},
		{"surrogate as UTF-8", "\"\xed\xa0\x80\"", "body"},
		{"byte order mark", "\xef\xbb\xbf{}", "body"},
		{"white space", " \n", "body"},
		{"two values", `{}{}`, "body"},
		{"more after the value", `{} x`, "body"},
		{"trailing comma", `{"a":1,}`, "body"},
		{"trailing comma in an array", `[1,]`, "body"},
		{"missing comma", `[1 2]`, "body"},
		{"missing colon", `{"a" 1}`, "body"},
		{"comma for colon", `{"a",1}`, "body"},
		{"single quotes", `{'a':1}`, "body"},
		{"number for a name", `{1:1}`, "body"},
		{"leading zero", `01`, "body"},
		{"plus", `+1`, "body"},
		{"no digits after the point", `1.`, "body"},
		{"NaN", `NaN`, "body"},
		{"unfinished", `{"a":`, "body"},
		{"wrong closing", `[}`, "body"},
		{"exponent out of range", `{"n":1e99999999999}`, "body.n"},
		{"too deep", deep(202), "body"},
		{"far too deep", deep(100_000), "body"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := jsonRequest(c.body, "id").Fingerprint()
			input, ok := errors.AsType[*semel.InputError](err)
			if !ok || !strings.HasPrefix(input.Field, c.field) || input.Hint == "" {
				t.Errorf("got %v, want an InputError of %s with a hint", err, c.field)
			}
		})
	}
	for _, good := range []string{deep(200), `"\\ud800"`, `"\\\\ud800"`, `"\ud83d\ude00"`} {
		fingerprint(t, jsonRequest(good))
	}
}

// Law 9: every part of a request is in its fingerprint.
func TestEveryPartOfARequestIsItsIdentity(t *testing.T) {
	base := func() *semel.Request {
		return &semel.Request{
			Kind: "http", Method: "POST", URL: "https://pay.example/charges?x=1", MediaType: "text/plain", Body: []byte("a"),
			Header: map[string]string{"X-Account": "acct-1"}, Args: []string{"pay", "4417"}, Connection: "bank",
		}
	}
	for _, c := range []struct {
		name   string
		change func(*semel.Request)
		want   []string // nil: the same request
	}{
		{"nothing", func(*semel.Request) {}, nil},
		{"connection, which the scope names", func(r *semel.Request) { r.Connection = "other" }, nil},
		{"withheld headers", func(r *semel.Request) { r.Withheld = []string{"Authorization"} }, nil},
		{"volatile", func(r *semel.Request) { r.Volatile = []string{"id"} }, nil},
		{"case of scheme and host, default port", func(r *semel.Request) { r.URL = "HTTPS://PAY.example:443/charges?x=1" }, nil},
		{"fragment, which is never sent", func(r *semel.Request) { r.URL += "#top" }, nil},
		{"case of a header's name", func(r *semel.Request) { r.Header = map[string]string{"x-account": "acct-1"} }, nil},
		{"case of the media type", func(r *semel.Request) { r.MediaType = "Text/Plain " }, nil},
		{"kind", func(r *semel.Request) { r.Kind = "command" }, []string{"kind"}},
		{"method", func(r *semel.Request) { r.Method = "PUT" }, []string{"method"}},
		{"scheme", func(r *semel.Request) { r.URL = "http://pay.example:443/charges?x=1" }, []string{"url.scheme"}},
		{"host", func(r *semel.Request) { r.URL = "https://pay.example.org/charges?x=1" }, []string{"url.host"}},
		{"port", func(r *semel.Request) { r.URL = "https://pay.example:8443/charges?x=1" }, []string{"url.port"}},
		{"path", func(r *semel.Request) { r.URL = "https://pay.example/Charges?x=1" }, []string{"url.path"}},
		{"escaped slash", func(r *semel.Request) { r.URL = "https://pay.example/%2Fcharges?x=1" }, []string{"url.path"}},
		{"query", func(r *semel.Request) { r.URL = "https://pay.example/charges?x=2" }, []string{"url.query"}},
		{"no query", func(r *semel.Request) { r.URL = "https://pay.example/charges" }, []string{"url.query"}},
		{"header's value", func(r *semel.Request) { r.Header["X-Account"] = "acct-2" }, []string{"header.x-account"}},
		{"another header", func(r *semel.Request) { r.Header["X-Empty"] = "" }, []string{"header.x-empty"}},
		{"no header", func(r *semel.Request) { r.Header = nil }, []string{"header.x-account"}},
		{"argument", func(r *semel.Request) { r.Args[1] = "4418" }, []string{"argument 1"}},
		{"one argument more", func(r *semel.Request) { r.Args = append(r.Args, "") }, []string{"argument 2"}},
		{"arguments split elsewhere", func(r *semel.Request) { r.Args = []string{"pay 4417"} }, []string{"argument 0", "argument 1"}},
		{"media type", func(r *semel.Request) { r.MediaType = "" }, []string{"media type"}},
		{"body", func(r *semel.Request) { r.Body = []byte("b") }, []string{"body"}},
		{"no body", func(r *semel.Request) { r.Body = nil }, []string{"body"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := base(), base()
			c.change(b)
			if same := fingerprint(t, a) == fingerprint(t, b); same != (c.want == nil) {
				t.Errorf("one request: %v", same)
			}
			if diff := cmp.Diff(c.want, a.Diff(b)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.want, b.Diff(a)); diff != "" {
				t.Error("the other way round:", diff)
			}
		})
	}
}

func TestRequestsThatCannotBeClaimed(t *testing.T) {
	for _, c := range []struct {
		name, field string
		request     semel.Request
	}{
		{"no kind", "request", semel.Request{}},
		{"body too large", "body", semel.Request{Kind: "http", Body: make([]byte, semel.MaxBody+1)}},
		{"NUL in an argument", "argument", semel.Request{Kind: "command", Args: []string{"a\x00b"}}},
		{"no host", "url", semel.Request{Kind: "http", URL: "/charges"}},
		{"no scheme", "url", semel.Request{Kind: "http", URL: "//pay.example/charges"}},
		{"unreadable address", "url", semel.Request{Kind: "http", URL: "https://pay.example/%zz"}},
		{"password in the address", "url", semel.Request{Kind: "http", URL: "https://user:secret@pay.example/charges"}},
		{"user in the address", "url", semel.Request{Kind: "http", URL: "https://user@pay.example/charges"}},
	} {
		err := c.request.Validate()
		input, ok := errors.AsType[*semel.InputError](err)
		if !ok || input.Field != c.field {
			t.Errorf("%s: got %v, want an InputError of %q", c.name, err, c.field)
		}
		if err != nil && strings.Contains(err.Error(), "secret") && strings.Contains(err.Error(), "user:") {
			t.Errorf("%s: the message shows the password: %v", c.name, err)
		}
	}
	for _, good := range []semel.Request{
		{Kind: "http", Body: make([]byte, semel.MaxBody)},
		{Kind: "command", Args: []string{"a", ""}},
	} {
		if err := good.Validate(); err != nil {
			t.Error(err)
		}
	}
}

// The canonical form never changes by accident: stored fingerprints are
// compared for as long as their operations are kept.
func TestFingerprintsAreGolden(t *testing.T) {
	for want, r := range map[string]*semel.Request{
		"1:6dea0df8482ad14af6fba991ae83e490c7f730b384d5f7593a707b2e18ed5ae7": jsonRequest(`{"b":[1.50,1e400,-0],"a":"<é\u2028😀\/>","":null,"id":7}`, "id"),
		"1:4e7bab7a0e4f3a843f7233d519f1c484977b0331d5083ad43b77dffeaae0b1e3": {Kind: "command", Args: []string{"pay", "4417"}, Body: []byte{0, 255}},
		"1:c57b7a0e15f196053f4376b5b1aff0e2eb97c0e9dc3c42dd55c95712c0a5415f": {Kind: "http", Method: "POST", URL: "https://pay.example?q", Header: map[string]string{"X-B": "2", "X-A": "1"}},
	} {
		if got := fingerprint(t, r).String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestMediaTypeOfABody(t *testing.T) {
	for body, want := range map[string]string{"": "", "{}": "application/json", "1": "application/json", "x": "", "\"\xff\"": "", " [1] ": "application/json", "{} {}": ""} {
		if got := semel.MediaTypeOf([]byte(body)); got != want {
			t.Errorf("%q: got %q, want %q", body, got, want)
		}
	}
	for mediaType, same := range map[string]bool{"application/json": true, "Application/JSON; charset=utf-8": true, "application/problem+json": true, "text/json": false, "": false} {
		a := &semel.Request{Kind: "http", MediaType: mediaType, Body: []byte(`{"a":1}`)}
		b := &semel.Request{Kind: "http", MediaType: mediaType, Body: []byte(` {"a":1.0}`)}
		if got := fingerprint(t, a) == fingerprint(t, b); got != same {
			t.Errorf("%q read as JSON: %v, want %v", mediaType, got, same)
		}
	}
}

// Two bodies are one request if and only if they are equal as exact values.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{`{"a":1,"b":[1.0,2e3]}`, `{"b":[1,2000],"a":10e-1}`, `"\u0061\/"`, `[1e400,-0]`, `{"":{"":null}}`, `{"a":1,"a":2}`, `"\ud800"`, `01`, `[1,]`, `1e-2147483649`} {
		f.Add(s, s)
		f.Add(s, ` {"a":1.0}`)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		fa, erra := jsonRequest(a).Fingerprint()
		fb, errb := jsonRequest(b).Fingerprint()
		if erra == nil && !json.Valid([]byte(a)) {
			t.Errorf("%q is not JSON, but taken", a)
		}
		if _, ok := errors.AsType[*semel.InputError](erra); erra != nil && !ok {
			t.Errorf("%q: %v is no InputError", a, erra)
		}
		if erra != nil || errb != nil {
			return
		}
		want := exactlyEqual(t, a, b)
		if got := fa == fb; got != want {
			t.Errorf("%q and %q: one request %v, equal as exact values %v", a, b, got, want)
		}
		if d := jsonRequest(a).Diff(jsonRequest(b)); (len(d) == 0) != want {
			t.Errorf("%q and %q: equal as exact values %v, but the difference is %v", a, b, want, d)
		}
	})
}
