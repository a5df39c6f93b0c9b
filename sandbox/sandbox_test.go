package sandbox_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/semel-dev/semel/sandbox"
)

// reply is what a client saw. Status 0: the connection closed without an answer.
type reply struct {
	Status   int
	Body     string
	Replayed bool
}

func start(t *testing.T, options sandbox.Options) *sandbox.Server {
	t.Helper()
	s, err := sandbox.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// send makes one call without a network. The headers are pairs.
func send(s http.Handler, method, target, body string, headers ...string) (got reply) {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	defer func() {
		failed := recover()
		if err, ok := failed.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			got = reply{}
		} else if failed != nil {
			panic(failed)
		}
	}()
	s.ServeHTTP(w, r)
	return reply{w.Code, w.Body.String(), w.Header().Get("Idempotent-Replayed") == "true"}
}

func post(s http.Handler, resource sandbox.Resource, body string, headers ...string) reply {
	return send(s, "POST", "/v1/"+string(resource), body, headers...)
}

func get(s http.Handler, target string, headers ...string) reply {
	return send(s, "GET", target, "", headers...)
}

func wantCount(t *testing.T, s *sandbox.Server, resource sandbox.Resource, reference string, want int) {
	t.Helper()
	if got := s.Count(resource, reference); got != want {
		t.Errorf("effects of %s %s: got %d, want %d", resource, reference, got, want)
	}
}

func wantIn(t *testing.T, got reply, status int, part string) {
	t.Helper()
	if got.Status != status || !strings.Contains(got.Body, part) {
		t.Errorf("got %d %s\nwant %d with %s", got.Status, got.Body, status, part)
	}
}

func TestZeroOptionsServeEachResource(t *testing.T) {
	s := start(t, sandbox.Options{})
	server := httptest.NewServer(s)
	defer server.Close()
	for resource, want := range map[string]struct {
		status int
		prefix string
	}{
		"charges":   {201, `{"id":"ch_`},
		"transfers": {201, `{"id":"tr_`},
		"messages":  {200, `{"id":"msg_`},
	} {
		resp, err := http.Post(server.URL+"/v1/"+resource, "application/json", strings.NewReader(`{"amount":1,"reference":"r"}`))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		wantIn(t, reply{Status: resp.StatusCode, Body: string(body)}, want.status, want.prefix)
		wantCount(t, s, sandbox.Resource(resource), "r", 1)
	}
}

func TestAnswerEchoesRequestExactly(t *testing.T) {
	s := start(t, sandbox.Options{})
	body := `{ "reference":"r", "amount":9007199254740993, "rate": 1.10, "big": 123456789012345678901234567890, "<&>":"<&>" , "deep": {"b":1e2,"a":[ ]} }`
	got := post(s, sandbox.Charges, body)
	wantIn(t, got, 201, `"reference":"r","amount":9007199254740993,"rate":1.10,"big":123456789012345678901234567890,"<&>":"<&>","deep":{"b":1e2,"a":[ ]}}`)
	if e := s.Effects()[0]; e.Amount != 9007199254740993 {
		t.Errorf("amount in the ledger: got %d", e.Amount)
	}
}

func TestLedgerRecordsWhoAndWhat(t *testing.T) {
	s := start(t, sandbox.Options{})
	post(s, sandbox.Charges, `{"amount":4200,"reference":"invoice-1","customer":9007199254740993}`, "Idempotency-Key", `"k"`)
	e := s.Effects()[0]
	got := []any{e.Resource, e.Reference, e.Customer, e.Key, e.Amount, e.Number, string(e.Request)}
	want := []any{
		sandbox.Charges, "invoice-1", "9007199254740993", "k", int64(4200), 1,
		`{"amount":4200,"reference":"invoice-1","customer":9007199254740993}`,
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("field %d: got %v, want %v", i, got[i], want[i])
		}
	}
}

func TestWrongRequestHasNoEffectAndIsNotRetained(t *testing.T) {
	for name, body := range map[string]string{
		"not JSON":            `amount=1`,
		"not an object":       `[1]`,
		"empty":               ``,
		"cut off":             `{"amount":1`,
		"two objects":         `{"amount":1}{}`,
		"amount missing":      `{"reference":"r"}`,
		"amount a string":     `{"amount":"1"}`,
		"amount a fraction":   `{"amount":1.5}`,
		"amount zero":         `{"amount":0}`,
		"amount too large":    `{"amount":9223372036854775808}`,
		"amount given twice":  `{"amount":1,"amount":2}`,
		"reference an object": `{"amount":1,"reference":{}}`,
		"invalid UTF-8":       "{\"amount\":1,\"reference\":\"\xff\"}",
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, sandbox.Options{})
			wantIn(t, post(s, sandbox.Charges, body, "Idempotency-Key", "k"), 400, `"invalid_request_error"`)
			if n := len(s.Effects()); n != 0 {
				t.Errorf("effects: got %d, want 0", n)
			}
			wantIn(t, post(s, sandbox.Charges, `{"amount":1}`, "Idempotency-Key", "k"), 201, "ch_")
		})
	}
}

func TestBodyOverTheLimitIsRefused(t *testing.T) {
	s := start(t, sandbox.Options{})
	wantIn(t, post(s, sandbox.Messages, `{"text":"`+strings.Repeat("x", 1<<20)+`"}`), 413, "body_too_large")
	if n := len(s.Effects()); n != 0 {
		t.Errorf("effects: got %d, want 0", n)
	}
}

