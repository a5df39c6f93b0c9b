package httpdest_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
)

// "Nothing was sent" is decided by bytes (law 2, C11, design section 7).
func TestNothingWasSent(t *testing.T) {
	plain, secure := newWorld(t, "h1"), newWorld(t, "h1-tls")
	tests := map[string]func(t *testing.T) semel.Event{
		"name lookup fails": func(t *testing.T) semel.Event {
			return sendTo(t, plain, httpdest.Options{}, "http://does-not-exist.invalid/")
		},
		"connection refused": func(t *testing.T) semel.Event { return sendTo(t, plain, httpdest.Options{}, "http://127.0.0.1:1/") },
		"unknown certificate": func(t *testing.T) semel.Event {
			return sendTo(t, secure, httpdest.Options{RootCAs: x509.NewCertPool()}, secure.URL)
		},
		"TLS to plain server": func(t *testing.T) semel.Event {
			return sendTo(t, plain, httpdest.Options{}, strings.Replace(plain.URL, "http:", "https:", 1))
		},
		"another origin": func(t *testing.T) semel.Event {
			return sendTo(t, plain, httpdest.Options{Name: "p", Base: "https://api.example.com"}, plain.URL)
		},
		"silent handshake": func(t *testing.T) semel.Event {
			l := listen(t)
			return sendTo(t, plain, httpdest.Options{ConnectTimeout: 100 * time.Millisecond}, "https://"+l.Addr().String())
		},
	}
	for name, send := range tests {
		t.Run(name, func(t *testing.T) {
			ev := send(t)
			if ev.Kind != semel.EvRefused || !strings.HasPrefix(ev.Reason, "nothing was sent: ") {
				t.Errorf("got %+v, want refused", ev)
			}
		})
	}
	if n := len(plain.seen()) + len(secure.seen()); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
}

// After the first byte, no error says that nothing happened.
func TestBytesWereSent(t *testing.T) {
	for name, serve := range map[string]func(net.Conn){
		"closed after the first byte": func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) },
		"closed after the header":     func(c net.Conn) { _, _ = io.ReadAtLeast(c, make([]byte, 100), 100) },
		"garbage":                     func(c net.Conn) { _, _ = c.Read(make([]byte, 4096)); _, _ = c.Write([]byte("SSH-2.0-x\r\n\r\n")) },
		"header cut off":              func(c net.Conn) { _, _ = c.Read(make([]byte, 4096)); _, _ = c.Write([]byte("HTTP/1.1 201 Cre")) },
		"endless header": func(c net.Conn) {
			_, _ = c.Read(make([]byte, 4096))
			_, _ = c.Write([]byte("HTTP/1.1 201 Created\r\n"))
			for {
				if _, err := c.Write([]byte("X-A: " + strings.Repeat("a", 4000) + "\r\n")); err != nil {
					return
				}
			}
		},
		"reset": func(c net.Conn) { _, _ = c.Read(make([]byte, 1)); _ = c.(*net.TCPConn).SetLinger(0) },
	} {
		t.Run(name, func(t *testing.T) {
			l := listen(t)
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					serve(c)
					c.Close()
				}
			}()
			w := newWorld(t, "h1")
			ev := sendTo(t, w, httpdest.Options{}, "http://"+l.Addr().String())
			if ev.Kind != semel.EvLost || !ev.Closed {
				t.Errorf("got %+v, want lost and closed", ev)
			}
		})
	}
}

// A client certificate that is missing is reported after the handshake, when
// the request has left already: unknown.
func TestAlertAfterTheRequest(t *testing.T) {
	secure := newWorld(t, "h1-tls")
	config := secure.TLS.Clone()
	config.ClientAuth = tls.RequireAnyClientCert
	config.MinVersion = tls.VersionTLS13
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.(*tls.Conn).Handshake()
			c.Close()
		}
	}()
	d := secure.destination(httpdest.Options{})
	for range 20 {
		s, begins := secure.attempt("POST", body(1000), func(o *semel.Operation) { o.Request.URL = "https://" + l.Addr().String() })
		ev := d.Send(t.Context(), s)
		want := semel.EvLost // the server may have read the request before it sent the alert
		if begins.Load() == 0 {
			want = semel.EvRefused // the alert came before the first byte left
		}
		if ev.Kind != want {
			t.Errorf("got %+v after %d Begins, want %s", ev, begins.Load(), want)
		}
	}
}

