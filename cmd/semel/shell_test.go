package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

// reader is standard input that somebody else made.
type reader func([]byte) (int, error)

func (r reader) Read(b []byte) (int, error) { return r(b) }

func testShell(env map[string]string) (sh *shell, stdout, stderr *bytes.Buffer) {
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	return &shell{in: strings.NewReader(""), out: stdout, err: stderr, uid: 1000, getenv: func(name string) string { return env[name] }}, stdout, stderr
}

func TestPanicIsABugAndAsksForAReport(t *testing.T) {
	sh, stdout, stderr := testShell(nil)
	sh.in = reader(func([]byte) (int, error) { panic("boom") })
	db := "sqlite:" + filepath.Join(t.TempDir(), "semel.db")
	if code := run(sh, []string{"do", "--output", "json", "--db", db, "--key", "k", "--post", "http://127.0.0.1:1/", "--body", "-"}); code != 70 {
		t.Errorf("exit code %d, want 70", code)
	}
	if want := `{"error":"this is a bug in Semel: boom","exit":70}` + "\n"; stdout.String() != want {
		t.Errorf("stdout is %q, want %q", stdout, want)
	}
	if !strings.Contains(stderr.String(), "this is a bug in Semel, please report it") || !strings.Contains(stderr.String(), "boom") {
		t.Errorf("stderr is %q", stderr)
	}
}

// TestExitCodes: M35, one code for each thing a script has to tell apart.
func TestExitCodes(t *testing.T) {
	outcomes := map[semel.Status]int{
		semel.StatusCompleted: 0, semel.StatusFailed: 1, semel.StatusUnknown: 3, semel.StatusConflict: 4, semel.StatusExpired: 4,
		semel.StatusIncident: 4, semel.StatusUnsafe: 4, semel.StatusInProgress: 5,
	}
	for status, want := range outcomes {
		if got := codeOfOutcome(&semel.Outcome{Status: status}); got != want {
			t.Errorf("%s: exit code %d, want %d", status, got, want)
		}
	}
	asked := func(err error) error { return &commandError{&semel.NotAskedError{Key: "k", Err: err}} }
	failures := []struct {
		err  error
		want int
	}{
		{asked(fmt.Errorf("x: %w", semel.ErrUnavailable)), 6},
		{asked(semel.ErrUnconfirmed), 6},
		{asked(&semel.InputError{Field: "key", Problem: "is empty"}), 2},
		{&commandError{io.ErrUnexpectedEOF}, 6},
		{&commandError{usagef("x")}, 2},
		{&commandError{&engine.SettledError{}}, 4},
		{&commandError{&outcomeError{3}}, 3},
		{errors.New("unknown flag"), 2},
	}
	for _, f := range failures {
		if got := codeOf(f.err); got != f.want {
			t.Errorf("%v: exit code %d, want %d", f.err, got, f.want)
		}
	}
}

func TestDefaultDatabaseIsOneAbsolutePath(t *testing.T) {
	tests := map[string]struct {
		uid  int
		env  map[string]string
		want database
		err  string
	}{
		"root":            {0, map[string]string{"XDG_STATE_HOME": "/x"}, database{path: "/var/lib/semel/semel.db", implicit: true, stateDir: "/var/lib/semel"}, ""},
		"state home":      {1, map[string]string{"XDG_STATE_HOME": "/x"}, database{path: "/x/semel/semel.db", implicit: true, stateDir: "/x/semel"}, ""},
		"relative state":  {1, map[string]string{"XDG_STATE_HOME": "x", "HOME": "/h"}, database{path: "/h/.local/state/semel/semel.db", implicit: true, stateDir: "/h/.local/state/semel"}, ""},
		"no home":         {1, nil, database{}, "set HOME or XDG_STATE_HOME"},
		"by environment":  {1, map[string]string{"SEMEL_DB": "sqlite:/d/a.db"}, database{path: "/d/a.db"}, ""},
		"three slashes":   {1, map[string]string{"SEMEL_DB": "sqlite:///d/a.db"}, database{path: "/d/a.db"}, ""},
		"PostgreSQL":      {0, map[string]string{"SEMEL_DB": "postgres://u@h/d"}, database{url: "postgres://u@h/d", stateDir: "/var/lib/semel"}, ""},
		"unknown":         {0, map[string]string{"SEMEL_DB": "mysql://u:geheim@h/d"}, database{}, `SEMEL_DB "mysql://u@h/d" is unknown`},
		"unreadable URL":  {0, map[string]string{"SEMEL_DB": "postgres://u:geheim@h:port/d"}, database{}, "is no URL"},
		"path by itself":  {0, map[string]string{"SEMEL_DB": "/d/a.db"}, database{}, "for a file: sqlite:/d/a.db"},
		"directory":       {0, map[string]string{"SEMEL_DB": "sqlite:/d/"}, database{}, "names no file"},
		"empty is absent": {0, map[string]string{"SEMEL_DB": ""}, database{path: "/var/lib/semel/semel.db", implicit: true, stateDir: "/var/lib/semel"}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			sh, _, _ := testShell(test.env)
			sh.uid = test.uid
			got, err := sh.database()
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) || strings.Contains(err.Error(), "geheim") || codeOf(&commandError{err}) != exitUsage {
					t.Errorf("error %v, want one with %q", err, test.err)
				}
				return
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(database{})); err != nil || diff != "" {
				t.Errorf("database (-want +got), error %v:\n%s", err, diff)
			}
		})
	}
}

