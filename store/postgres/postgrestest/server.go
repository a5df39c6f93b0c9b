package postgrestest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// patience bounds a start or a stop that the caller's context does not bound.
const patience = time.Minute

// Options configure a server. The zero value is right for conformance tests.
type Options struct {
	// Durable turns fsync on. Crash drills and benchmarks need it; other tests
	// are faster without.
	Durable bool
	// MaxConnections is the server's max_connections; zero means 100.
	MaxConnections int
	// Settings are further lines for postgresql.conf; they win over the rest.
	Settings map[string]string
	// Binaries is the directory that holds initdb and postgres; empty means
	// search.
	Binaries string
}

// Server is one PostgreSQL server and its data. Its methods are safe for
// concurrent use. The address stays the same over Stop, Crash and Start.
type Server struct {
	binaries string
	account  account
	dir      directory

	mu      sync.Mutex
	process *process // nil while stopped

	databases databases
}

// Run creates the data of a new server in a temporary directory and starts it.
// The caller must Close it. It returns [ErrNotInstalled] where this machine
// has no server binaries.
func Run(ctx context.Context, opts Options) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	binaries, err := findBinaries(opts.Binaries)
	if err != nil {
		return nil, err
	}
	account, err := serverAccount()
	if err != nil {
		return nil, err
	}
	sweep(os.TempDir())
	dir, err := newDirectory(os.TempDir(), account)
	if err != nil {
		return nil, err
	}
	s := &Server{binaries: binaries, account: account, dir: dir}
	if err := s.create(ctx, opts); err != nil {
		return nil, errors.Join(err, dir.remove())
	}
	if err := s.Start(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// URL returns the connection string of the named database.
func (s *Server) URL(database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.User("postgres"),
		Host:     net.JoinHostPort("127.0.0.1", strconv.Itoa(s.dir.port)),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Start starts a stopped server, lets it recover from a crash if there was one,
// and returns when it accepts connections. A running server is left alone.
func (s *Server) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil && !s.process.exited() {
		return nil
	}
	p, err := startProcess(filepath.Join(s.binaries, "postgres"), []string{"-D", s.dir.data()}, s.dir, s.account)
	if err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	s.process = p
	if err := s.waitReady(ctx, p); err != nil {
		return fmt.Errorf("start PostgreSQL: %w\n%s", err, s.Log())
	}
	return nil
}

// Restart stops the server in order and starts it again.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.Stop(ctx); err != nil {
		return err
	}
	return s.Start(ctx)
}

// Stop shuts the server down in order: sessions end, everything is written.
func (s *Server) Stop(ctx context.Context) error { return s.end(ctx, syscall.SIGINT) }

// Crash stops the server at once and without a checkpoint, so that the next
// Start recovers. What a Durable server had committed is there again.
func (s *Server) Crash(ctx context.Context) error { return s.end(ctx, syscall.SIGQUIT) }

// Close stops the server and removes its data. The server cannot be used again.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return errors.Join(s.Crash(ctx), s.dir.remove())
}

// Log returns what the server has written to its log.
func (s *Server) Log() string {
	b, err := os.ReadFile(s.dir.log())
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func (s *Server) create(ctx context.Context, opts Options) error {
	initdb, err := startProcess(filepath.Join(s.binaries, "initdb"), []string{
		"-D", s.dir.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync", "--no-instructions",
		"--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en-US",
	}, s.dir, s.account)
	if err != nil {
		return fmt.Errorf("initdb: %w", err)
	}
	if err := cmp.Or(initdb.wait(ctx), initdb.err); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, s.Log())
	}
	return appendFile(filepath.Join(s.dir.data(), "postgresql.conf"), configuration(opts, s.dir))
}

// end sends sig, awaits the end of the process, and forgets it.
func (s *Server) end(ctx context.Context, sig syscall.Signal) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return nil
	}
	p := s.process
	s.process = nil
	if err := p.signal(sig); err != nil {
		return fmt.Errorf("stop PostgreSQL: %w", err)
	}
	if err := p.wait(ctx); err != nil {
		return fmt.Errorf("stop PostgreSQL, killed at last: %w", err)
	}
	return nil
}

func (s *Server) running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process != nil && !s.process.exited()
}

// waitReady returns when a session can be opened, or the process is gone.
func (s *Server) waitReady(ctx context.Context, p *process) error {
	for {
		conn, err := pgx.Connect(ctx, s.URL("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-p.done:
			return fmt.Errorf("server exited: %w", p.err)
		case <-ctx.Done():
			return err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// admin opens a session that may write even while the server is read-only.
func (s *Server) admin(ctx context.Context, do func(*pgx.Conn) error) error {
	config, err := pgx.ParseConfig(s.URL("postgres"))
	if err != nil {
		return err
	}
	config.RuntimeParams["default_transaction_read_only"] = "off"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	return errors.Join(do(conn), conn.Close(ctx))
}