// A refused CONNECT sent nothing; a 5xx from a forward proxy does not tell
// (design section 7).
func TestProxyAnswers(t *testing.T) {
	for route, want := range map[string]semel.EventKind{"proxy": semel.EvLost, "tunnel-h1": semel.EvRefused, "tunnel-h2": semel.EvRefused} {
		w := newWorld(t, route)
		for _, status := range []int32{502, 407, 503} {
			w.proxy.refuse.Store(status)
			ev := sendTo(t, w, httpdest.Options{}, w.URL)
			if ev.Kind != want || want == semel.EvRefused && !strings.Contains(ev.Reason, fmt.Sprintf("it answered %d to CONNECT", status)) {
				t.Errorf("%s %d: got %+v, want %s", route, status, ev, want)
			}
		}
		if len(w.seen()) != 0 {
			t.Errorf("%s: a request arrived", route)
		}
	}
	w := newWorld(t, "h1")
	d, err := httpdest.New(httpdest.Options{Proxy: func(*http.Request) (*url.URL, error) { return url.Parse("socks5://127.0.0.1:1") }})
	if err != nil {
		t.Fatal(err)
	}
	s, _ := w.attempt("POST", body(1))
	if ev := d.Send(t.Context(), s); ev.Kind != semel.EvRefused || !strings.Contains(ev.Reason, "use an http or https proxy") {
		t.Errorf("got %+v", ev)
	}
}

// HTTP_PROXY and HTTPS_PROXY are honoured. Go reads them once per process, so
// this test runs itself in one of its own.
func TestProxyFromEnvironment(t *testing.T) {
	if target := os.Getenv("SEMEL_TEST_TARGET"); target != "" {
		d, err := httpdest.New(httpdest.Options{})
		if err != nil {
			t.Fatal(err)
		}
		op := &semel.Operation{Identity: semel.Identity{Request: semel.Request{Kind: "http", Method: "POST", URL: target}}}
		ev := d.Send(t.Context(), &semel.Send{Operation: op, Begin: func() error { return nil }})
		t.Log("evidence", ev.Kind, ev.Reason)
		return
	}
	p := newProxy(t)
	p.refuse.Store(503)
	for target, env := range map[string]string{"http://payments.invalid/": "HTTP_PROXY", "https://payments.invalid/": "HTTPS_PROXY"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestProxyFromEnvironment$", "-test.v")
		cmd.Env = append(os.Environ(), "SEMEL_TEST_TARGET="+target, env+"="+p.URL, "NO_PROXY=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", env, err, out)
		}
	}
	if p.requests.Load() != 1 || p.tunnels.Load() != 1 {
		t.Errorf("the proxy saw %d requests and %d tunnels, want one of each", p.requests.Load(), p.tunnels.Load())
	}
}

// M15: the contract's timeout ends the waiting, not the work; without somebody
// to take late evidence the connection is closed.
func TestTimeout(t *testing.T) {
	for _, route := range []string{"h1", "h2"} {
		w := newWorld(t, route)
		d := w.destination(httpdest.Options{})
		w.answers(func(_ http.ResponseWriter, r *http.Request, _ func()) { <-r.Context().Done() })
		s, _ := w.attempt("POST", body(1), func(o *semel.Operation) { o.Contract.Timeout = time.Second })
		ev := d.Send(t.Context(), s)
		if ev.Kind != semel.EvLost || !ev.Closed || !strings.Contains(ev.Reason, "no answer within 1s") {
			t.Errorf("%s: got %+v", route, ev)
		}
		if n := len(w.seen()); n != 1 {
			t.Errorf("%s: %d requests", route, n)
		}
	}
}