// TestEachDatabaseHasItsOwnSpool: evidence that no store could take fits one
// database only.
func TestEachDatabaseHasItsOwnSpool(t *testing.T) {
	dirs := map[string]string{}
	for _, d := range []database{
		{path: "/d/semel.db"},
		{path: "/d/other.db"},
		{path: "/d/semel"},
		{path: "/e/semel.db"},
		{path: "/d/semel.sqlite"},
		{url: "postgres://u@h/d", stateDir: "/s"},
		{url: "postgres://u@h/e", stateDir: "/s"},
		{url: "postgres://u@h:5433/d", stateDir: "/s"},
		{url: "postgres://u@i/d", stateDir: "/s"},
	} {
		dir := d.spoolDir()
		if other, taken := dirs[dir]; taken {
			t.Errorf("%s and %s share %s", other, d, dir)
		}
		dirs[dir] = d.String()
	}
	if got := (database{path: "/d/semel.db"}).spoolDir(); got != "/d/semel.db.spool" {
		t.Errorf("the spool is %s, want /d/semel.db.spool", got)
	}
	a, b := database{url: "postgres://u:x@h/d", stateDir: "/s"}, database{url: "postgres://u:y@h:5432/d", stateDir: "/s"}
	if a.spoolDir() != b.spoolDir() {
		t.Error("another password is another spool")
	}
}

// TestEveryCommandTeaches: each command explains itself and shows an example.
func TestEveryCommandTeaches(t *testing.T) {
	sh, _, _ := testShell(nil)
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		if !cmd.Hidden && (cmd.Short == "" || cmd.CommandPath() != "semel" && cmd.Example == "") {
			t.Errorf("%s has no short text or no example", cmd.CommandPath())
		}
		for _, child := range cmd.Commands() {
			visit(child)
		}
	}
	visit(newRoot(sh))
}

func TestHelpTeachesStatesAndExitCodes(t *testing.T) {
	for _, args := range [][]string{nil, {"help"}, {"--help"}} {
		sh, stdout, _ := testShell(nil)
		if code := run(sh, args); code != 0 {
			t.Errorf("semel %v: exit code %d", args, code)
		}
		for _, want := range []string{"in progress", "completed", "failed, nothing happened", "outcome unknown", "6  Semel itself could not work", "70", "semel do --scope payments"} {
			if !strings.Contains(stdout.String(), want) {
				t.Errorf("semel %v does not mention %q", args, want)
			}
		}
	}
}

func TestColourOnlyForPeople(t *testing.T) {
	sh, _, _ := testShell(nil)
	if got := sh.painted(semel.Unknown, "x"); got != "x" {
		t.Errorf("painted %q without colour", got)
	}
	sh.colour = true
	if got := sh.painted(semel.Unknown, "x"); !strings.HasPrefix(got, "\x1b[") || !strings.HasSuffix(got, "\x1b[0m") {
		t.Errorf("painted %q", got)
	}
}

func TestBodiesKeepTheirDigits(t *testing.T) {
	tests := []struct {
		body, value, encoding string
		printed               bool
	}{
		{`{"n":9007199254740993,"f":1.50,"e":1E2}`, `{"n":9007199254740993,"f":1.50,"e":1E2}`, "", false},
		{"42\n", "42", "", false},
		{"42\n", `"42\n"`, "", true},
		{"[1.0]\n", "[1.0]", "", true},
		{"<a>&", `"<a>&"`, "", false},
		{"\xff", `"/w=="`, "base64", false},
		{" ", `" "`, "", true},
		{"", "", "", false},
	}
	for _, test := range tests {
		value, encoding := embed([]byte(test.body), test.printed)
		if string(value) != test.value || encoding != test.encoding {
			t.Errorf("embed(%q, %v) = %s, %q, want %s, %q", test.body, test.printed, value, encoding, test.value, test.encoding)
		}
	}
}

// FuzzVisible: nothing that a stranger wrote can steer a terminal or break a
// line of a table.
func FuzzVisible(f *testing.F) {
	f.Add("k\x1b[31m\u202e\u2028\xff\u0085\r\n\t")
	f.Fuzz(func(t *testing.T, text string) {
		for _, r := range oneLine(text) {
			if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029' {
				t.Fatalf("oneLine(%q) lets %U through", text, r)
			}
		}
	})
}

// FuzzEmbed: whatever an answer holds, the printed object is one line of valid
// JSON.
func FuzzEmbed(f *testing.F) {
	f.Add([]byte(`{"a":1}`), true)
	f.Add([]byte("\xff"), false)
	f.Fuzz(func(t *testing.T, body []byte, printed bool) {
		out := encode(describeResult(&semel.Result{Body: body}, printed))
		if !json.Valid(out) || bytes.ContainsRune(out, '\n') {
			t.Fatalf("%q becomes %s", body, out)
		}
	})
}

// TestStartSaysThatItWaits: whoever ends a long wait knows that the run is on
// record, and which it is.
func TestStartSaysThatItWaits(t *testing.T) {
	sh, _, stderr := testShell(nil)
	sh.terminal = true
	db := "sqlite:" + filepath.Join(t.TempDir(), "semel.db")
	if code := run(sh, []string{"run", "start", "order", "--key", "4417", "--db", db, "--create", "--wait", "10ms"}); code != exitInProgress {
		t.Errorf("exit code %d, want %d: %s", code, exitInProgress, stderr)
	}
	if said := "is on record; waiting up to 10ms until it has ended or needs a person\n"; !strings.Contains(stderr.String(), said) {
		t.Errorf("stderr is %q, and does not say %q", stderr, said)
	}
}
