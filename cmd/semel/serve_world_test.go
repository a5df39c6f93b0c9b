package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/semel-dev/semel/sandbox"
	"github.com/semel-dev/semel/store/postgres/postgrestest"
)

// office is a directory with workflows, a database of runs and a provider.
type office struct {
	*testing.T
	dir, db string
	bank    *sandbox.Server
	url     string
	env     []string
}

// newOffice makes a directory whose connection bank leads to a provider.
func newOffice(t *testing.T, db string, o sandbox.Options) *office {
	t.Helper()
	f := &office{T: t, dir: t.TempDir(), db: db}
	f.bank, f.url = provider(t, o)
	write(t, f.dir, configName, "connections:\n  bank:\n    kind: http\n    base: "+f.url+"\n    key_header: Idempotency-Key\n    window: 24h\n    timeout: 10s\n    actions:\n      charge: {post: /v1/charges, required: [amount, reference]}\n      tell: {post: /v1/messages, protection: none}\n")
	return f
}

// save writes a workflow file with a name and a version.
func (f *office) save(name string, version int, rest string) {
	f.Helper()
	write(f.T, f.dir, name+".yaml", fmt.Sprintf("name: %s\nversion: %d\n%s", name, version, rest))
}

// served is a process that executes the workflows of an office.
type served struct {
	*office
	cmd         *exec.Cmd
	out, errors string // files
}

// start starts semel serve, or dev, and waits until it works.
func (f *office) start(command string, args ...string) *served {
	f.Helper()
	name := fmt.Sprintf("%s-%d", command, time.Now().UnixNano())
	s := &served{office: f, out: filepath.Join(f.TempDir(), name), errors: filepath.Join(f.TempDir(), name)}
	s.cmd, _, _ = prepareSemel(f.T, f.dir, f.db, append([]string{command, "."}, args...)...)
	s.cmd.Env = append(s.cmd.Env, f.env...)
	for path, to := range map[string]*io.Writer{s.out: &s.cmd.Stdout, s.errors: &s.cmd.Stderr} {
		file, err := os.Create(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() { _ = file.Close() })
		*to = file
	}
	if err := s.cmd.Start(); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.cmd.Process.Kill(); _ = s.cmd.Wait() })
	until(f.T, 30*time.Second, command+" works", func() bool {
		said := s.said()
		return strings.Contains(said, "runs are kept in") || strings.Contains(said, "in another terminal:")
	})
	return s
}

// said is what it wrote to stderr and stdout.
func (s *served) said() string {
	s.Helper()
	errs, err := os.ReadFile(s.errors)
	if err != nil {
		s.Fatal(err)
	}
	out, err := os.ReadFile(s.out)
	if err != nil {
		s.Fatal(err)
	}
	return string(errs) + string(out)
}

func (s *served) says(what string) {
	s.Helper()
	for end := time.Now().Add(20 * time.Second); !strings.Contains(s.said(), what); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			s.Fatalf("it does not say %q:\n%s", what, s.said())
		}
	}
}

// end sends a signal and returns the exit code.
func (s *served) end(sig syscall.Signal) int {
	s.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.Fatal(err)
	}
	return wait(s.T, s.cmd.Wait())
}

// address is where it listens: the first object of its stdout says so.
func (s *served) address() string {
	s.Helper()
	var started newsJSON
	until(s.T, 10*time.Second, "it tells its address", func() bool {
		out, _ := os.ReadFile(s.out)
		line, _, _ := strings.Cut(string(out), "\n")
		return json.Unmarshal([]byte(line), &started) == nil && started.Listen != ""
	})
	return "http://" + started.Listen
}

// post makes a call with a key and returns its status and its answer.
func (s *served) post(path, key, body string) (int, map[string]any) {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.address()+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", key)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer answer.Body.Close()
	var got map[string]any
	if err := json.NewDecoder(answer.Body).Decode(&got); err != nil {
		s.Fatal(err)
	}
	return answer.StatusCode, got
}

// semel runs another command in the office; it has to end with a code.
func (f *office) semel(want int, args ...string) string {
	f.Helper()
	code, stdout, stderr := runSemel(f.T, f.dir, f.db, args...)
	if code != want {
		f.Fatalf("semel %s ended with %d, want %d:\n%s%s", strings.Join(args, " "), code, want, stdout, stderr)
	}
	return stdout
}

// runs are all runs of a workflow.
func (f *office) runs(workflow string) []runJSON {
	f.Helper()
	var list struct{ Runs []runJSON }
	if err := json.Unmarshal([]byte(f.semel(0, "run", "list", "--workflow", workflow, "--output", "json")), &list); err != nil {
		f.Fatal(err)
	}
	return list.Runs
}

// reaches waits until a workflow has one run, in a state.
func (f *office) reaches(workflow, state string) runJSON {
	f.Helper()
	var last []runJSON
	until(f.T, 60*time.Second, workflow+" is "+state, func() bool {
		last = f.runs(workflow)
		return len(last) == 1 && string(last[0].State) == state
	})
	return last[0]
}

// ledger makes a database of the workflows' own, on the kind that the runs are
// kept in; its address is in a variable.
func (f *office) ledger(variable, schema string) *sql.DB {
	f.Helper()
	driver, url := "sqlite", "sqlite:"+filepath.Join(f.dir, "ledger.db")
	source := filepath.Join(f.dir, "ledger.db")
	if !strings.HasPrefix(f.db, "sqlite:") {
		driver, url = "pgx", postgrestest.Shared(f.T).Database(f.T)
		source = url
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = db.Close() })
	if _, err := db.ExecContext(f.Context(), schema); err != nil {
		f.Fatal(err)
	}
	f.env = append(f.env, variable+"="+url)
	return db
}
