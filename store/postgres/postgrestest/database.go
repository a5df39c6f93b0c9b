package postgrestest

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// databases counts the databases of one server and remembers its templates.
type databases struct {
	mu        sync.Mutex
	count     int
	templates map[string]func() error // by name; builds the template once
}

// Create creates an empty database and returns its URL. The database lives as
// long as the server's data.
func (s *Server) Create(ctx context.Context) (string, error) {
	name := s.databases.next()
	return s.URL(name), s.copyDatabase(ctx, name, "template1")
}

// Database creates an empty database for one test and returns its URL. The
// database is dropped when the test ends, whoever is still connected.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	return s.databaseFor(t, "template1")
}

// Clone is Database with content: it copies the named template, which fill
// builds in an empty database the first time this server is asked for it. Fill
// must leave no connection open.
func (s *Server) Clone(t testing.TB, template string, fill func(ctx context.Context, url string) error) string {
	t.Helper()
	build := s.databases.template(template, func() error {
		if err := s.copyDatabase(context.Background(), template, "template1"); err != nil {
			return err
		}
		return fill(context.Background(), s.URL(template))
	})
	if err := build(); err != nil {
		t.Fatalf("template %s: %v", template, err)
	}
	return s.databaseFor(t, template)
}

func (s *Server) databaseFor(t testing.TB, template string) string {
	t.Helper()
	name := s.databases.next()
	if err := s.copyDatabase(t.Context(), name, template); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.dropDatabase(context.Background(), name); err != nil {
			t.Error(err)
		}
	})
	return s.URL(name)
}

func (s *Server) copyDatabase(ctx context.Context, name, template string) error {
	err := s.admin(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "create database "+identifier(name)+" template "+identifier(template))
		return err
	})
	if err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	return nil
}

// dropDatabase leaves the database of a stopped server to Close.
func (s *Server) dropDatabase(ctx context.Context, name string) error {
	if !s.running() {
		return nil
	}
	err := s.admin(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "drop database "+identifier(name)+" with (force)")
		return err
	})
	if err != nil {
		return fmt.Errorf("drop database %s: %w", name, err)
	}
	return nil
}

func (d *databases) next() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count++
	return "test" + strconv.Itoa(d.count)
}

// template returns the function that builds the named template at its first
// call and repeats the outcome at every other.
func (d *databases) template(name string, build func() error) func() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.templates == nil {
		d.templates = make(map[string]func() error)
	}
	if d.templates[name] == nil {
		d.templates[name] = sync.OnceValue(build)
	}
	return d.templates[name]
}

func identifier(name string) string { return pgx.Identifier{name}.Sanitize() }
