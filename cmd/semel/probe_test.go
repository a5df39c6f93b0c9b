package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel/sandbox"
)

// A probe sends after yes, and after nothing else (M39).
func TestProbeAsks(t *testing.T) {
	provider, err := sandbox.New(sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(provider)
	t.Cleanup(func() { server.Close(); _ = provider.Close() })
	ask := func(answer string) (code int, stdout, stderr string) {
		var out, messages bytes.Buffer
		sh := &shell{in: strings.NewReader(answer), out: &out, err: &messages, getenv: func(string) string { return "" }}
		code = run(sh, []string{"probe", "sandbox", "--post", server.URL + "/v1/charges", "--json", `{"amount":100}`, "--label", "reference", "--max-effects", "5"})
		return code, out.String(), messages.String()
	}
	for _, answer := range []string{"", "\n", "no\n", "y\n", "yesterday\n"} {
		code, out, messages := ask(answer)
		if code != exitUsage || out != "" || !strings.Contains(messages, "nothing was sent: the answer was not yes") || len(provider.Requests()) > 0 {
			t.Errorf("answer %q: exit %d, %d requests, %s%s", answer, code, len(provider.Requests()), out, messages)
		}
	}
	code, out, messages := ask("yes\n")
	for _, shown := range []string{"at most 5 requests", server.URL + "/v1/charges", `"reference":"semel-probe-`, "Idempotency-Key: semel-probe-", "max-effects"} {
		if !strings.Contains(messages, shown) {
			t.Errorf("the question does not show %q:\n%s", shown, messages)
		}
	}
	if code != exitCompleted || len(provider.Effects()) != 2 {
		t.Errorf("yes: exit %d, %d effects\n%s", code, len(provider.Effects()), out)
	}
}

// What was learnt is shown although the profile cannot be kept.
func TestProbeShowsWhatItCannotWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "probed.yaml")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := os.WriteFile(path, []byte("another's"), 0o600); err != nil { // after the check, before the end
			t.Error(err)
		}
		_, _ = w.Write([]byte(`{"id":"o_1"}`))
	}))
	t.Cleanup(server.Close)
	var out, messages bytes.Buffer
	sh := &shell{in: strings.NewReader(""), out: &out, err: &messages, getenv: func(string) string { return "" }}
	code := run(sh, []string{"probe", "--post", server.URL, "--yes", "--write", path})
	kept, err := os.ReadFile(path)
	if err != nil || string(kept) != "another's" || code != exitCompleted || !strings.Contains(out.String(), "name: probed") || !strings.Contains(messages.String(), "shown instead") {
		t.Errorf("exit %d, %v, kept %q\n%s%s", code, err, kept, &out, &messages)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), "semel.db")); !errors.Is(err, os.ErrNotExist) {
		t.Error("a probe made a database")
	}
}

// The secret of a connection is sent, and never shown, whatever the destination
// says.
func TestProbeHidesTheSecretOfAConnection(t *testing.T) {
	t.Setenv("PROBE_TOKEN", "hunter2")
	sent := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header.Get("Authorization")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error":"I do not know ` + sent + `"}`))
	}))
	t.Cleanup(server.Close)
	config := filepath.Join(t.TempDir(), "semel.yaml")
	text := "connections:\n  shop: {kind: http, base: \"" + server.URL + "\", secret: env:PROBE_TOKEN}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, output := range []string{"table", "json"} {
		var out, messages bytes.Buffer
		sh := &shell{in: strings.NewReader(""), out: &out, err: &messages, getenv: func(string) string { return "" }}
		run(sh, []string{"probe", "shop", "--config", config, "--post", "/orders", "--json", "{}", "--yes", "--evidence", "--output", output})
		shown := out.String() + messages.String()
		if sent != "Bearer hunter2" || strings.Contains(shown, "hunter2") || !strings.Contains(shown, "(hidden)") {
			t.Errorf("sent %q, shown:\n%s", sent, shown)
		}
	}
}

// A destination that escapes the secret in its answer gets it shown neither as
// text nor decoded, on no screen and in no profile.
func TestProbeHidesAnEscapedSecret(t *testing.T) {
	const secret = "S/ecr+et-4711"
	t.Setenv("PROBE_TOKEN", secret)
	var loud strings.Builder
	for _, r := range secret {
		loud.WriteString(fmt.Sprintf(`\u%04X`, r))
	}
	for _, spelling := range []string{`S\/ecr+et-4711`, `S/ecr\u002Bet-4711`, loud.String()} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error":{"code":"` + spelling + `"},"id":"` + spelling + `"}`))
		}))
		t.Cleanup(server.Close)
		config := filepath.Join(t.TempDir(), "semel.yaml")
		text := "connections:\n  shop: {kind: http, base: \"" + server.URL + "\", secret: env:PROBE_TOKEN}\n"
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, where := range [][]string{{"shop", "--config", config, "--post", "/"}, {"--post", server.URL, "--header", "Authorization: Bearer " + secret}} {
			for _, output := range []string{"table", "json"} {
				var out, messages bytes.Buffer
				sh := &shell{in: strings.NewReader(""), out: &out, err: &messages, getenv: func(string) string { return "" }}
				run(sh, append([]string{"probe", "--json", "{}", "--yes", "--evidence", "--output", output}, where...))
				shown := out.String() + messages.String()
				if strings.Contains(shown, "ecr") || strings.Contains(shown, `u0053`) || strings.Contains(shown, "et-4711") || !strings.Contains(shown, "(hidden)") {
					t.Errorf("%s as %s:\n%s", spelling, output, shown)
				}
			}
		}
	}
}

// A probe that is interrupted says so, whatever the verdict is.
func TestProbeSaysThatItWasInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		cancel()
		_, _ = w.Write([]byte(`{"id":"o_1"}`))
	}))
	t.Cleanup(server.Close)
	var out, messages bytes.Buffer
	sh := &shell{in: strings.NewReader(""), out: &out, err: &messages, getenv: func(string) string { return "" }}
	o := probeOptions{doOptions: doOptions{post: server.URL, protection: "keyed", window: time.Hour, timeout: time.Second}, json: "{}", yes: true}
	given := func(name string) bool { return name == "protection" || name == "window" }
	err := sh.probe(ctx, &o, given, "")
	if exit, ok := errors.AsType[*outcomeError](err); !ok || exit.code != exitUnknown || !strings.Contains(messages.String(), "interrupted: what was not asked is not tested") {
		t.Errorf("%v\n%s%s", err, &out, &messages)
	}
}
