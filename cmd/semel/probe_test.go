package main

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
