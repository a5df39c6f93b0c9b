package sqldest_test

import (
	"bytes"
	"context"
	"database/sql"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/semel-dev/semel"
	sqldest "github.com/semel-dev/semel/destination/sql"
	"github.com/semel-dev/semel/store/postgres/postgrestest"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

// world is a user's database, and a connection beside the destination.
type world struct {
	name, url string
	*sql.DB
}

// postgresWorld and sqliteWorld are databases with a table of effects.
func postgresWorld(t *testing.T) world {
	t.Helper()
	address := postgrestest.Shared(t).Database(t)
	return fill(t, "postgres", address, "pgx", address)
}

func sqliteWorld(t *testing.T) world {
	t.Helper()
	file := filepath.Join(t.TempDir(), "user.db")
	return fill(t, "sqlite", "sqlite://"+file, "sqlite", "file:"+file+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)")
}

func fill(t *testing.T, name, address, driver, dsn string) world {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	w := world{name, address, db}
	w.exec(t, `create table effect (name text not null, manner text not null, happened integer not null default 1)`)
	return w
}

// each runs a test on both databases.
func each(t *testing.T, test func(t *testing.T, w world)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { test(t, sqliteWorld(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, postgresWorld(t)) })
}

func (w world) exec(t *testing.T, statement string) {
	t.Helper()
	if _, err := w.Exec(statement); err != nil {
		t.Fatal(err)
	}
}

func (w world) number(t *testing.T, query string, args ...any) (n int) {
	t.Helper()
	if err := w.QueryRow(query, args...).Scan(&n); err != nil {
		t.Error(err)
	}
	return n
}

// effects counts how often the effect called name has happened.
func (w world) effects(t *testing.T, name string) int {
	t.Helper()
	return w.number(t, `select count(*) from effect where name = $1`, name)
}

func open(t *testing.T, address string, o sqldest.Options) *sqldest.Database {
	t.Helper()
	d, err := sqldest.New(address, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = d.Close(ctx)
	})
	return d
}

// send is an attempt under a key.
func send(t *testing.T, d *sqldest.Database, key string, attempt int, verb sqldest.Verb, text string, args ...any) *semel.Send {
	t.Helper()
	r, err := d.NewRequest(verb, text, args...)
	if err != nil {
		t.Fatal(err)
	}
	f, err := r.Fingerprint()
	if err != nil {
		t.Fatal(err)
	}
	o := &semel.Operation{
		Identity: semel.Identity{ID: semel.ID{1}, Scope: "billing", Key: semel.Key(key), Fingerprint: f, Request: r, Contract: d.Contract()},
		State:    semel.InProgress, Attempt: attempt,
	}
	return &semel.Send{Operation: o, Attempt: attempt, DestinationKey: o.DestinationKey(), Begin: func() error { return nil }}
}

// insert is an attempt to record an effect called name.
func insert(t *testing.T, d *sqldest.Database, w world, name string, attempt int) *semel.Send {
	t.Helper()
	return send(t, d, name, attempt, sqldest.VerbExec, w.dialect(`insert into effect (name, manner) values ($1, $2) returning happened`), name, "plain")
}

// dialect spells placeholders as SQLite users do.
func (w world) dialect(text string) string {
	if w.name == "postgres" {
		return text
	}
	b := []byte(text)
	for _, n := range []string{"$1", "$2", "$3"} {
		b = bytes.ReplaceAll(b, []byte(n), []byte("?"))
	}
	return string(b)
}

// unknown is the attempt as recovery sees it: nobody knows how it ended.
func unknown(s *semel.Send) *semel.Send {
	o := *s.Operation
	o.State = semel.Unknown
	looked := *s
	looked.Operation = &o
	return &looked
}

// proxy stands before PostgreSQL. What it does to a connection depends on a
// word that the client has sent over it: "loses request" ends the connection
// instead of passing the commit on, "loses answer" instead of passing its
// answer back, and "hangs" passes nothing back any more.
type proxy struct {
	listener net.Listener
	server   string
	wg       sync.WaitGroup
	held     chan struct{} // if not nil, what has the word "held" waits for it
}

func newProxy(t *testing.T, address string) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, server: u.Host, held: make(chan struct{})}
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
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.wg.Go(func() { p.relay(client, server) })
	}
}

// relay passes on what the two say.
func (p *proxy) relay(client, server net.Conn) {
	var mu sync.Mutex
	word, committing := "", false
	var wg sync.WaitGroup
	end := func() { _ = client.Close(); _ = server.Close() }
	wg.Go(func() {
		defer end()
		forward(client, func(b []byte) bool {
			mu.Lock()
			for _, w := range []string{"loses request", "loses answer", "hangs", "held"} {
				if bytes.Contains(b, []byte(w)) {
					word = w
				}
			}
			committing = committing || word != "" && bytes.Contains(b, []byte("commit\x00"))
			now, sending := word, committing
			mu.Unlock()
			if sending && now == "loses request" {
				return false
			}
			if sending && now == "held" {
				<-p.held
			}
			_, err := server.Write(b)
			return err == nil
		})
	})
	wg.Go(func() {
		defer end()
		forward(server, func(b []byte) bool {
			mu.Lock()
			now, sent := word, committing
			mu.Unlock()
			if sent && now == "loses answer" {
				return false
			}
			if sent && now == "hangs" {
				return true
			}
			_, err := client.Write(b)
			return err == nil
		})
	})
	wg.Wait()
}

func forward(from net.Conn, pass func([]byte) bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil || !pass(buf[:n]) {
			return
		}
	}
}
