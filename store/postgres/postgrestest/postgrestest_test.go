package postgrestest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semel-dev/semel/store/postgres/postgrestest"
)

// A test binary started with this variable is a process of its own that starts
// the shared server, says its URL, and then hangs.
const hang = "POSTGRESTEST_HANG"

func TestMain(m *testing.M) { postgrestest.Main(m) }

func TestEveryTestHasItsOwnDatabase(t *testing.T) {
	server := postgrestest.Shared(t)
	for _, name := range []string{"one", "two"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := connect(t, server.Database(t))
			run(t, conn, "create table here (n int)")
		})
	}
}

func TestDatabaseIsGoneAfterItsTest(t *testing.T) {
	server := postgrestest.Shared(t)
	var url string
	t.Run("uses one and leaves a session open", func(t *testing.T) {
		url = server.Database(t)
		if _, err := pgx.Connect(t.Context(), url); err != nil {
			t.Fatal(err)
		}
	})
	_, err := pgx.Connect(t.Context(), url)
	if got, want := sqlstate(err), "3D000"; got != want {
		t.Errorf("connect to the database of a finished test: SQLSTATE %q, want %q (%v)", got, want, err)
	}
}

func TestCloneFillsItsTemplateOnce(t *testing.T) {
	server := postgrestest.Shared(t)
	var mu sync.Mutex
	filled := 0
	fill := func(ctx context.Context, url string) error {
		mu.Lock()
		defer mu.Unlock()
		filled++
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, "create table filled as select 1 as n")
		return errors.Join(err, conn.Close(ctx))
	}
	t.Run("clones", func(t *testing.T) {
		for range 3 {
			t.Run("clone", func(t *testing.T) {
				t.Parallel()
				conn := connect(t, server.Clone(t, "filled", fill))
				run(t, conn, "insert into filled values (2)")
			})
		}
	})
	if filled != 1 {
		t.Errorf("the template was filled %d times, want 1", filled)
	}
}

func TestServerIsNotTheFriendliest(t *testing.T) {
	conn := connect(t, postgrestest.Shared(t).Database(t))
	var sorted bool
	var zone string
	if err := conn.QueryRow(t.Context(), "select 'a' < 'B', current_setting('timezone')").Scan(&sorted, &zone); err != nil {
		t.Fatal(err)
	}
	if !sorted {
		t.Error("text sorts by its bytes, want the rules of a language")
	}
	if zone == "UTC" {
		t.Error("the zone is UTC, want another")
	}
}

func TestCommittedRowsSurvive(t *testing.T) {
	server := postgrestest.Start(t, postgrestest.Options{Durable: true, MaxConnections: 17})
	url := server.Database(t)
	run(t, connect(t, url), "create table kept as select 1 as n")

	interruptions := []struct {
		name string
		do   func(context.Context) error
	}{
		{"restart", server.Restart},
		{"crash", server.Crash},
		{"stop", server.Stop},
	}
	for _, interruption := range interruptions {
		before := connect(t, url)
		if err := interruption.do(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := before.Ping(t.Context()); err == nil {
			t.Errorf("a session outlived a %s", interruption.name)
		}
		if err := server.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		var kept int
		if err := connect(t, url).QueryRow(t.Context(), "select n from kept").Scan(&kept); err != nil || kept != 1 {
			t.Errorf("after a %s: got %d, %v; want 1", interruption.name, kept, err)
		}
	}
	if !strings.Contains(server.Log(), "database system was not properly shut down") {
		t.Errorf("no recovery in the log: the crash was an orderly stop\n%s", server.Log())
	}

	settings := map[string]string{"fsync": "on", "full_page_writes": "on", "max_connections": "17"}
	conn := connect(t, url)
	for name, want := range settings {
		if got := setting(t, conn, name); got != want {
			t.Errorf("%s = %s, want %s", name, got, want)
		}
	}
}

func TestReadOnlyServerRefusesWrites(t *testing.T) {
	server := postgrestest.Start(t, postgrestest.Options{})
	conn := connect(t, server.Database(t))
	run(t, conn, "create table rows (n int)")

	if err := server.SetReadOnly(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := conn.Exec(t.Context(), "insert into rows values (1)")
	if got, want := sqlstate(err), "25006"; got != want {
		t.Errorf("insert on a read-only server: SQLSTATE %q, want %q (%v)", got, want, err)
	}
	if err := server.SetWritable(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(t, conn, "insert into rows values (1)")
}

// TestServerDiesWithItsProcess kills a second test process, which also shows
// that two of them can run at a time, and that the next one cleans up.
func TestServerDiesWithItsProcess(t *testing.T) {
	if os.Getenv(hang) != "" {
		url := postgrestest.Shared(t).URL("postgres")
		if _, err := os.Stdout.WriteString(url + "\n"); err != nil {
			t.Fatal(err)
		}
		<-t.Context().Done()
	}
	temp := openTemp(t)
	other := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestServerDiesWithItsProcess$")
	other.Env = append(os.Environ(), hang+"=1", "TMPDIR="+temp)
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 200)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	url := strings.TrimSpace(string(line[:n]))
	connect(t, url)
	if shared := postgrestest.Shared(t).URL("postgres"); shared == url {
		t.Fatalf("two processes share the server at %s", url)
	}

	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := other.Wait(); err == nil {
		t.Fatal("the killed process ended well")
	}
	waitUntil(t, "the server of a killed process stops", func() bool {
		conn, err := pgx.Connect(t.Context(), url)
		if err == nil {
			_ = conn.Close(t.Context()) // still dying
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	})
	t.Setenv("TMPDIR", temp)
	server := postgrestest.Start(t, postgrestest.Options{})
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(temp, "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestMissingBinariesAreAnError(t *testing.T) {
	if _, err := postgrestest.Run(t.Context(), postgrestest.Options{Binaries: t.TempDir()}); err == nil {
		t.Error("a server started from an empty directory")
	}
}

func TestServerThatCannotStartSaysWhy(t *testing.T) {
	_, err := postgrestest.Run(t.Context(), postgrestest.Options{Settings: map[string]string{"shared_buffers": "much"}})
	if err == nil || !strings.Contains(err.Error(), `invalid value for parameter "shared_buffers"`) {
		t.Errorf("got %v, want the server's own words", err)
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // its server may be gone
	return conn
}

func run(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func setting(t *testing.T, conn *pgx.Conn, name string) (value string) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), "select current_setting($1)", name).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func sqlstate(err error) string {
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pgErr.Code
	}
	return ""
}

// openTemp is a temporary directory whose parents any user may enter.
func openTemp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "postgrestest-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func waitUntil(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 10 s", what)
		}
	}
}
