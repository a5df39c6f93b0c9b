package main

import (
	"bytes"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
)

// wire is the connection of one worker to PostgreSQL, which can be cut.
type wire struct {
	listener net.Listener
	server   string
	lose     atomic.Int64 // so many acknowledgements of commits
	loseAny  atomic.Int64 // so many answers
	lost     atomic.Int64 // acknowledgements of commits that were lost

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]bool
	wg    sync.WaitGroup
}

func newWire(t *testing.T, dsn string) (*wire, string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{listener: l, server: u.Host, conns: map[net.Conn]bool{}}
	w.wg.Go(w.serve)
	t.Cleanup(func() { _ = l.Close(); w.setCut(true); w.wg.Wait() })
	u.Host = l.Addr().String()
	return w, u.String()
}

// setCut closes what is open and takes nothing new, or takes connections again.
func (w *wire) setCut(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	if cut {
		for c := range w.conns {
			_ = c.Close()
		}
	}
}

// hold registers a connection; false: the wire is cut.
func (w *wire) hold(c net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.cut {
		w.conns[c] = true
	}
	return !w.cut
}

func (w *wire) drop(c net.Conn) {
	_ = c.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, c)
}

func (w *wire) serve() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", w.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		if !w.hold(client) || !w.hold(server) {
			w.drop(client)
			w.drop(server)
			continue
		}
		end := func() { w.drop(client); w.drop(server) }
		w.wg.Go(func() { defer end(); w.copy(server, client, false) })
		w.wg.Go(func() { defer end(); w.copy(client, server, true) })
	}
}

// copy passes on what arrives. An answer that is to be lost is read, so that
// the server has done its part, and then the connection is cut.
func (w *wire) copy(to, from net.Conn, answers bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if answers {
			if committed(buf[:n]) && take(&w.lose) {
				w.lost.Add(1)
				return
			}
			if take(&w.loseAny) {
				return
			}
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// committed reports whether an answer acknowledges a write whose transaction
// is over: a write's tag, and at the end "ready, in no transaction".
func committed(answer []byte) bool {
	return (bytes.Contains(answer, []byte("INSERT 0 1\x00")) || bytes.Contains(answer, []byte("UPDATE 1\x00"))) &&
		bytes.HasSuffix(answer, []byte("Z\x00\x00\x00\x05I"))
}

func take(n *atomic.Int64) bool {
	if n.Load() <= 0 {
		return false
	}
	return n.Add(-1) >= 0
}
