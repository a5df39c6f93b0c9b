package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/semel-dev/semel/sandbox"
)

// runSemel runs semel in dir and returns its exit code and output.
func runSemel(t *testing.T, dir, db string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd, out, errs := prepareSemel(t, dir, db, args...)
	return wait(t, cmd.Run()), out.String(), errs.String()
}

func prepareSemel(t *testing.T, dir, db string, args ...string) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute) // a hang is a failure
	t.Cleanup(cancel)
	cmd = exec.CommandContext(ctx, "semel", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "SEMEL_DB="+db, "XDG_STATE_HOME="+dir, "SEMEL_SCOPE=", "SEMEL_CONFIG=")
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return cmd, stdout, stderr
}

// wait is the exit code of a process that ended with err; -1 if a signal ended
// it.
func wait(t *testing.T, err error) int {
	t.Helper()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0
}

func provider(t *testing.T, o sandbox.Options) (*sandbox.Server, string) {
	t.Helper()
	p, err := sandbox.New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(p)
	t.Cleanup(func() { _ = p.Close(); server.Close() })
	return p, server.URL
}

func until(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

// unknown lists the keys of the operations that are unknown.
func unknown(t *testing.T, dir, db string) (found []string) {
	t.Helper()
	code, stdout, stderr := runSemel(t, dir, db, "op", "list", "--state", "unknown", "--output", "json")
	var list struct{ Operations []struct{ Key string } }
	if err := json.Unmarshal([]byte(stdout), &list); code != 0 || err != nil {
		t.Fatalf("op list ended with %d: %v\n%s%s", code, err, stdout, stderr)
	}
	for _, o := range list.Operations {
		found = append(found, o.Key)
	}
	return found
}

// TestKilledInMidSendIsUnknownAndNeverSentAgain: M1, M13, M15. The claim of a
// do that is killed while it waits for its answer is unknown within 15 s, and
// with protection none no later do sends it.
func TestKilledInMidSendIsUnknownAndNeverSentAgain(t *testing.T) {
	stores(t, func(t *testing.T, db string) {
		dir := t.TempDir()
		bank, url := provider(t, sandbox.Options{Delay: 8 * time.Second})
		post := []string{"do", "--create", "--key", "receipt", "--post", url + "/v1/messages?fault=slow", "--timeout", "50s", "--body", "body.json"}
		write(t, dir, "body.json", `{"reference":"receipt"}`)
		cmd, _, stderr := prepareSemel(t, dir, db, post...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		until(t, 10*time.Second, "the message is at the provider", func() bool { return bank.Count(sandbox.Messages, "receipt") == 1 })
		if code, _, _ := runSemel(t, dir, db, post...); code != exitInProgress {
			t.Errorf("a second do while the first runs ended with %d, want %d", code, exitInProgress)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		killed := time.Now()
		if code := wait(t, cmd.Wait()); code != -1 {
			t.Fatalf("it ended with %d before it was killed: %s", code, stderr)
		}
		until(t, 15*time.Second, "op list --state unknown shows it", func() bool { return fmt.Sprint(unknown(t, dir, db)) == "[receipt]" })
		t.Logf("unknown %v after SIGKILL", time.Since(killed).Round(time.Millisecond))
		for range 3 {
			if code, _, stderr := runSemel(t, dir, db, post...); code != exitUnknown || !strings.Contains(stderr, "a person must find out") {
				t.Errorf("do again ended with %d, want %d: %s", code, exitUnknown, stderr)
			}
		}
		if n := bank.Count(sandbox.Messages, "receipt"); n != 1 || len(bank.Requests()) != 1 {
			t.Errorf("the provider counts %d messages of %d requests, want 1 of 1", n, len(bank.Requests()))
		}
	})
}

// TestInterruptedDoRecordsThatItIsUnknown: Ctrl-C stops the waiting, and what is
// known is recorded (M15).
func TestInterruptedDoRecordsThatItIsUnknown(t *testing.T) {
	stores(t, func(t *testing.T, db string) {
		dir := t.TempDir()
		arrived, release := make(chan struct{}), make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			close(arrived)
			<-release
		}))
		defer server.Close()
		defer close(release)
		cmd, stdout, stderr := prepareSemel(t, dir, db, "do", "--create", "--key", "charge", "--protection", "keyed", "--window", "1h",
			"--post", server.URL+"/charges", "--timeout", "5m", "--body", write(t, dir, "body.json", `{"amount":1}`), "--output", "json")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		<-arrived
		_ = cmd.Process.Signal(os.Interrupt)
		if code := wait(t, cmd.Wait()); code != exitUnknown || !strings.Contains(stdout.String(), `"state":"unknown"`) {
			t.Errorf("ended with %d, want %d:\n%s%s", code, exitUnknown, stdout, stderr)
		}
		if said := stderr.String(); !strings.Contains(said, "Safe to send again under the same key") || strings.Contains(said, "goes on") || strings.Contains(stdout.String(), "goes on") {
			t.Errorf("the attempt is over, but it says:\n%s%s", stdout, stderr)
		}
		if _, stdout, _ := runSemel(t, dir, db, "op", "show", "--key", "charge", "--output", "json"); !strings.Contains(stdout, `"outcome":"lost"`) {
			t.Errorf("the lost attempt is not on record: %s", stdout)
		}
	})
}

