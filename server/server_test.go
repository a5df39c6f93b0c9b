package server_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
	"github.com/semel-dev/semel/server"
	"github.com/semel-dev/semel/store/sqlite"
)

// desk is a handler over a store in a file. refund may be started, secret may
// not.
type desk struct {
	*testing.T
	store *sqlite.Store
	http.Handler
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "semel.db"), sqlite.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	quiet := slog.New(slog.DiscardHandler)
	e, err := engine.New(t.Context(), store, engine.Options{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(t.Context()) })
	find := func(name string) (server.Make, bool) {
		return func(key semel.Key, input []byte) (semel.NewRun, error) {
			n := semel.NewRun{Workflow: name, Version: 3, Key: key, Input: input}
			return n, n.Validate()
		}, name == "refund"
	}
	return &desk{t, store, server.New(store, e, find, quiet)}
}

// call makes one call; head holds pairs of a header.
func (d *desk) call(method, target, body string, head ...string) (int, map[string]any) {
	d.Helper()
	r := httptest.NewRequestWithContext(d.Context(), method, "http://127.0.0.1:8090"+target, strings.NewReader(body))
	for i := 0; i < len(head); i += 2 {
		r.Header.Add(head[i], head[i+1])
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	answer, _ := io.ReadAll(w.Result().Body)
	var got map[string]any
	if err := json.Unmarshal(answer, &got); err != nil {
		d.Fatalf("%s %s answers %q: %v", method, target, answer, err)
	}
	wantType := "application/json"
	if w.Code >= 400 {
		wantType = "application/problem+json"
	}
	if t := w.Header().Get("Content-Type"); t != wantType {
		d.Errorf("%s %s answers %s, want %s", method, target, t, wantType)
	}
	return w.Code, got
}

func (d *desk) runs() (n int) {
	d.Helper()
	for _, err := range d.store.ListRuns(d.Context(), semel.RunFilter{}) {
		if err != nil {
			d.Fatal(err)
		}
		n++
	}
	return n
}

const refund = "/workflows/refund/runs"

func TestOneKeyIsOneRun(t *testing.T) {
	d := newDesk(t)
	code, first := d.call("POST", refund, `{"order":1,"amount":9007199254740993}`, "Idempotency-Key", "order-1")
	if code != http.StatusAccepted || first["existing"] != false || first["version"] != 3.0 {
		t.Fatalf("the first call answers %d %v", code, first)
	}
	for _, again := range [][2]string{{"order-1", `{"amount":9007199254740993,"order":1.0}`}, {`"order-1"`, `{"order":1,"amount":9007199254740993}`}, {`"order-1";v=1`, `{"order":1,"amount":9007199254740993}`}} {
		code, got := d.call("POST", refund, again[1], "Idempotency-Key", again[0], "Content-Type", "application/json; charset=utf-8")
		if code != http.StatusOK || got["run"] != first["run"] || got["existing"] != true {
			t.Errorf("the same call under %s answers %d %v", again[0], code, got)
		}
	}
	code, got := d.call("POST", refund, `{"order":1,"amount":9007199254740992}`, "Idempotency-Key", "order-1")
	if code != http.StatusUnprocessableEntity || got["code"] != "key_conflict" || got["run"] != first["run"] {
		t.Errorf("another amount answers %d %v", code, got)
	}
	if diff := cmp.Diff([]any{"input.amount"}, got["fields"]); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	code, got = d.call("GET", "/runs/"+first["run"].(string), "")
	if code != http.StatusOK || got["state"] != "running" || !strings.Contains(got["in_words"].(string), "as soon as one is free") {
		t.Errorf("the run is shown as %d %v", code, got)
	}
	if n := d.runs(); n != 1 {
		t.Errorf("%d runs, want 1", n)
	}
}

func TestManyCallsAtOnceAreOneRun(t *testing.T) {
	d := newDesk(t)
	var group sync.WaitGroup
	var mu sync.Mutex
	codes, ids := map[int]int{}, map[any]bool{}
	for range 20 {
		group.Go(func() {
			code, got := d.call("POST", refund, `{"order":1}`, "Idempotency-Key", "order-1")
			mu.Lock()
			defer mu.Unlock()
			codes[code]++
			ids[got["run"]] = true
		})
	}
	group.Wait()
	if diff := cmp.Diff(map[int]int{202: 1, 200: 19}, codes); diff != "" || len(ids) != 1 || d.runs() != 1 {
		t.Errorf("%d runs under %d ids; codes (-want +got):\n%s", d.runs(), len(ids), diff)
	}
}

func TestOneEventIsSentOnce(t *testing.T) {
	d := newDesk(t)
	const paid = "/events/order.paid?match=4417"
	for i, want := range []int{http.StatusAccepted, http.StatusOK} {
		if code, got := d.call("POST", paid, `{"amount":5.0}`, "Idempotency-Key", "pay_1"); code != want || got["match"] != "4417" {
			t.Errorf("call %d answers %d %v, want %d", i, code, got, want)
		}
	}
	for target, want := range map[string]string{paid: "data.amount", "/events/order.paid?match=1": "match"} {
		amount := `{"amount":5}`
		if want != "match" {
			amount = `{"amount":6}`
		}
		code, got := d.call("POST", target, amount, "Idempotency-Key", "pay_1")
		if diff := cmp.Diff([]any{want}, got["fields"]); code != http.StatusUnprocessableEntity || diff != "" {
			t.Errorf("another event under the ID answers %d %v", code, got)
		}
	}
}

func TestWhatIsRefusedStartsNothing(t *testing.T) {
	d := newDesk(t)
	key := []string{"Idempotency-Key", "k"}
	tests := map[string]struct {
		method, target, body string
		head                 []string
		status               int
		code                 string
	}{
		"no key":               {"POST", refund, `{}`, nil, 400, "key_missing"},
		"empty key":            {"POST", refund, `{}`, []string{"Idempotency-Key", ""}, 400, "key_invalid"},
		"empty quoted key":     {"POST", refund, `{}`, []string{"Idempotency-Key", `""`}, 400, "key_invalid"},
		"broken quoted key":    {"POST", refund, `{}`, []string{"Idempotency-Key", `"a`}, 400, "key_invalid"},
		"two keys":             {"POST", refund, `{}`, []string{"Idempotency-Key", "a", "Idempotency-Key", "b"}, 400, "key_invalid"},
		"long key":             {"POST", refund, `{}`, []string{"Idempotency-Key", strings.Repeat("k", 300)}, 400, "input"},
		"no JSON":              {"POST", refund, `{"a"`, key, 400, "body"},
		"a member twice":       {"POST", refund, `{"a":1,"a":2}`, key, 400, "input"},
		"a form":               {"POST", refund, `a=1`, append([]string{"Content-Type", "application/x-www-form-urlencoded"}, key...), 415, "media_type"},
		"too much":             {"POST", refund, `"` + strings.Repeat("x", semel.MaxInput) + `"`, key, 413, "too_large"},
		"no trigger":           {"POST", "/workflows/secret/runs", `{}`, key, 404, "no_such_workflow"},
		"a GET":                {"GET", refund, ``, key, 405, "method"},
		"a GET of an event":    {"GET", "/events/order.paid", ``, key, 405, "method"},
		"a DELETE of a run":    {"DELETE", "/runs/x", ``, key, 405, "method"},
		"no run":               {"GET", "/runs/01a22968-c9e8-70be-9a97-c7a6e8f54aa6", ``, nil, 404, "no_such_run"},
		"no ID":                {"GET", "/runs/nonsense", ``, nil, 404, "no_such_run"},
		"no path":              {"GET", "/", ``, nil, 404, "no_such_path"},
		"another site":         {"POST", refund, `{}`, append([]string{"Sec-Fetch-Site", "cross-site"}, key...), 403, "cross_site"},
		"another origin":       {"POST", refund, `{}`, append([]string{"Origin", "https://evil.example"}, key...), 403, "cross_site"},
		"event without a name": {"POST", "/events/%20", `{}`, key, 400, "input"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			code, got := d.call(test.method, test.target, test.body, test.head...)
			if code != test.status || got["code"] != test.code || got["detail"] == "" {
				t.Errorf("answers %d %v, want %d %s", code, got, test.status, test.code)
			}
		})
	}
	r := httptest.NewRequestWithContext(t.Context(), "POST", "http://rebound.example"+refund, strings.NewReader(`{}`))
	r.Header.Set("Idempotency-Key", "k")
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	if w.Code != http.StatusMisdirectedRequest {
		t.Errorf("another host answers %d", w.Code)
	}
	if n := d.runs(); n != 0 {
		t.Errorf("%d runs, want none", n)
	}
}

func TestListensOnLoopbackOnly(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0", "[::]:0", "example.com:0", "8090"} {
		if l, err := server.Listen(t.Context(), address); err == nil {
			_ = l.Close()
			t.Errorf("%s was opened", address)
		}
	}
	l, err := server.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
}