// Sending is bounded too: a destination that does not read is left, closed.
func TestWriteTimeout(t *testing.T) {
	l := listen(t)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.(*net.TCPConn).SetReadBuffer(1024)
			t.Cleanup(func() { c.Close() })
		}
	}()
	w := newWorld(t, "h1")
	d := w.destination(httpdest.Options{})
	s, _ := w.attempt("POST", body(semel.MaxBody), func(o *semel.Operation) {
		o.Request.URL, o.Contract.Timeout, o.Contract.WriteTimeout = "http://"+l.Addr().String()+"/", 0, 200*time.Millisecond
	})
	s.Operation.Request.Body = body(16 << 20) // more than the kernel buffers
	ev := d.Send(t.Context(), s)
	if ev.Kind != semel.EvLost || !ev.Closed || !strings.Contains(ev.Reason, "not sent completely within 200ms") {
		t.Errorf("got %+v", ev)
	}
}

// An answer after the timeout is evidence (M17, C14 step 5).
func TestLateAnswer(t *testing.T) {
	w := newWorld(t, "h1")
	d := w.destination(httpdest.Options{})
	w.answers(func(rw http.ResponseWriter, _ *http.Request, _ func()) {
		time.Sleep(1500 * time.Millisecond)
		rw.WriteHeader(201)
		_, _ = io.WriteString(rw, `{"id":"ch_1"}`)
	})
	s, _ := w.attempt("POST", body(1), func(o *semel.Operation) { o.Contract.Timeout = time.Second })
	late := make(chan semel.Event, 2)
	s.Late = func(ev semel.Event) { late <- ev }
	if ev := d.Send(t.Context(), s); ev.Kind != semel.EvLost || ev.Closed {
		t.Fatalf("got %+v, want lost and not closed", ev)
	}
	if err := d.Close(context.WithoutCancel(t.Context())); err != nil { // waits for it
		t.Fatal(err)
	}
	select {
	case ev := <-late:
		if ev.Kind != semel.EvConfirmed || ev.Result.Reference != "ch_1" || ev.Attempt != 1 {
			t.Errorf("got %+v", ev)
		}
	default:
		t.Error("Close did not wait for the late answer")
	}
	if ev := d.Send(t.Context(), s); ev.Kind != semel.EvRefused {
		t.Errorf("a closed destination sent: %+v", ev)
	}
}

