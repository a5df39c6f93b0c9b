package command_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/destination/command"
)

// M13, law 2: only a failed exec and a declared exit code say that nothing
// happened; whatever else is not exit 0 is lost. C29 B: killed from outside.
func TestEndingsBecomeEvidence(t *testing.T) {
	dir := t.TempDir()
	notExecutable := filepath.Join(dir, "plain")
	if err := os.WriteFile(notExecutable, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	noInterpreter := filepath.Join(dir, "orphan")
	if err := os.WriteFile(noInterpreter, []byte("#!/nonexistent/interpreter\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args   []string
		want   semel.EventKind
		status int
		reason string
	}{
		"exit 0":                 {sh("exit 0"), semel.EvConfirmed, 0, ""},
		"exit 0 with complaints": {sh("echo warning >&2"), semel.EvConfirmed, 0, ""},
		"declared code":          {sh("echo card declined >&2; exit 3"), semel.EvRefused, 3, "exit code 3, by which the program says that nothing happened: card declined"},
		"other code":             {sh("echo boom >&2; exit 4"), semel.EvLost, 4, "exit code 4 does not tell whether it happened: boom"},
		"not found in a shell":   {sh("nosuchprogram 2>/dev/null"), semel.EvLost, 127, "exit code 127 does not tell whether it happened"},
		"killed":                 {sh("kill -9 $$"), semel.EvLost, 137, "ended by killed, so it may have acted before"},
		"crashed":                {sh("kill -SEGV $$"), semel.EvLost, 139, "ended by segmentation fault, so it may have acted before"},
		"not found":              {[]string{"no-such-program-here"}, semel.EvRefused, 0, `the program was not started: exec: "no-such-program-here": executable file not found in $PATH`},
		"no such path":           {[]string{"/nonexistent/x"}, semel.EvRefused, 0, "the program was not started: fork/exec /nonexistent/x: no such file or directory"},
		"no permission":          {[]string{notExecutable}, semel.EvRefused, 0, "the program was not started: fork/exec " + notExecutable + ": permission denied"},
		"no interpreter":         {[]string{noInterpreter}, semel.EvRefused, 0, "the program was not started: fork/exec " + noInterpreter + ": no such file or directory"},
		"too many arguments":     {[]string{"/bin/true", strings.Repeat("x", 1<<20)}, semel.EvRefused, 0, "the program was not started: fork/exec /bin/true: argument list too long"},
		"no program":             {nil, semel.EvRefused, 0, "the program was not started: program is missing: give it after --, for example -- ./charge 4417"},
		"hostile complaint":      {sh(`printf 'a\0b\033[31m\377\n' >&2; exit 5`), semel.EvLost, 5, "exit code 5 does not tell whether it happened: a\uFFFDb\uFFFD[31m\uFFFD"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := open(t, command.Options{NoEffectExit: []int{3}})
			got := d.Send(t.Context(), send(test.args))
			status := 0
			if got.Result != nil {
				status = got.Result.Status
			}
			if got.Kind != test.want || got.Reason != test.reason || status != test.status || got.Attempt != 1 {
				t.Errorf("got %s %q status %d attempt %d, want %s %q status %d attempt 1",
					got.Kind, got.Reason, status, got.Attempt, test.want, test.reason, test.status)
			}
		})
	}
}

// Law 1, law 16: nothing starts before the last check of the claim, nor after
// that check refused, and the check is asked once.
func TestProgramStartsOnlyAfterBegin(t *testing.T) {
	file := filepath.Join(t.TempDir(), "effect")
	d := open(t, command.Options{})
	s := send(sh("touch " + file))
	begun := 0
	s.Begin = func() error { begun++; return errors.New("the lease is over") }
	got := d.Send(t.Context(), s)
	if got.Kind != semel.EvRefused || begun != 1 || exists(file) {
		t.Errorf("got %v, begun %d times, effect %v; want refused once without effect", got, begun, exists(file))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := d.Send(ctx, s); got.Kind != semel.EvRefused || exists(file) {
		t.Errorf("got %v, effect %v; want refused, since nobody waits", got, exists(file))
	}
	s.Begin = func() error {
		begun++
		if exists(file) {
			t.Error("the program ran before Begin")
		}
		return nil
	}
	if got := d.Send(t.Context(), s); got.Kind != semel.EvConfirmed || begun != 2 || !exists(file) {
		t.Errorf("got %v, begun %d times, effect %v; want confirmed after one more Begin", got, begun, exists(file))
	}
}

func TestProgramSeesItsIdentityAndInput(t *testing.T) {
	var out, errs bytes.Buffer
	t.Setenv("SEMEL_KEY", "of an outer operation")
	d := open(t, command.Options{Stdout: &out, Stderr: &errs})
	s := send(sh(`echo "$SEMEL_KEY|$SEMEL_SCOPE|$SEMEL_OPERATION|$SEMEL_ATTEMPT|$SEMEL_DESTINATION_KEY|$1"; cat; echo seen >&2`, "sh", "x y"))
	s.Operation.Request.Body = []byte("in\x00put")
	got := d.Send(t.Context(), s)
	want := "invoice-4417|billing|" + s.Operation.ID.String() + "|1|" + s.DestinationKey + "|x y\nin\x00put"
	if diff := cmp.Diff(want, string(got.Result.Body)); got.Kind != semel.EvConfirmed || diff != "" {
		t.Errorf("%s, result (-want +got):\n%s", got.Kind, diff)
	}
	if out.String() != want || errs.String() != "seen\n" {
		t.Errorf("passed on %q and %q", out.String(), errs.String())
	}
}

// The input arrives whole, and nobody has to read it.
func TestLargeInput(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pid")
	input := bytes.Repeat([]byte("0123456789abcdef"), semel.MaxBody/16)
	for name, script := range map[string]string{
		"read":    "test $(wc -c) = 1048576",
		"ignored": "exit 0",
		"held":    "exec 3<&0; sleep 100 <&3 >/dev/null 2>&1 & echo $! >" + file,
	} {
		t.Run(name, func(t *testing.T) {
			s := send(sh(script))
			s.Operation.Request.Body = input
			if got := open(t, command.Options{}).Send(t.Context(), s); got.Kind != semel.EvConfirmed {
				t.Errorf("got %v, want confirmed", got)
			}
		})
	}
	kill(t, file)
}

// C24: an answer of any size or content is an answer; memory stays bounded.
func TestLargeAnswerIsCutAndMeasured(t *testing.T) {
	const size = 5 << 20
	var out countingWriter
	d := open(t, command.Options{Stdout: &out})
	got := d.Send(t.Context(), send(sh("head -c 5242880 /dev/zero")))
	sum := sha256.Sum256(make([]byte, size))
	if got.Kind != semel.EvConfirmed || len(got.Result.Body) != semel.MaxResult || got.Result.Size != size ||
		got.Result.SHA256 != hex.EncodeToString(sum[:]) || !got.Result.Truncated() || int(out) != size {
		t.Errorf("got %s, %d bytes of %d (%s), passed on %d", got.Kind, len(got.Result.Body), got.Result.Size, got.Result.SHA256, out)
	}
}

// C24, C29 C: output and run time without end end at the timeout as lost.
func TestEndlessProgramIsStoppedAtTheTimeout(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"prints for ever":      {"yes"},
		"sleeps for ever":      {"sleep", "1000"},
		"ignores SIGTERM":      sh("trap '' TERM; while :; do sleep 0.05; done"),
		"exits 0 when told to": sh("trap 'exit 0' TERM; while :; do sleep 0.05; done"),
		"leaves a descendant":  sh("trap 'exit 9' TERM; (trap '' TERM; exec sleep 1000) & while :; do sleep 0.05; done"),
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t, command.Options{NoEffectExit: []int{9}, Grace: 300 * time.Millisecond})
			s := send(args)
			s.Operation.Contract.Timeout = 300 * time.Millisecond
			got := d.Send(t.Context(), s)
			if got.Kind != semel.EvLost || !got.Closed || !strings.HasPrefix(got.Reason, "no end within 300ms: the program was stopped") {
				t.Errorf("got %s closed %v %q", got.Kind, got.Closed, got.Reason)
			}
			if len(got.Result.Body) > semel.MaxResult {
				t.Errorf("%d bytes are kept", len(got.Result.Body))
			}
		})
	}
}

