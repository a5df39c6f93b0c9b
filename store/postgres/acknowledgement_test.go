package postgres_test

import (
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/store/postgres"
)

// proxy stands between the store and the server, and can cut what they say.
type proxy struct {
	listener net.Listener
	server   string
	wg       sync.WaitGroup
	// A cut loses the next request or answer, and the connection with it.
	cutRequests, cutAnswers, refuse atomic.Bool
	spare                           atomic.Int64 // reads that pass before a cut
	cuts                            atomic.Int64
}

func newProxy(t *testing.T, dsn string) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, server: u.Host}
	p.wg.Go(p.serve)
	t.Cleanup(func() { _ = l.Close(); p.wg.Wait() })
	u.Host = l.Addr().String()
	return p, u.String()
}

func (p *proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		if p.refuse.Load() {
			_ = client.Close()
			continue
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		end := func() { _ = client.Close(); _ = server.Close() }
		p.wg.Go(func() { defer end(); p.copy(server, client, &p.cutRequests) })
		p.wg.Go(func() { defer end(); p.copy(client, server, &p.cutAnswers) })
	}
}

// copy passes what arrives on, until it is told to cut: then what was read last
// is lost, and so is the connection.
func (p *proxy) copy(to io.Writer, from io.Reader, cut *atomic.Bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if cut.Load() && p.spare.Add(-1) < 0 && cut.CompareAndSwap(true, false) {
			p.cuts.Add(1)
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// Section 6, law 2: the acknowledgement of a commit is lost. Whether the
// request or the answer was cut, the store finds out by repeating it, and the
// change is made exactly once.
func TestLostAcknowledgement(t *testing.T) {
	for _, c := range []struct {
		name string
		cut  func(*proxy) *atomic.Bool
	}{
		{"the request is lost", func(p *proxy) *atomic.Bool { return &p.cutRequests }},
		{"the answer is lost", func(p *proxy) *atomic.Bool { return &p.cutAnswers }},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, dsn := newProxy(t, migrated(t))
			s := open(t, dsn, postgres.Options{})
			o := commit(t, s, claimOf(t, time.Now()))
			o = commit(t, s, confirmationOf(t, o)) // the statements are prepared
			for range 10 {
				c.cut(p).Store(true)
				claimed := commit(t, s, claimOf(t, time.Now()))
				o = commit(t, s, confirmationOf(t, claimed))
				c.cut(p).Store(true)
				o = commit(t, s, changeOf(t, o, semel.Event{Kind: semel.EvJoined, At: o.UpdatedAt, By: "source"}))
				events, err := s.Events(t.Context(), o.ID)
				if err != nil || len(events) != 3 {
					t.Fatalf("got %d events, error %v, want 3", len(events), err)
				}
			}
			if p.cuts.Load() < 20 {
				t.Errorf("only %d connections were cut", p.cuts.Load())
			}
		})
	}
}

// Law 2: where the store cannot find out in time, it says so. The change may
// be there, and repeating it tells.
func TestUnconfirmedCommit(t *testing.T) {
	p, dsn := newProxy(t, migrated(t))
	s := open(t, dsn, postgres.Options{Patience: 300 * time.Millisecond})
	commit(t, s, confirmationOf(t, commit(t, s, claimOf(t, time.Now()))))
	c := claimOf(t, time.Now())
	p.refuse.Store(true)
	p.cutAnswers.Store(true)
	if _, err := s.Commit(t.Context(), c); !errors.Is(err, semel.ErrUnconfirmed) || errors.Is(err, semel.ErrUnavailable) {
		t.Fatalf("a commit whose answer was lost: error %v, want ErrUnconfirmed", err)
	}
	if _, err := s.Commit(t.Context(), claimOf(t, time.Now())); !errors.Is(err, semel.ErrUnavailable) {
		t.Fatalf("a commit without a connection: error %v, want ErrUnavailable", err)
	}
	p.refuse.Store(false)
	first, err := s.LoadID(t.Context(), c.After.ID)
	if err != nil {
		t.Fatalf("the server did commit: %v", err)
	}
	if again := commit(t, s, c); !again.CreatedAt.Equal(first.CreatedAt) || again.Version != 1 {
		t.Errorf("repeated, it is version %d of %v, want version 1 of %v", again.Version, again.CreatedAt, first.CreatedAt)
	}
}