// Close in a hurry closes the connection, and says so as late evidence.
func TestCloseInAHurry(t *testing.T) {
	w := newWorld(t, "h2")
	d := w.destination(httpdest.Options{})
	w.answers(func(_ http.ResponseWriter, r *http.Request, _ func()) { <-r.Context().Done() })
	s, _ := w.attempt("POST", body(1), func(o *semel.Operation) { o.Contract.Timeout = time.Second })
	late := make(chan semel.Event, 2)
	s.Late = func(ev semel.Event) { late <- ev }
	if ev := d.Send(t.Context(), s); ev.Kind != semel.EvLost || ev.Closed {
		t.Fatalf("got %+v", ev)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := d.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if ev := <-late; ev.Kind != semel.EvLost || !ev.Closed {
		t.Errorf("got %+v, want lost and closed", ev)
	}
}

// The limit holds for all workers, so it is the engine's to keep: a destination
// says it, and sends what it is asked to.
func TestLimit(t *testing.T) {
	for name, test := range map[string]struct {
		options httpdest.Options
		want    semel.Limit
	}{
		"none":     {httpdest.Options{Name: "payments"}, semel.Limit{Name: "payments"}},
		"at once":  {httpdest.Options{Name: "payments", AtOnce: 4}, semel.Limit{Name: "payments", AtOnce: 4}},
		"rate":     {httpdest.Options{Name: "payments", PerSecond: 20}, semel.Limit{Name: "payments", Every: 50 * time.Millisecond, Burst: 1}},
		"slow":     {httpdest.Options{Name: "payments", PerSecond: 0.001}, semel.Limit{Name: "payments", Every: 1000 * time.Second, Burst: 1}},
		"nameless": {httpdest.Options{AtOnce: 4, PerSecond: 20}, semel.Limit{}},
	} {
		d, err := httpdest.New(test.options)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Limit(); got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}

// The key goes only where the contract says so, in its spelling (M33).
func TestKeyHeader(t *testing.T) {
	w := newWorld(t, "h1")
	d := w.destination(httpdest.Options{})
	for _, test := range []struct {
		header string
		quoted bool
		key    string
		want   string
		kind   semel.EventKind
	}{
		{"", false, "k", "", semel.EvConfirmed},
		{"X-My-Key", false, "k", "k", semel.EvConfirmed},
		{"X-My-Key", true, `a"b\c`, `"a\"b\\c"`, semel.EvConfirmed},
		{"X-My-Key", true, "é", "", semel.EvRefused},
		{"X-My-Key", false, "a\nb", "", semel.EvRefused},
		{"X-My-Key", false, "", "", semel.EvRefused},
		{"X-Given", false, "k", "", semel.EvRefused},
	} {
		before := len(w.seen())
		s, _ := w.attempt("POST", body(1), func(o *semel.Operation) {
			o.Contract.KeyHeader, o.Contract.KeyQuoted = test.header, test.quoted
			o.Request.Header = map[string]string{"X-Given": "1"}
		})
		s.DestinationKey = test.key
		ev := d.Send(t.Context(), s)
		if ev.Kind != test.kind {
			t.Errorf("%+v: got %+v", test, ev)
		}
		if seen := w.seen(); ev.Kind == semel.EvConfirmed {
			got := seen[len(seen)-1].Header
			if got.Get("X-My-Key") != test.want || got.Get("Idempotency-Key") != "" {
				t.Errorf("%+v: sent %v", test, got)
			}
		} else if len(seen) != before {
			t.Errorf("%+v: something was sent", test)
		}
	}
}

// Withheld headers come from this caller or from the connection; without them
// nothing is sent (law 10).
func TestWithheld(t *testing.T) {
	w := newWorld(t, "h1")
	d := w.destination(httpdest.Options{})
	s, _ := w.attempt("POST", body(1), func(o *semel.Operation) { o.Request.Withheld = []string{"Authorization"} })
	if ev := d.Send(t.Context(), s); ev.Kind != semel.EvRefused || !strings.Contains(ev.Reason, "Authorization") {
		t.Errorf("got %+v", ev)
	}
	s.Withheld = map[string]string{"Authorization": "Bearer x"}
	if ev := d.Send(t.Context(), s); ev.Kind != semel.EvConfirmed || w.seen()[0].Header.Get("Authorization") != "Bearer x" {
		t.Errorf("got %+v", ev)
	}
	s.Withheld = map[string]string{"Authorization": "a\r\nX: y"}
	if ev := d.Send(t.Context(), s); ev.Kind != semel.EvRefused || strings.Contains(ev.Reason, "X: y") {
		t.Errorf("got %+v", ev)
	}
}

// Same bytes: what passes is what was given, to the digit (C03, law 10).
func TestExactBytes(t *testing.T) {
	w := newWorld(t, "h1")
	d := w.destination(httpdest.Options{})
	exact := `{"to":9007199254740993,"b":7615917337495251231, "amount":0.10,"big":123456789012345678901234567890,"z":1e400}` + "\n"
	r, _, err := httpdest.NewRequest("post", w.URL+"/a%2Fb?x=%20&x=1", nil, []byte(exact))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s, _ := w.attempt("POST", nil, func(o *semel.Operation) { o.Request = r })
		if ev := d.Send(t.Context(), s); ev.Kind != semel.EvConfirmed {
			t.Fatalf("got %+v", ev)
		}
	}
	for _, got := range w.seen() {
		if string(got.Body) != exact || got.Header.Get("Content-Type") != "application/json" || got.Target != "/a%2Fb?x=%20&x=1" {
			t.Errorf("got %s %s %q", got.Target, got.Header.Get("Content-Type"), got.Body)
		}
		if got.Header.Get("Accept-Encoding") != "" || got.Header.Get("User-Agent") != "semel" {
			t.Errorf("unasked headers: %v", got.Header)
		}
	}
}

func sendTo(t *testing.T, w *world, o httpdest.Options, target string) semel.Event {
	t.Helper()
	d := w.destination(o)
	s, _ := w.attempt("POST", body(1000), func(op *semel.Operation) { op.Request.URL = target })
	return d.Send(t.Context(), s)
}

func listen(t *testing.T) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}
