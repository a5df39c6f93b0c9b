package command_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/destination/command"
)

// M21, M22: 0 is found, a silent 1 is absent, and all the rest is no answer.
func TestChecksBecomeEvidence(t *testing.T) {
	for name, test := range map[string]struct {
		check  string
		want   semel.EventKind
		reason string
	}{
		"happened":      {"echo ch_1", semel.EvFound, "the check says that it happened"},
		"did not":       {"exit 1", semel.EvAbsent, "the check says that it did not happen"},
		"other code":    {"echo 'no route' >&2; exit 2", semel.EvNoAnswer, "the check: exit code 2: no route"},
		"not found":     {"no-such-check 2>/dev/null", semel.EvNoAnswer, "the check: exit code 127"},
		"killed":        {"kill -9 $$", semel.EvNoAnswer, "the check: ended by killed"},
		"not a program": {"(", semel.EvNoAnswer, "the check: exit code 2: "},
		"none":          {"", semel.EvNoAnswer, "no check program is given"},
		"stuck":         {"sleep 1000", semel.EvNoAnswer, "the check was stopped: no end within 300ms"},
		// The database is away: grep finds nothing in the output of nobody.
		"could not look": {
			"(echo 'connection refused' >&2; exit 2) | grep -q paid", semel.EvNoAnswer,
			"the check ended with 1 but complained, so it may not have looked: connection refused",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t, command.Options{Check: test.check, CheckTimeout: 300 * time.Millisecond})
			got := d.Look(t.Context(), send([]string{"charge"}))
			if got.Kind != test.want || !strings.HasPrefix(got.Reason, test.reason) {
				t.Errorf("got %s %q, want %s %q", got.Kind, got.Reason, test.want, test.reason)
			}
		})
	}
}

// The check knows which effect it is asked about, and does not run the program
// (law 15).
func TestCheckSeesTheOperation(t *testing.T) {
	file := filepath.Join(t.TempDir(), "effect")
	d := open(t, command.Options{Check: `echo "$SEMEL_KEY|$SEMEL_SCOPE|$SEMEL_ATTEMPT|$SEMEL_DESTINATION_KEY|$0|$2"; cat`})
	s := send([]string{"/bin/touch", "--", file})
	s.Operation.Request.Body = []byte("not for the check")
	s.Begin = func() error { t.Error("a lookup began an attempt"); return nil }
	got := d.Look(t.Context(), s)
	want := "invoice-4417|billing|1|" + s.DestinationKey + "|/bin/touch|" + file + "\n"
	if got.Result == nil || got.Kind != semel.EvFound {
		t.Fatalf("got %v", got)
	}
	if diff := cmp.Diff(want, string(got.Result.Body)); diff != "" {
		t.Errorf("the check's view (-want +got):\n%s", diff)
	}
	if exists(file) {
		t.Error("looking ran the program")
	}
}

func TestCheckEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	file := filepath.Join(t.TempDir(), "begun")
	go func() {
		for !exists(file) && ctx.Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
		cancel()
	}()
	// Only the context ends this one: neither its own limit nor a grace does.
	d := open(t, command.Options{Check: "trap '' TERM; touch " + file + "; while :; do sleep 0.05; done", CheckTimeout: time.Hour, Grace: time.Hour})
	got := d.Look(ctx, send([]string{"charge"}))
	if got.Kind != semel.EvNoAnswer || !strings.HasPrefix(got.Reason, "the check was stopped: nobody waits for it") {
		t.Errorf("got %v", got)
	}
}

// M3: a later process follows the contract that the first claim persisted.
func TestContractOfTheFirstClaimDecides(t *testing.T) {
	d := open(t, command.Options{Check: "exit 1", NoEffectExit: []int{3}})
	s := send(sh("exit 3"))
	s.Operation.Contract.Check, s.Operation.Contract.NoEffectExit = "exit 0", []int{4}
	if got := d.Send(t.Context(), s); got.Kind != semel.EvLost {
		t.Errorf("got %v, want lost", got)
	}
	if got := d.Look(t.Context(), s); got.Kind != semel.EvFound {
		t.Errorf("got %v, want found", got)
	}
}