// Law 7: an attempt is closed only when nothing of it is left.
func TestAttemptWithADescendantIsNotClosed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pid")
	d := open(t, command.Options{})
	for name, script := range map[string]string{
		"in the group":       "sleep 100 >/dev/null 2>&1 & echo $! >" + file + "; exit 4",
		"outside, listening": "setsid sleep 100 & echo $! >" + file + "; exit 4",
	} {
		t.Run(name, func(t *testing.T) {
			got := d.Send(t.Context(), send(sh(script)))
			t.Cleanup(func() { kill(t, file) })
			if got.Kind != semel.EvLost || got.Closed {
				t.Errorf("got %s closed %v, want lost, not closed", got.Kind, got.Closed)
			}
		})
	}
	if got := d.Send(t.Context(), send(sh("exit 4"))); !got.Closed {
		t.Errorf("a program that left nothing behind is not closed: %v", got)
	}
}

// Exit 0 is the answer, although a descendant still holds the output.
func TestDescendantDoesNotDelayTheAnswer(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pid")
	t.Cleanup(func() { kill(t, file) })
	got := open(t, command.Options{}).Send(t.Context(), send(sh("sleep 100 & echo $! >"+file+"; echo done")))
	if got.Kind != semel.EvConfirmed || string(got.Result.Body) != "done\n" || got.Result.Size != -1 {
		t.Errorf("got %v, result %+v", got.Kind, got.Result)
	}
}

