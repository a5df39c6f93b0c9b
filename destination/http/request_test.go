package httpdest_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
)

func TestNewRequest(t *testing.T) {
	got, secret, err := httpdest.NewRequest("post", "https://api.example.com/v1/charges?x=1",
		[]string{"authorization: Bearer s", "X-API-KEY:k", "x-account:  7 ", "Cookie: c", "idempotency-key: i"}, []byte(`{"a":1}`))
	if err != nil {
		t.Fatal(err)
	}
	want := semel.Request{
		Kind: "http", Method: "POST", URL: "https://api.example.com/v1/charges?x=1", Header: map[string]string{"X-Account": "7"},
		MediaType: "application/json", Body: []byte(`{"a":1}`), Withheld: []string{"Authorization", "Cookie", "Idempotency-Key", "X-Api-Key"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"Authorization": "Bearer s", "X-Api-Key": "k", "Cookie": "c", "Idempotency-Key": "i"}, secret); diff != "" {
		t.Error(diff)
	}
	if got, _, err = httpdest.NewRequest("PUT", "http://h/", []string{"Content-Type: text/csv"}, []byte("a,b")); err != nil || got.MediaType != "text/csv" || len(got.Header) != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, _, err = httpdest.NewRequest("DELETE", "http://h/", []string{"Content-Type: application/json"}, nil); err != nil || got.MediaType != "" {
		t.Errorf("got %+v, %v; want no media type for an empty body", got, err)
	}
	if got, _, err = httpdest.NewRequest("POST", "http://h/", nil, []byte("\xff{}")); err != nil || got.MediaType != "" {
		t.Errorf("got %+v, %v; want plain bytes", got, err)
	}
}

// What cannot be sent as written, or must not be stored, is refused with a
// cure, and no message repeats a secret.
func TestNewRequestRefuses(t *testing.T) {
	ok := "https://api.example.com/"
	for name, test := range map[string]struct {
		method, url string
		headers     []string
		body        string
		want        string
	}{
		"method":          {"PO ST", ok, nil, "", "method"},
		"no effect":       {"HEAD", ok, nil, "", "method"},
		"userinfo":        {"POST", "https://me:hunter2@api.example.com/", nil, "", "url"},
		"broken userinfo": {"POST", "https://me:hunter2%zz@api.example.com/", nil, "", "url"},
		"fragment":        {"POST", ok + "#x", nil, "", "url"},
		"empty fragment":  {"POST", ok + "#", nil, "", "url"},
		"NUL":             {"POST", ok + "\x00", nil, "", "url"},
		"line break":      {"POST", ok + "\r\nX: y", nil, "", "url"},
		"space":           {"POST", ok + "a b", nil, "", "url"},
		"no host":         {"POST", "https:///x", nil, "", "url"},
		"no scheme":       {"POST", "api.example.com/x", nil, "", "url"},
		"scheme":          {"POST", "ftp://h/", nil, "", "url"},
		"opaque":          {"POST", "http:h", nil, "", "url"},
		"host":            {"POST", "https://münchen.example/", nil, "", "url"},
		"long":            {"POST", ok + strings.Repeat("a", 9000), nil, "", "url"},
		"no colon":        {"POST", ok, []string{"hunter2"}, "", "header"},
		"name":            {"POST", ok, []string{"A B: hunter2"}, "", "header"},
		"no name":         {"POST", ok, []string{": hunter2"}, "", "header"},
		"CR":              {"POST", ok, []string{"A: hunter2\rB: c"}, "", "header A"},
		"LF":              {"POST", ok, []string{"A: hunter2\nB: c"}, "", "header A"},
		"NUL in header":   {"POST", ok, []string{"A: hunter2\x00"}, "", "header A"},
		"not UTF-8":       {"POST", ok, []string{"A: \xffhunter2"}, "", "header A"},
		"twice":           {"POST", ok, []string{"A: 1", "a: 2"}, "", "header A"},
		"host header":     {"POST", ok, []string{"Host: h"}, "", "header Host"},
		"length":          {"POST", ok, []string{"content-length: 3"}, "", "header Content-Length"},
		"chunked":         {"POST", ok, []string{"Transfer-Encoding: chunked"}, "", "header Transfer-Encoding"},
		"expect":          {"POST", ok, []string{"Expect: 100-continue"}, "", "header Expect"},
		"double member":   {"POST", ok, nil, `{"a":1,"a":2}`, "body.a"},
		"large body":      {"POST", ok, nil, strings.Repeat("a", semel.MaxBody+1), "body"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := httpdest.NewRequest(test.method, test.url, test.headers, []byte(test.body))
			input, ok := errors.AsType[*semel.InputError](err)
			if !ok {
				t.Fatalf("got %v, want *semel.InputError", err)
			}
			if input.Field != test.want || input.Hint == "" {
				t.Errorf("got %q about %q, want one about %q with a hint", err, input.Field, test.want)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the message repeats a secret: %v", err)
			}
		})
	}
}

// No header that is never stored can reach the stored part, however it is
// spelled (law 9, law 10).
func FuzzNewRequest(f *testing.F) {
	f.Add("POST", "https://h/x?y=z", "Authorization: secret", "X: y", []byte(`{"a":1}`))
	f.Add("delete", "http://h:8/%2e%2e/", "aUTHORIZATION:secret", "Content-Type: application/json", []byte{})
	f.Add("PUT", "http://[::1]/", "A\x00: b", "\r\n: x", []byte("\xff"))
	f.Fuzz(func(t *testing.T, method, url, h1, h2 string, body []byte) {
		r, secret, err := httpdest.NewRequest(method, url, []string{h1, h2}, body)
		if err != nil {
			if _, ok := errors.AsType[*semel.InputError](err); !ok {
				t.Fatalf("error %v is no InputError", err)
			}
			return
		}
		if err := r.Validate(); err != nil {
			t.Fatalf("accepted, and not valid: %v", err)
		}
		if !slices.Equal(r.Withheld, slices.Sorted(maps.Keys(secret))) {
			t.Fatalf("withheld %v, values for %v", r.Withheld, secret)
		}
		for name, value := range r.Header {
			for _, never := range []string{"authorization", "cookie", "proxy-authorization", "x-api-key"} {
				if strings.EqualFold(name, never) {
					t.Fatalf("%s would be stored", name)
				}
			}
			if strings.ContainsAny(name+value, "\r\n\x00") {
				t.Fatalf("header %q: %q", name, value)
			}
		}
		if strings.Contains(r.URL, "@") && strings.Contains(strings.SplitN(strings.SplitN(r.URL, "://", 2)[1], "/", 2)[0], "@") {
			t.Fatalf("credentials in %q", r.URL)
		}
	})
}