// TestSignalsReachTheProgram: the program decides how it ends, and its end is
// the outcome.
func TestSignalsReachTheProgram(t *testing.T) {
	stores(t, func(t *testing.T, db string) {
		for _, test := range []struct {
			key, script string
			want        int
		}{
			{"clean", `trap 'echo bye; exit 0' TERM; touch ready-clean; while :; do sleep 0.05; done`, exitCompleted},
			{"undone", `trap 'exit 75' TERM; touch ready-undone; while :; do sleep 0.05; done`, exitFailed},
			{"killed", `touch ready-killed; sleep 30`, exitUnknown},
		} {
			dir := t.TempDir()
			cmd, stdout, stderr := prepareSemel(t, dir, db, "do", "--create", "--key", test.key, "--no-effect-exit", "75", "--", "sh", "-c", test.script)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			until(t, 10*time.Second, "the program runs", func() bool { _, err := os.Stat(filepath.Join(dir, "ready-"+test.key)); return err == nil })
			_ = cmd.Process.Signal(syscall.SIGTERM)
			if code := wait(t, cmd.Wait()); code != test.want {
				t.Errorf("%s: ended with %d, want %d:\n%s%s", test.key, code, test.want, stdout, stderr)
			}
		}
	})
}

// TestManyAtOnceRunItOnce: M14. Of 12 processes that create the database and ask
// at once, one runs the program; those that wait get its output.
func TestManyAtOnceRunItOnce(t *testing.T) {
	stores(t, func(t *testing.T, db string) {
		dir := t.TempDir()
		var group sync.WaitGroup
		codes := make([]int, 12)
		for i := range codes {
			group.Go(func() {
				args := []string{"do", "--create", "--key", "once", "--", "sh", "-c", "echo ran; echo x >>runs; sleep 2"}
				if i%2 == 0 {
					args = append(args[:2:2], append([]string{"--wait", "30s"}, args[2:]...)...)
				}
				code, stdout, stderr := runSemel(t, dir, db, args...)
				codes[i] = code
				if code == exitCompleted && stdout != "ran\n" || code != exitCompleted && (code != exitInProgress || i%2 == 0) {
					t.Errorf("process %d ended with %d: %s%s", i, code, stdout, stderr)
				}
			})
		}
		group.Wait()
		if runs, _ := os.ReadFile(filepath.Join(dir, "runs")); string(runs) != "x\n" {
			t.Errorf("the program ran %d times, want once (exit codes %v)", bytes.Count(runs, []byte("x")), codes)
		}
	})
}

// TestReaderThatWentAway: a closed pipe on stdout ends neither the program nor
// the recording of its outcome.
func TestReaderThatWentAway(t *testing.T) {
	stores(t, func(t *testing.T, db string) {
		dir := t.TempDir()
		script := `semel do --create --key long -- sh -c 'i=0; while [ $i -lt 2000 ]; do echo 0123456789012345678901234567890123456789; i=$((i+1)); done; touch done' | head -1; echo ${PIPESTATUS[0]}`
		cmd := exec.CommandContext(context.Background(), "bash", "-c", script)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "SEMEL_DB="+db, "XDG_STATE_HOME="+dir)
		out, err := cmd.Output()
		if err != nil || !strings.HasSuffix(string(out), "\n0\n") {
			t.Errorf("ended with %q, %v, want exit code 0", out, err)
		}
		if code, stdout, _ := runSemel(t, dir, db, "op", "show", "--key", "long"); code != 0 || !strings.HasPrefix(stdout, "Completed") {
			t.Errorf("op show says %q", stdout)
		}
	})
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