func TestRequestLogShowsBytesConnectionAndOutcome(t *testing.T) {
	s := start(t, sandbox.Options{})
	server := httptest.NewServer(s)
	defer server.Close()
	for range 2 {
		r, _ := http.NewRequest("POST", server.URL+"/v1/charges", strings.NewReader(`{"amount":1,"reference":"r"}`))
		r.Header.Set("Idempotency-Key", "k")
		r.Header.Set("Authorization", "Bearer secret")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	log := s.Requests()
	if len(log) != 2 {
		t.Fatalf("requests: got %d, want 2", len(log))
	}
	first, second := log[0], log[1]
	if first.BodySHA256 != second.BodySHA256 || len(first.BodySHA256) != 64 || first.BodyLength != 28 {
		t.Errorf("bytes: got %s (%d) and %s", first.BodySHA256, first.BodyLength, second.BodySHA256)
	}
	if first.Connection != 1 || second.Connection != 1 {
		t.Errorf("connections: got %d and %d, want one kept alive", first.Connection, second.Connection)
	}
	if first.Effect != s.Effects()[0].ID || second.Effect != "" || !second.Replayed || second.Nth != 2 {
		t.Errorf("outcome: got %+v\nand %+v", first, second)
	}
	if got := first.Header.Get("Authorization"); got != "(hidden)" {
		t.Errorf("credential in the log: got %q", got)
	}
}

func TestUnknownRouteIsLoggedWithoutEffect(t *testing.T) {
	s := start(t, sandbox.Options{})
	wantIn(t, send(s, "PUT", "/v1/charges", `{"amount":1}`), 404, "unknown_route")
	if len(s.Effects()) != 0 || len(s.Requests()) != 1 {
		t.Errorf("got %d effects and %d requests, want 0 and 1", len(s.Effects()), len(s.Requests()))
	}
}

func TestLookingLeavesNoTrace(t *testing.T) {
	s := start(t, sandbox.Options{})
	for _, target := range []string{"/", "/ledger", "/ledger/summary", "/requests"} {
		if got := get(s, target); got.Status != 200 {
			t.Errorf("GET %s: got %d", target, got.Status)
		}
	}
	if n := len(s.Requests()); n != 0 {
		t.Errorf("requests: got %d, want 0", n)
	}
}

func TestLedgerPageCountsUnderFilters(t *testing.T) {
	s := start(t, sandbox.Options{VisibleAfter: -1})
	post(s, sandbox.Transfers, `{"amount":1,"reference":"a"}`, "Sandbox-Fault", "drop_after")
	post(s, sandbox.Transfers, `{"amount":1,"reference":"a"}`)
	post(s, sandbox.Charges, `{"amount":1,"reference":"a"}`)
	post(s, sandbox.Transfers, `{"amount":1,"reference":"b"}`, "Sandbox-Fault", "error_before")
	get(s, "/v1/transfers?reference=a")
	compact := strings.NewReplacer(" ", "", "\n", "")
	for target, want := range map[string]string{
		"/ledger":                    `"counts":{"charges":{"a":1},"transfers":{"a":2}},"requests":{"charges":1,"transfers":3},"lookups":{"transfers":1},"lost":1}`,
		"/ledger?resource=charges":   `"counts":{"charges":{"a":1}},"requests":{"charges":1},"lookups":{},"lost":0}`,
		"/ledger?reference=b":        `{"effects":[],"counts":{},"requests":{"transfers":1},"lookups":{},"lost":0}`,
		"/ledger/summary":            `"transfers":{"requests":3,"lookups":1,"effects":2,"references":2,"none":1,"once":0,"repeated":1,"lost":1,"faults":{"drop_after":1,"error_before":1}}`,
		"/requests?resource=nothing": `{"requests":[]}`,
	} {
		got := get(s, target)
		got.Body = compact.Replace(got.Body)
		wantIn(t, got, 200, want)
	}
}

func TestRunServesUntilToldToStop(t *testing.T) {
	s := start(t, sandbox.Options{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx, listener) }()
	resp, err := http.Get("http://" + listener.Addr().String() + "/ledger")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := s.Run(t.Context(), listener); err == nil {
		t.Error("a listener that is closed: got no error")
	}
}

func TestClosedSandboxActsNoMore(t *testing.T) {
	s := start(t, sandbox.Options{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wantIn(t, post(s, sandbox.Charges, `{"amount":1,"reference":"r"}`), 503, "closed")
	wantCount(t, s, sandbox.Charges, "r", 0)
}

func TestOptionsOutOfRangeAreRefused(t *testing.T) {
	for name, options := range map[string]sandbox.Options{
		"negative window":  {Window: -1},
		"share over one":   {Faults: sandbox.Rate{First: 20}},
		"negative share":   {Faults: sandbox.Rate{Later: -0.1}},
		"unknown fault":    {Faults: sandbox.Rate{Mix: map[sandbox.Fault]int{"drop": 1}}},
		"negative weight":  {Faults: sandbox.Rate{Mix: map[sandbox.Fault]int{sandbox.Slow: -1}}},
		"weightless mix":   {Faults: sandbox.Rate{Mix: map[sandbox.Fault]int{}}},
		"unknown resource": {FaultsOn: map[sandbox.Resource]sandbox.Rate{"refunds": {}}},
		"no such folder":   {LedgerPath: t.TempDir() + "/none/ledger"},
	} {
		if _, err := sandbox.New(options); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}
