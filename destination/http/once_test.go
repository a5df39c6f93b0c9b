package httpdest_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
)

// Every goroutine has an owner that waits for it.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// matrix runs f for {h1, h2, proxy} x {nil, empty, 1 B, 300 kB} x {POST, PUT,
// PATCH, DELETE}, the matrix of design section 7.
func matrix(t *testing.T, f func(t *testing.T, w *world, method string, body []byte)) {
	for _, route := range routes {
		for name, b := range map[string][]byte{"nil": nil, "empty": body(0), "1B": body(1), "300kB": body(300_000)} {
			for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
				t.Run(fmt.Sprintf("%s/%s/%s", route, name, method), func(t *testing.T) {
					f(t, newWorld(t, route), method, b)
				})
			}
		}
	}
}

// One request per attempt, its bytes exact, over fresh and reused connections
// (design section 7, laws 1 and 10, C03).
func TestOneRequestPerAttempt(t *testing.T) {
	matrix(t, func(t *testing.T, w *world, method string, b []byte) {
		d := w.destination(httpdest.Options{})
		for i := range 2 {
			s, begins := w.attempt(method, b, keyed)
			ev := d.Send(t.Context(), s)
			if ev.Kind != semel.EvConfirmed || ev.Result.Reference != "ch_1" || ev.Attempt != 1 {
				t.Fatalf("got %+v, want a confirmation of ch_1", ev)
			}
			if got := begins.Load(); got != 1 {
				t.Errorf("Begin was called %d times, want once", got)
			}
			seen := w.seen()
			if len(seen) != i+1 {
				t.Fatalf("%d requests on the wire after %d attempts", len(seen), i+1)
			}
			got := seen[i]
			if got.Method != method || !bytes.Equal(got.Body, b) || got.Length != int64(len(b)) || got.Header.Get("Transfer-Encoding") != "" {
				t.Errorf("got %s with %d bytes and length %d, want %s with %d", got.Method, len(got.Body), got.Length, method, len(b))
			}
			if got.Header.Get("Idempotency-Key") != s.DestinationKey {
				t.Errorf("key %q, want %q", got.Header.Get("Idempotency-Key"), s.DestinationKey)
			}
			wantProto := "HTTP/1.1"
			if strings.HasSuffix(t.Name(), "h2") || strings.Contains(t.Name(), "h2/") {
				wantProto = "HTTP/2.0"
			}
			if got.Proto != wantProto {
				t.Errorf("protocol %s, want %s", got.Proto, wantProto)
			}
		}
		if seen := w.seen(); w.proxy == nil && seen[0].Connection != seen[1].Connection {
			t.Errorf("the second attempt did not reuse the connection, so nothing is shown about reuse")
		}
	})
}

// A destination that acts and then closes a reused connection gets no second
// request, though the request carries a key or has no body (C12 steps 1 and 2).
func TestConnectionDiesAfterTheEffect(t *testing.T) {
	matrix(t, func(t *testing.T, w *world, method string, b []byte) {
		d := w.destination(httpdest.Options{})
		s, _ := w.attempt(method, b, keyed)
		if ev := d.Send(t.Context(), s); ev.Kind != semel.EvConfirmed {
			t.Fatalf("warm-up: got %+v", ev)
		}
		w.answers(func(_ http.ResponseWriter, _ *http.Request, kill func()) { kill() })
		s, begins := w.attempt(method, b, keyed)
		ev := d.Send(t.Context(), s)
		wantClosed := ev.Closed || ev.Result != nil // a proxy may answer 502 for it
		if ev.Kind != semel.EvLost || !wantClosed {
			t.Errorf("got %+v, want lost and closed", ev)
		}
		if got := len(w.seen()) - 1; got != 1 {
			t.Errorf("%d effects, want 1", got)
		}
		if begins.Load() != 1 {
			t.Errorf("Begin was called %d times, want once", begins.Load())
		}
	})
}

// The test above can fail: Go's own client does resend (C12).
func TestGoResendsByItself(t *testing.T) {
	w := newWorld(t, "h1")
	client := w.Client()
	do := func() error {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, w.URL, strings.NewReader("1"))
		req.Header.Set("Idempotency-Key", "k")
		resp, err := client.Do(req)
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		return err
	}
	if err := do(); err != nil {
		t.Fatal(err)
	}
	w.answers(func(_ http.ResponseWriter, _ *http.Request, kill func()) {
		if len(w.seen()) == 2 {
			kill()
		}
	})
	err := do()
	if got := len(w.seen()) - 1; got != 2 || err != nil {
		t.Fatalf("%d effects, error %v: net/http no longer resends, so our own connections may not be needed", got, err)
	}
}

// Where Begin refuses, no byte of the request leaves (law 1, law 6).
func TestRefusedBeginSendsNothing(t *testing.T) {
	for _, route := range routes {
		t.Run(route, func(t *testing.T) {
			w := newWorld(t, route)
			d := w.destination(httpdest.Options{})
			for range 2 { // also over a connection that was kept
				s, _ := w.attempt("POST", body(1), keyed)
				calls := 0
				s.Begin = func() error { calls++; return errors.New("the claim is gone") }
				ev := d.Send(t.Context(), s)
				if ev.Kind != semel.EvRefused || !strings.Contains(ev.Reason, "the claim is gone") || calls != 1 {
					t.Errorf("got %+v after %d calls of Begin, want refused after one", ev, calls)
				}
				if got := len(w.seen()); got > 1 {
					t.Errorf("%d requests arrived", got-1)
				}
				s, _ = w.attempt("POST", body(1))
				if ev := d.Send(t.Context(), s); ev.Kind != semel.EvConfirmed {
					t.Fatalf("got %+v", ev)
				}
				w.mu.Lock()
				w.arrivals = w.arrivals[:1]
				w.mu.Unlock()
			}
		})
	}
}
