package httpdest

import (
	"bytes"
	"errors"
	"net"
	"sync"
	"time"
)

var (
	errSecondRequest = errors.New("a second request was about to leave within one attempt")
	errNoAttempt     = errors.New("a request was about to leave outside of an attempt")
	errStopped       = errors.New("the attempt was stopped before its first byte")
)

// wire is a connection above TLS: it sees plaintext. It lets out the bytes of
// one request per attempt, and asks the attempt before the first of them.
type wire struct {
	net.Conn          // the plaintext side: TCP itself, or TLS over it
	raw      net.Conn // the TCP connection
	framed   *frames  // nil for HTTP/1

	mu      sync.Mutex
	attempt *attempt // whose bytes these are; nil between attempts
	message message  // HTTP/1: what is left of the attempt's request
	aborted bool
}

func newWire(plain, raw net.Conn, h2 bool) *wire {
	w := &wire{Conn: plain, raw: raw}
	if h2 {
		w.framed = &frames{preface: len(http2Preface)}
	}
	return w
}

// bind gives the connection to an attempt whose request has a body of n bytes.
func (w *wire) bind(a *attempt, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attempt = a
	w.message = message{body: n}
	if w.framed != nil {
		w.framed.reset()
	}
}

// unbind takes the connection back; it reports whether the whole request left.
func (w *wire) unbind() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attempt = nil
	return w.whole()
}

// Write lets p out if it belongs to the one request of the bound attempt.
func (w *wire) Write(p []byte) (int, error) {
	if err := w.admit(p); err != nil {
		return 0, err
	}
	n, err := w.Conn.Write(p)
	w.mu.Lock()
	a, whole := w.attempt, err == nil && w.whole()
	w.mu.Unlock()
	if a != nil && whole {
		a.sent(w)
	}
	return n, err
}

// admit decides on p before any of it leaves.
func (w *wire) admit(p []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.framed != nil {
		if !w.framed.scan(p) {
			return nil // the connection's own business: settings, pings, windows
		}
		if w.framed.requests > 1 {
			return errSecondRequest
		}
	} else if w.attempt != nil && !w.message.scan(p) {
		return errSecondRequest
	}
	if w.attempt == nil {
		return errNoAttempt
	}
	return w.attempt.begin(w)
}

func (w *wire) whole() bool {
	if w.framed != nil {
		return w.framed.whole()
	}
	return w.message.whole()
}

// abort closes the connection so that nothing more can leave, not even what
// the kernel holds: without lingering, closing discards it.
func (w *wire) abort() {
	w.mu.Lock()
	if w.aborted {
		w.mu.Unlock()
		return
	}
	w.aborted = true
	w.mu.Unlock()
	if tcp, ok := w.raw.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // it is closed in any case
	}
	_ = w.raw.Close()
}

// sendWithin makes the kernel give up on bytes that are not acknowledged in
// time, where it can: a full socket buffer must not leave after the deadline.
func (w *wire) sendWithin(d time.Duration) {
	if tcp, ok := w.raw.(*net.TCPConn); ok {
		limitUnacknowledged(tcp, d)
	}
}

// message follows an HTTP/1 request through its bytes.
type message struct {
	tail   [4]byte // the last four bytes of the header so far
	headed bool    // the header is over
	body   int     // what is left of the body
}

// scan takes the next bytes; false says that they go beyond the request.
func (m *message) scan(p []byte) bool {
	for !m.headed {
		if len(p) == 0 {
			return true
		}
		copy(m.tail[:], m.tail[1:])
		m.tail[3] = p[0]
		p = p[1:]
		m.headed = bytes.Equal(m.tail[:], []byte("\r\n\r\n"))
	}
	m.body -= len(p)
	return m.body >= 0
}

func (m *message) whole() bool { return m.headed && m.body == 0 }

const http2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// The frames that belong to a request, and the flag that ends one (RFC 9113).
const (
	frameData         = 0x0
	frameHeaders      = 0x1
	frameContinuation = 0x9
	flagEndStream     = 0x1
	flagEndHeaders    = 0x4
)

// frames follows an HTTP/2 connection through its bytes.
type frames struct {
	preface  int // what is left of the connection preface
	header   [9]byte
	have     int // of header
	payload  int // what is left of the frame
	ours     bool
	headed   bool // END_HEADERS was seen since bind
	last     bool // END_STREAM was seen since bind
	requests int  // HEADERS frames since bind
}

// scan takes the next bytes; true says that some of them belong to a request.
func (f *frames) scan(p []byte) bool {
	n := min(f.preface, len(p))
	f.preface -= n
	p = p[n:]
	found := false
	for len(p) > 0 {
		if f.have < len(f.header) {
			n := copy(f.header[f.have:], p)
			f.have += n
			p = p[n:]
			if f.have == len(f.header) {
				f.open()
			}
			found = found || f.have == len(f.header) && f.ours
		}
		n := min(f.payload, len(p))
		if f.have == len(f.header) {
			f.payload -= n
			p = p[n:]
			found = found || f.ours
			if f.payload == 0 {
				f.have = 0
			}
		}
	}
	return found
}

func (f *frames) open() {
	f.payload = int(f.header[0])<<16 | int(f.header[1])<<8 | int(f.header[2])
	kind, flags := f.header[3], f.header[4]
	f.ours = kind == frameData || kind == frameHeaders || kind == frameContinuation
	f.last = f.last || (kind == frameData || kind == frameHeaders) && flags&flagEndStream != 0
	f.headed = f.headed || (kind == frameHeaders || kind == frameContinuation) && flags&flagEndHeaders != 0
	if kind == frameHeaders {
		f.requests++
	}
}

// reset begins a new request on the connection.
func (f *frames) reset() { f.requests, f.headed, f.last = 0, false, false }

// whole reports whether all of the request has been seen.
func (f *frames) whole() bool { return f.headed && f.last && f.have == 0 }
