package httpdest_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
)

// arrival is one request as the world saw it.
type arrival struct {
	Method, Target, Proto, Connection string
	Header                            http.Header
	Body                              []byte
	Length                            int64
}

// world is a destination that counts what arrives, and how it is reached.
type world struct {
	*httptest.Server
	t     *testing.T
	proxy *proxy

	mu       sync.Mutex
	arrivals []arrival
	conns    map[string]net.Conn
	answer   func(w http.ResponseWriter, r *http.Request, kill func())
}

type connKey struct{}

// routes are the ways to reach a destination.
var routes = []string{"h1", "h1-tls", "h2", "proxy", "tunnel-h1", "tunnel-h2"}

func newWorld(t *testing.T, route string) *world {
	t.Helper()
	w := &world{t: t, conns: map[string]net.Conn{}}
	w.Server = httptest.NewUnstartedServer(http.HandlerFunc(w.serve))
	w.Config.ErrorLog = quiet()
	w.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) }
	switch route {
	case "h1", "proxy":
		w.Start()
	case "h1-tls", "tunnel-h1":
		w.StartTLS()
	case "h2", "tunnel-h2":
		w.EnableHTTP2 = true
		w.StartTLS()
	default:
		t.Fatalf("no route %q", route)
	}
	t.Cleanup(w.Close)
	if route == "proxy" || route == "tunnel-h1" || route == "tunnel-h2" {
		w.proxy = newProxy(t)
	}
	return w
}

func (w *world) serve(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // it did not arrive whole: no effect
	}
	conn := r.Context().Value(connKey{}).(net.Conn)
	w.mu.Lock()
	w.arrivals = append(w.arrivals, arrival{
		Method: r.Method, Target: r.RequestURI, Proto: r.Proto, Connection: r.RemoteAddr,
		Header: r.Header.Clone(), Body: body, Length: r.ContentLength,
	})
	answer := w.answer
	w.mu.Unlock()
	if answer == nil {
		rw.WriteHeader(http.StatusCreated)
		_, _ = rw.Write([]byte(`{"id":"ch_1"}`))
		return
	}
	answer(rw, r, func() {
		if c, ok := conn.(*tls.Conn); ok {
			conn = c.NetConn()
		}
		_ = conn.Close()
	})
}

// answers sets what the next requests get.
func (w *world) answers(f func(rw http.ResponseWriter, r *http.Request, kill func())) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = f
}

// says makes the world answer with status and body.
func (w *world) says(status int, body string, header ...string) {
	w.answers(func(rw http.ResponseWriter, _ *http.Request, _ func()) {
		for i := 0; i < len(header); i += 2 {
			rw.Header().Set(header[i], header[i+1])
		}
		rw.WriteHeader(status)
		_, _ = io.WriteString(rw, body)
	})
}

func (w *world) seen() []arrival {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]arrival(nil), w.arrivals...)
}

// destination reaches the world by its route.
func (w *world) destination(o httpdest.Options) *httpdest.Destination {
	w.t.Helper()
	o.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	if w.proxy != nil {
		o.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(w.proxy.URL) }
	}
	if c := w.Certificate(); c != nil && o.RootCAs == nil {
		o.RootCAs = x509.NewCertPool()
		o.RootCAs.AddCert(c)
	}
	d, err := httpdest.New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		if err := d.Close(ctx); err != nil {
			w.t.Error(err)
		}
	})
	return d
}

// attempt makes a Send for the world, and counts its Begins.
func (w *world) attempt(method string, body []byte, change ...func(*semel.Operation)) (*semel.Send, *atomic.Int32) {
	op := &semel.Operation{Identity: semel.Identity{
		Scope: "test", Key: "k-1",
		Request:  semel.Request{Kind: httpdest.Kind, Method: method, URL: w.URL + "/v1/charges", Body: body, MediaType: semel.MediaTypeOf(body)},
		Contract: semel.Contract{Protection: semel.Unprotected, Timeout: 5 * time.Second},
	}, State: semel.InProgress, Attempt: 1}
	for _, f := range change {
		f(op)
	}
	begins := new(atomic.Int32)
	return &semel.Send{Operation: op, Attempt: 1, DestinationKey: op.DestinationKey(), Begin: func() error { begins.Add(1); return nil }}, begins
}

func keyed(o *semel.Operation) { o.Contract.KeyHeader = "Idempotency-Key" }

// proxy is a forward proxy that counts what passes.
type proxy struct {
	*httptest.Server
	requests, tunnels atomic.Int32
	refuse            atomic.Int32 // the status to answer instead, if not 0
}

func newProxy(t *testing.T) *proxy {
	p := &proxy{}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.Close)
	return p
}

func (p *proxy) serve(w http.ResponseWriter, r *http.Request) {
	status := int(p.refuse.Load())
	if r.Method == http.MethodConnect {
		p.tunnels.Add(1)
		if status != 0 {
			http.Error(w, "no", status)
			return
		}
		p.tunnel(w, r)
		return
	}
	p.requests.Add(1)
	if status != 0 {
		http.Error(w, "no", status)
		return
	}
	r.RequestURI = ""
	r.Header.Del("Accept-Encoding")
	resp, err := (&http.Transport{DisableKeepAlives: true, DisableCompression: true}).RoundTrip(r)
	if err != nil {
		panic(http.ErrAbortHandler) // it closes on its side
	}
	defer resp.Body.Close()
	maps.Copy(w.Header(), resp.Header)
	w.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(w, resp.Body)
}

func (p *proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	up, err := net.Dial("tcp", r.Host)
	if err != nil {
		http.Error(w, "unreachable", http.StatusBadGateway)
		return
	}
	down, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		_ = up.Close()
		return
	}
	_, _ = fmt.Fprint(down, "HTTP/1.1 200 OK\r\n\r\n")
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(up, buffered); _ = up.Close(); _ = down.Close() })
	both.Go(func() { _, _ = io.Copy(down, up); _ = up.Close(); _ = down.Close() })
	both.Wait()
}

func body(n int) []byte {
	if n == 0 {
		return []byte{}
	}
	return bytes.Repeat([]byte("1"), n)
}
