package httpdest

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

// The guard bites: whatever the layers above do, a second request within one
// attempt, or one outside of any, does not leave (design section 7).
func TestGuard(t *testing.T) {
	request := "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab"
	frame := func(kind, flags byte, payload string) string {
		return string([]byte{0, 0, byte(len(payload)), kind, flags, 0, 0, 0, 1}) + payload
	}
	settings := frame(0x4, 0, "")
	h2 := frame(frameHeaders, flagEndHeaders, "xyz") + frame(frameData, flagEndStream, "ab")
	for name, test := range map[string]struct {
		h2      bool
		unbound bool
		writes  []string
		want    error
		begins  int
		whole   bool
	}{
		"h1":                   {false, false, []string{request}, nil, 1, true},
		"h1 in pieces":         {false, false, strings.SplitAfter(request, ""), nil, 1, true},
		"h1 not whole":         {false, false, []string{request[:len(request)-1]}, nil, 1, false},
		"h1 twice":             {false, false, []string{request, request}, errSecondRequest, 1, false},
		"h1 twice in one":      {false, false, []string{request + request}, errSecondRequest, 0, false},
		"h1 one byte too many": {false, false, []string{request + "G"}, errSecondRequest, 0, false},
		"h1 unbound":           {false, true, []string{"G"}, errNoAttempt, 0, false},
		"h2":                   {true, false, []string{http2Preface + settings, h2}, nil, 1, true},
		"h2 in pieces":         {true, false, strings.SplitAfter(http2Preface+settings+h2, ""), nil, 1, true},
		"h2 not whole":         {true, false, []string{http2Preface, h2[:len(h2)-1]}, nil, 1, false},
		"h2 control only":      {true, false, []string{http2Preface + settings, frame(0x6, 0, "12345678")}, nil, 0, false},
		"h2 twice":             {true, false, []string{http2Preface, h2, frame(frameHeaders, flagEndHeaders|flagEndStream, "x")}, errSecondRequest, 1, true},
		"h2 unbound":           {true, true, []string{http2Preface + settings, h2}, errNoAttempt, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := net.Pipe()
			defer near.Close()
			go func() { _, _ = io.Copy(io.Discard, far) }()
			w := newWire(near, near, test.h2)
			begins := 0
			a := newAttempt(&semel.Send{Begin: func() error { begins++; return nil }}, time.Minute)
			defer a.done()
			if !test.unbound {
				w.bind(a, 2)
			}
			var err error
			for _, s := range test.writes {
				if _, err = w.Write([]byte(s)); err != nil {
					break
				}
			}
			if !errors.Is(err, test.want) || begins != test.begins {
				t.Errorf("got %v after %d Begins, want %v after %d", err, begins, test.want, test.begins)
			}
			if test.want == nil && w.unbind() != test.whole {
				t.Errorf("whole is %v, want %v", !test.whole, test.whole)
			}
		})
	}
}

// However the bytes are cut, the guard sees the same frames.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{0, 0, 1, 1, 5, 0, 0, 0, 1, 9, 0, 0, 0, 4, 0, 0, 0, 0, 0}, uint64(1))
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		whole, pieces := &frames{}, &frames{}
		found := whole.scan(data)
		random := rand.New(rand.NewPCG(seed, 1))
		anywhere := false
		for rest := data; len(rest) > 0; {
			n := 1 + random.IntN(len(rest))
			anywhere = pieces.scan(rest[:n]) || anywhere
			rest = rest[n:]
		}
		if found != anywhere || *whole != *pieces {
			t.Fatalf("in one: %v %+v; in pieces: %v %+v", found, whole, anywhere, pieces)
		}
	})
}

// Whenever the caller goes away, evidence never says more than the truth: no
// refusal of what arrived, no second arrival (laws 1 and 2).
func TestStoppedAtAnyMoment(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		var mu sync.Mutex
		arrived := map[string]int{}
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			arrived[r.Header.Get("Name")]++
			mu.Unlock()
			w.WriteHeader(201)
		}))
		server.EnableHTTP2 = h2
		if h2 {
			server.StartTLS()
		} else {
			server.Start()
		}
		d, err := New(Options{Proxy: func(*http.Request) (*url.URL, error) { return nil, nil }})
		if err != nil {
			t.Fatal(err)
		}
		if h2 {
			d.dialer.roots = server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
		}
		kinds := map[semel.EventKind]int{}
		refused := []string{}
		for i := range 300 {
			name := strings.Repeat("x", i+1)
			op := &semel.Operation{Identity: semel.Identity{Request: semel.Request{
				Kind: Kind, Method: "POST", URL: server.URL, Body: []byte("1"),
				Header: map[string]string{"Name": name},
			}}}
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(800))*time.Microsecond)
			ev := d.Send(ctx, &semel.Send{Operation: op, Begin: func() error { return nil }})
			cancel()
			kinds[ev.Kind]++
			if ev.Kind == semel.EvRefused {
				refused = append(refused, name)
			}
		}
		if err := d.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		server.Close()
		for name, n := range arrived {
			if n > 1 {
				t.Errorf("request %d arrived %d times", len(name), n)
			}
		}
		for _, name := range refused {
			if arrived[name] > 0 {
				t.Errorf("request %d arrived and was refused", len(name))
			}
		}
		t.Logf("h2 %v: %v", h2, kinds)
		if kinds[semel.EvRefused] == 0 || kinds[semel.EvRefused] == 300 {
			t.Logf("every attempt ended alike, so little was shown")
		}
	}
}
