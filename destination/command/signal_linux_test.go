package command_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/destination/command"
)

// TestMain is also a small `semel do`: it runs one script and prints its
// evidence.
func TestMain(m *testing.M) {
	script := os.Getenv("COMMAND_DO")
	if script == "" {
		os.Exit(m.Run())
	}
	if os.Getenv("COMMAND_NOHUP") != "" {
		signal.Ignore(syscall.SIGHUP)
	}
	d, err := command.New(command.Options{
		Stdout: os.Stdout, NoEffectExit: []int{3}, Forward: []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP},
	})
	if err != nil {
		panic(err)
	}
	s := send(sh(script))
	s.Begin = func() error {
		if os.Getenv("COMMAND_EARLY") != "" {
			_ = syscall.Kill(os.Getpid(), syscall.SIGINT)
			time.Sleep(50 * time.Millisecond)
		}
		return nil
	}
	ev := d.Send(context.Background(), s)
	fmt.Fprintf(os.Stderr, "%s closed=%v %s\n", ev.Kind, ev.Closed, ev.Reason)
}

type do struct {
	*exec.Cmd
	out io.ReadCloser
	err *bufio.Reader
}

func startDo(t *testing.T, script string, env ...string) do {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), "COMMAND_DO="+script), env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return do{Cmd: cmd, out: out, err: bufio.NewReader(errs)}
}

// evidence reads what the process says at its end.
func (d do) evidence(t *testing.T) string {
	t.Helper()
	line, err := d.err.ReadString('\n')
	if err != nil {
		t.Errorf("no evidence: %v", err)
	}
	return strings.TrimSpace(line)
}

// M15, M18: a signal reaches the program, which then says how it ended; to be
// told to stop is no evidence.
func TestSignalsReachTheProgram(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		sig    syscall.Signal
		want   string
	}{
		"it dies":               {"echo ready; while :; do sleep 0.02; done", syscall.SIGINT, "lost closed=true ended by interrupt, so it may have acted before"},
		"it knows":              {"trap 'exit 3' TERM; echo ready; while :; do sleep 0.02; done", syscall.SIGTERM, "refused closed=false exit code 3, by which the program says that nothing happened(: Terminated)?"},
		"it finishes":           {"trap '' INT; echo ready; sleep 0.3", syscall.SIGINT, "confirmed closed=false"},
		"a descendant dies too": {"echo ready; sleep 1000; exit 3", syscall.SIGTERM, "lost closed=(true|false) ended by terminated, so it may have acted before"},
	} {
		t.Run(name, func(t *testing.T) {
			d := startDo(t, test.script)
			ready(t, d)
			if err := d.Process.Signal(test.sig); err != nil {
				t.Fatal(err)
			}
			if got := d.evidence(t); !regexp.MustCompile("^" + test.want + "$").MatchString(got) {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// A signal before the program starts proves that nothing happened; one that
// this process ignores, as under nohup, stays ignored.
func TestSignalsAtTheEdges(t *testing.T) {
	file := filepath.Join(t.TempDir(), "effect")
	d := startDo(t, "touch "+file, "COMMAND_EARLY=1")
	if got, want := d.evidence(t), "refused closed=false the program was not started: interrupted before it (interrupt)"; got != want || exists(file) {
		t.Errorf("got  %s, effect %v\nwant %s", got, exists(file), want)
	}
	d = startDo(t, "echo ready; sleep 0.3", "COMMAND_NOHUP=1")
	ready(t, d)
	if err := d.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if got, want := d.evidence(t), "confirmed closed=false"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// M16: `semel do ... | head -1` ends neither the program nor the record of it.
func TestReaderThatGoesAwayEndsNothing(t *testing.T) {
	d := startDo(t, "echo ready; sleep 0.2; head -c 1000000 /dev/zero; exit 0")
	ready(t, d)
	if err := d.out.Close(); err != nil {
		t.Fatal(err)
	}
	if got, want := d.evidence(t), "confirmed closed=false"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// C18 P2: kill -9 of this process does not end the program half-way; it is not
// seen to its end, which the claim's lease turns into unknown.
func TestProgramOutlivesAKilledParent(t *testing.T) {
	dir := t.TempDir()
	gate, effect := filepath.Join(dir, "gate"), filepath.Join(dir, "effect")
	d := startDo(t, "echo ready; while ! test -e "+gate+"; do sleep 0.02; done; touch "+effect)
	ready(t, d)
	if err := d.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := d.Wait(); err == nil || exists(effect) {
		t.Fatalf("ended with %v, effect %v; want killed, before the effect", err, exists(effect))
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 500 {
		if exists(effect) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the program was ended half-way")
}

// Close stops what nobody waits for, and delivers what is known of it; without
// Late the program ends with its caller.
func TestCloseStopsWhatStillRuns(t *testing.T) {
	d := open(t, command.Options{Grace: 100 * time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	s := send([]string{"sleep", "1000"})
	s.Begin = func() error { time.AfterFunc(50*time.Millisecond, cancel); return nil }
	late := make(chan semel.Event, 1)
	s.Late = func(ev semel.Event) { late <- ev }
	if got := d.Send(ctx, s); got.Kind != semel.EvLost || got.Closed {
		t.Errorf("got %v, want lost and not closed", got)
	}
	if err := d.Close(ctx); err != nil {
		t.Error(err)
	}
	if got := <-late; got.Kind != semel.EvLost || !got.Closed {
		t.Errorf("late %v, want lost and closed", got)
	}
	if got := d.Send(t.Context(), send(sh("exit 0"))); got.Kind != semel.EvRefused {
		t.Errorf("after Close: %v, want refused", got)
	}

	d = open(t, command.Options{Grace: 100 * time.Millisecond})
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if got := d.Send(ctx, send([]string{"sleep", "1000"})); got.Kind != semel.EvLost || !got.Closed {
		t.Errorf("without Late: %v, want lost and closed", got)
	}
}

func ready(t *testing.T, d do) {
	t.Helper()
	b := make([]byte, len("ready\n"))
	if _, err := io.ReadFull(d.out, b); err != nil {
		t.Fatal(err)
	}
}
