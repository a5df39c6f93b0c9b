package command_test

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/destination/command"
)

func open(t *testing.T, o command.Options) *command.Destination {
	t.Helper()
	d, err := command.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // what still runs is stopped
		_ = d.Close(ctx)
	})
	return d
}

func sh(script string, args ...string) []string {
	return append([]string{"/bin/sh", "-c", script}, args...)
}

// send is the first attempt of an operation that runs a program.
func send(args []string) *semel.Send {
	o := &semel.Operation{
		Identity: semel.Identity{ID: semel.ID{1}, Scope: "billing", Key: "invoice-4417", Request: semel.Request{Kind: command.Kind, Args: args}},
		State:    semel.InProgress, Attempt: 1,
	}
	return &semel.Send{Operation: o, Attempt: 1, DestinationKey: o.DestinationKey(), Begin: func() error { return nil }}
}

type countingWriter int

func (w *countingWriter) Write(b []byte) (int, error) {
	*w += countingWriter(len(b))
	return len(b), nil
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// kill ends the process whose number is in file.
func kill(t *testing.T, file string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || pid < 2 {
		t.Fatalf("no process number in %q", b)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Error(err)
	}
}
