package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/semel-dev/semel/sandbox"
	"github.com/semel-dev/semel/store/postgres/postgrestest"
)

var update = flag.Bool("update", false, "write the expected output of scripts anew")

// TestMain makes this test binary the program semel, under that name, for
// tests that need processes of their own.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "semel" {
		main()
	}
	dir, err := os.MkdirTemp("", "semel-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "semel")); err != nil {
		panic(err)
	}
	os.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	postgrestest.Main(m)
}

// stores makes a database for one test on each store, and returns its name for
// --db. It does not exist yet.
func stores(t *testing.T, test func(t *testing.T, db string)) {
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); test(t, "sqlite:"+filepath.Join(t.TempDir(), "semel.db")) })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); test(t, postgrestest.Shared(t).Database(t)) })
}

// TestScripts runs each script of testdata/script on both stores.
func TestScripts(t *testing.T) {
	for _, store := range []string{"sqlite", "postgres"} {
		t.Run(store, func(t *testing.T) {
			newDatabase := func(dir string) (string, error) { return "sqlite:" + filepath.Join(dir, "semel.db"), nil }
			if store == "postgres" {
				server := postgrestest.Start(t, postgrestest.Options{Durable: true}) // a careless one earns warnings
				newDatabase = func(string) (string, error) { return server.Create(context.Background()) }
			}
			testscript.Run(t, testscript.Params{
				Dir: filepath.Join("testdata", "script"), UpdateScripts: *update, RequireUniqueNames: true,
				Setup:     func(env *testscript.Env) error { return prepare(env, newDatabase) },
				Condition: func(c string) (bool, error) { return c == store, nil },
				Cmds:      map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "ledger": ledger, "normal": normal, "worker": worker},
			})
		})
	}
}

// prepare gives a script a database of its own (SEMEL_DB, not made yet) and a
// provider (PROVIDER).
func prepare(env *testscript.Env, newDatabase func(dir string) (string, error)) error {
	provider, err := sandbox.New(sandbox.Options{VisibleAfter: -1})
	if err != nil {
		return err
	}
	server := httptest.NewServer(provider)
	env.Defer(func() { _ = provider.Close(); server.Close() })
	env.Values["provider"] = provider
	db, err := newDatabase(env.WorkDir)
	if err != nil {
		return err
	}
	env.Setenv("SEMEL_DB", db)
	env.Setenv("PROVIDER", server.URL)
	examples, err := filepath.Abs(filepath.Join("..", "..", "examples"))
	if err != nil {
		return err
	}
	env.Setenv("EXAMPLES", examples)
	env.Setenv("EVIL_SCOPE", "a\nb")
	env.Setenv("EVIL_KEY", "k\x1b[31m\u202e")
	env.Setenv("HOME", env.WorkDir)
	env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, "state"))
	return nil
}

// exits CODE PROGRAM ARG... runs a program that must end with CODE.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE program args...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// ledger RESOURCE REFERENCE COUNT compares the effects at the provider.
func ledger(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: ledger RESOURCE REFERENCE COUNT")
	}
	got := ts.Value("provider").(*sandbox.Server).Count(sandbox.Resource(args[0]), args[1])
	if fmt.Sprint(got) != args[2] {
		ts.Fatalf("the provider counts %d %s for %s, want %s", got, args[0], args[1], args[2])
	}
}

var (
	ids    = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)
	keys   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)
	times  = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	clocks = regexp.MustCompile(`by \d\d:\d\d:\d\d`)
	ports  = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	hosts  = regexp.MustCompile(`(?m)  \S+(@|/)\S+  +`)
	print1 = regexp.MustCompile(`"fingerprint":"[^"]*"`)
	refs   = regexp.MustCompile(`(ch|tr|msg)_[0-9a-f]{20}`)
	sizes  = regexp.MustCompile(`\d+ bytes`)
	agos   = regexp.MustCompile(`\d+s ago`)
	ins    = regexp.MustCompile(`in [0-9smhd]+\)`)
	by     = regexp.MustCompile(`, by \S+@\S+`)
	afters = regexp.MustCompile(`after \d+s`)
	bys    = regexp.MustCompile(`"by":"[^"]*"`)
)

// normal FROM TO writes a file or stdout, stderr without what differs from run
// to run: identifiers, times, ports and hosts.
func normal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: normal FROM TO")
	}
	text := ts.ReadFile(args[0])
	text = ids.ReplaceAllString(text, "ID")
	text = keys.ReplaceAllString(text, "DESTINATION-KEY")
	text = times.ReplaceAllString(text, "TIME")
	text = clocks.ReplaceAllString(text, "by CLOCK")
	text = ports.ReplaceAllString(text, "PROVIDER")
	text = hosts.ReplaceAllString(text, "  WHO  ")
	text = print1.ReplaceAllString(text, `"fingerprint":"FINGERPRINT"`)
	text = bys.ReplaceAllString(text, `"by":"WHO"`)
	text = refs.ReplaceAllString(text, "${1}_REFERENCE")
	text = ins.ReplaceAllString(text, "in TIME)")
	text = by.ReplaceAllString(text, ", by WHO")
	text = afters.ReplaceAllString(text, "after N s")
	text = agos.ReplaceAllString(text, "N s ago")
	text = sizes.ReplaceAllString(text, "N bytes")
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(strings.Join(lines, "\n")), 0o600))
}
