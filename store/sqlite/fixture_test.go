package sqlite_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/store/sqlite"
)

func TestMain(m *testing.M) {
	if part := os.Getenv("SEMEL_SQLITE_TEST"); part != "" {
		os.Exit(processes[part](os.Getenv("SEMEL_SQLITE_PATH")))
	}
	goleak.VerifyTestMain(m)
}

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "semel.db") }

func create(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	return openStore(t, path, sqlite.Options{Create: true})
}

// raw is a connection of another program.
func raw(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func execRaw(t testing.TB, db *sql.DB, text string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), text, args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

func newOperation(key string) semel.Operation {
	var random [10]byte
	_, _ = rand.Read(random[:])
	return semel.Operation{Identity: semel.Identity{
		ID: semel.NewID(time.Now(), random), Scope: "test", Key: semel.Key(key),
		Request: semel.Request{Kind: "http", Body: []byte("body")}, Contract: semel.Contract{Protection: semel.Unprotected},
	}}
}

func claimEvent() semel.Event {
	return semel.Event{Kind: semel.EvClaimed, Attempt: 1, At: time.Now(), By: "test", Lease: time.Minute, SendWithin: time.Second}
}

func change(t testing.TB, o semel.Operation, ev semel.Event) semel.Change {
	t.Helper()
	ev.At = time.Now()
	c, err := o.Change(ev, newOperation("").ID)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func claim(ctx context.Context, s *sqlite.Store, key string) (semel.Operation, error) {
	o := newOperation(key)
	c, err := o.Change(claimEvent(), o.ID)
	if err != nil {
		return o, err
	}
	return s.Commit(ctx, c)
}

func mustClaim(t testing.TB, s *sqlite.Store, key string) semel.Operation {
	t.Helper()
	o, err := claim(t.Context(), s, key)
	if err != nil {
		t.Fatalf("claim %s: %v", key, err)
	}
	return o
}

// wantError checks that err says all of these and wraps is.
func wantError(t testing.TB, err, is error, says ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one that says %q", says)
	}
	if is != nil && !errors.Is(err, is) {
		t.Errorf("error %q is not %q", err, is)
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("error %q does not say %q", err, s)
		}
	}
}
