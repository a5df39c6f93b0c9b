// Package examples_test runs every example against both stores and a world that
// counts what really happened in it, and kills it wherever it can be killed.
package examples_test

import (
	"database/sql"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/connection"
	httpdest "github.com/semel-dev/semel/destination/http"
	sqldest "github.com/semel-dev/semel/destination/sql"
	"github.com/semel-dev/semel/engine"
	"github.com/semel-dev/semel/sandbox"
	"github.com/semel-dev/semel/store/postgres"
	"github.com/semel-dev/semel/store/postgres/postgrestest"
	"github.com/semel-dev/semel/store/sqlite"
	"github.com/semel-dev/semel/workflowfile"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

// keeper is a store whose clock a test may move.
type keeper interface {
	semel.Store
	semel.Runs
	Shift(time.Duration)
}

// world is where an example runs: Semel's store, and a database of the user's
// on the same kind of server.
type world struct {
	*testing.T
	store   keeper
	user    *sql.DB
	address string // of the user's database
	// resolve finds destinations that no action of a workflow names; nil for
	// none.
	resolve engine.Resolver
}

func eachStore(t *testing.T, test func(w *world)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		store, err := sqlite.Open(t.Context(), filepath.Join(dir, "semel.db"), sqlite.Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		file := filepath.Join(dir, "user.db")
		test(newWorld(t, store, "sqlite", "file:"+file+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)", "sqlite://"+file))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		server := postgrestest.Shared(t)
		store, err := postgres.Open(t.Context(), server.Database(t), postgres.Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		address := server.Database(t)
		test(newWorld(t, store, "pgx", address, address))
	})
}

func newWorld(t *testing.T, store keeper, driver, dsn, address string) *world {
	t.Helper()
	user, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = user.Close() })
	return &world{T: t, store: store, user: user, address: address}
}

// exec changes the user's database.
func (w *world) exec(statement string, args ...any) {
	w.Helper()
	if _, err := w.user.ExecContext(w.Context(), statement, args...); err != nil {
		w.Fatal(err)
	}
}

// text reads one value of the user's database.
func (w *world) text(query string, args ...any) string {
	w.Helper()
	var s sql.NullString
	if err := w.user.QueryRowContext(w.Context(), query, args...).Scan(&s); err != nil {
		w.Fatal(err)
	}
	return s.String
}

// now is the store's time, for those in the world who live by it.
func (w *world) now() time.Time {
	now, err := w.store.Now(w.Context())
	if err != nil {
		w.Error(err)
	}
	return now
}

// serve makes a handler reachable.
func (w *world) serve(h http.Handler) (base string) {
	w.Helper()
	server := httptest.NewServer(h)
	w.Cleanup(server.Close)
	return server.URL
}

// provider is a sandbox that misbehaves as told.
func (w *world) provider(o sandbox.Options) (base string, provider *sandbox.Server) {
	w.Helper()
	provider, err := sandbox.New(o)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = provider.Close() })
	return w.serve(provider), provider
}

func (w *world) reach(name, base string) *httpdest.Destination {
	w.Helper()
	d, err := httpdest.New(httpdest.Options{Name: name, Base: base})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = d.Close(w.Context()) })
	return d
}

func (w *world) database(name string) *sqldest.Database {
	w.Helper()
	d, err := sqldest.New(w.address, sqldest.Options{Name: name})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = d.Close(w.Context()) })
	return d
}

// load reads a workflow file and the semel.yaml beside it, in which instead
// replaces pairs of words.
func load(t testing.TB, name string, instead ...string) (*workflowfile.Definition, *connection.Config) {
	t.Helper()
	beside := filepath.Join(filepath.Dir(name), "semel.yaml")
	text, err := os.ReadFile(beside)
	if err != nil {
		t.Fatal(err)
	}
	config, err := connection.Parse(beside, []byte(strings.NewReplacer(instead...).Replace(string(text))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = config.Close(t.Context()) })
	definition, problems, err := workflowfile.Load(name, config.Checks())
	if definition == nil {
		t.Fatal(problems, err)
	}
	return definition, config
}