// M16: the outcome does not wait for a reader of the output, nor fail with it.
func TestOutcomeDoesNotWaitForTheReader(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	defer close(release)
	blocked := writerFunc(func(b []byte) (int, error) { <-release; return len(b), nil })
	gone := writerFunc(func([]byte) (int, error) { return 0, errors.New("broken pipe") })
	for name, w := range map[string]writerFunc{"blocked": blocked, "gone": gone} {
		t.Run(name, func(t *testing.T) {
			got := open(t, command.Options{Stdout: w}).Send(t.Context(), send(sh("for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.02; done")))
			if got.Kind != semel.EvConfirmed || string(got.Result.Body) != "1\n2\n3\n4\n5\n6\n7\n8\n" || got.Result.Truncated() {
				t.Errorf("got %s with %q of %d bytes", got.Kind, got.Result.Body, got.Result.Size)
			}
		})
	}
}

// M15, M17, law 6: who stops waiting says nothing about the program, and its
// late answer is delivered.
func TestLateEndingIsDelivered(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := open(t, command.Options{NoEffectExit: []int{3}})
	for name, test := range map[string]struct {
		script string
		want   semel.EventKind
	}{
		"happened":     {"exit 0", semel.EvConfirmed},
		"did not":      {"exit 3", semel.EvRefused},
		"does not say": {"exit 4", semel.EvLost},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			gate := filepath.Join(dir, string(test.want))
			s := send(sh("while ! test -e " + gate + "; do sleep 0.01; done; " + test.script))
			late := make(chan semel.Event, 2)
			s.Late = func(ev semel.Event) { late <- ev }
			s.Begin = func() error { time.AfterFunc(50*time.Millisecond, cancel); return nil }
			if got := d.Send(ctx, s); got.Kind != semel.EvLost || got.Closed {
				t.Errorf("got %v, want lost and not closed", got)
			}
			if err := os.WriteFile(gate, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if got := <-late; got.Kind != test.want {
				t.Errorf("late %v, want %s", got, test.want)
			}
		})
	}
}
