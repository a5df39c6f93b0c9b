package main

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel/store/postgres/postgrestest"
)

// TestMuteDatabaseIsGivenUp: what accepts connections and says nothing holds no
// command for ever, and nothing was sent.
func TestMuteDatabaseIsGivenUp(t *testing.T) {
	t.Parallel()
	mute, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mute.Close() })
	db := "postgres://u@" + mute.Addr().String() + "/d"
	for name, args := range map[string][]string{
		"do":      {"do", "--key", "k", "--", "touch", "ran"},
		"create":  {"do", "--create", "--key", "k", "--", "touch", "ran"},
		"list":    {"op", "list"},
		"migrate": {"migrate", "status"},
		"accept":  {"store", "accept", "--whole-until", "2026-01-01T00:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			code, _, stderr := runSemel(t, dir, db, args...)
			if code != exitUnavailable {
				t.Errorf("ended with %d, want %d: %s", code, exitUnavailable, stderr)
			}
			if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
				t.Error("the program was started")
			}
		})
	}
}

// TestFrozenDatabaseIsGivenUp: a database that stops answering while the program
// runs leaves the outcome unknown, and do ends.
func TestFrozenDatabaseIsGivenUp(t *testing.T) {
	t.Run("left alone", func(t *testing.T) { t.Parallel(); freeze(t, false) })
	t.Run("signalled", func(t *testing.T) { t.Parallel(); freeze(t, true) })
}

func freeze(t *testing.T, signalled bool) {
	t.Helper()
	ctx, server, dir := context.Background(), postgrestest.Start(t, postgrestest.Options{}), t.TempDir()
	db, err := server.Create(ctx)
	if err != nil {
		t.Fatal(err)
	}
	cmd, stdout, stderr := prepareSemel(t, dir, db, "do", "--create", "--key", "k", "--output", "json", "--", "sh", "-c",
		"echo $$ >pid; touch started; while [ ! -e go ]; do sleep 0.05; done")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, 30*time.Second, "the program runs", func() bool { _, err := os.Stat(filepath.Join(dir, "started")); return err == nil })
	for _, pid := range backends(t, db) {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	}
	write(t, dir, "go", "")
	want := "the store did not take it"
	if signalled {
		pid, err := os.ReadFile(filepath.Join(dir, "pid"))
		if err != nil {
			t.Fatal(err)
		}
		program, err := strconv.Atoi(strings.TrimSpace(string(pid)))
		if err != nil {
			t.Fatal(err)
		}
		until(t, 30*time.Second, "the program has ended", func() bool { return errors.Is(syscall.Kill(program, 0), syscall.ESRCH) })
		time.Sleep(time.Second) // its outcome is being recorded
		_ = cmd.Process.Signal(syscall.SIGTERM)
		want = "the database does not tell how the attempt ended"
	}
	code := wait(t, cmd.Wait())
	if code != exitUnknown || !strings.Contains(stdout.String(), want) {
		t.Errorf("ended with %d, want %d: %s%s", code, exitUnknown, stdout, stderr)
	}
}

// backends are the processes that serve semel in a database.
func backends(t *testing.T, db string) (pids []int) {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), db)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	rows, err := conn.Query(context.Background(), "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()")
	if err != nil {
		t.Fatal(err)
	}
	pids, err = pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil || len(pids) == 0 {
		t.Fatalf("no backends: %v", err)
	}
	return pids
}

func TestConnectTimeoutIsAddedOnce(t *testing.T) {
	none := func(string) string { return "" }
	for name, want := range map[string]string{
		"postgres://u@h/d":                   "postgres://u@h/d?connect_timeout=10",
		"postgres://u@h/d?sslmode=disable":   "postgres://u@h/d?sslmode=disable&connect_timeout=10",
		"postgres://u@h/d?connect_timeout=3": "postgres://u@h/d?connect_timeout=3",
	} {
		if got := impatient(name, none); got != want {
			t.Errorf("impatient(%q) = %q, want %q", name, got, want)
		}
	}
	if got := impatient("postgres://u@h/d", func(string) string { return "3" }); got != "postgres://u@h/d" {
		t.Errorf("PGCONNECT_TIMEOUT gives way to %q", got)
	}
}
