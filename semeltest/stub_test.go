package semeltest_test

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/semeltest"
)

// stub is a testing.TB that notes what it is told. Examples use it in place of
// the *testing.T that a test has.
type stub struct {
	testing.TB
	dirs     []string
	cleanups []func()
	problems []string
}

func (s *stub) Helper()           {}
func (s *stub) Output() io.Writer { return io.Discard }
func (s *stub) Cleanup(fn func()) { s.cleanups = append(s.cleanups, fn) }

func (s *stub) Errorf(format string, args ...any) {
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

func (s *stub) Fatalf(format string, args ...any) {
	s.Errorf(format, args...)
	runtime.Goexit()
}

func (s *stub) TempDir() string {
	dir, err := os.MkdirTemp("", "semeltest")
	if err != nil {
		panic(err)
	}
	s.dirs = append(s.dirs, dir)
	return dir
}

// finish is the end of the test; it returns what went wrong.
func (s *stub) finish() []string {
	for _, fn := range slices.Backward(s.cleanups) {
		fn()
	}
	for _, dir := range s.dirs {
		_ = os.RemoveAll(dir)
	}
	return s.problems
}

// end is the end of an example.
func (s *stub) end() {
	for _, p := range s.finish() {
		fmt.Println(p)
	}
}

// simulate runs fn as a test.
func simulate(fn func(t testing.TB)) []string {
	s := &stub{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn(s)
	}()
	<-done
	return s.finish()
}

func TestWhatMustNotBeFailsTheTest(t *testing.T) {
	billing := workflow(func(ctx semel.Context, in invoice) error {
		_, err := semel.Do(ctx, mail, in)
		return err
	})
	tests := map[string]struct {
		test func(t testing.TB)
		want string
	}{
		"a person errs": {func(t testing.TB) {
			w := semeltest.New(t, billing.Definition())
			w.On("mail", semeltest.LostAfter(nil), semeltest.Completed(nil))
			run := w.Run(billing.New("", one))
			w.DidNotHappen(run, "mail")
			w.Change(w.Await(run), semel.RetryRun)
			w.Await(run)
		}, `semeltest: mail happened 2 times under key "4417": attempt 1 at `},
		"a mistyped action": {func(t testing.TB) {
			w := semeltest.New(t, billing.Definition())
			w.On("mial", semeltest.LostAfter(nil))
			w.Run(billing.New("", one))
		}, `semeltest: answers are scripted for action "mial", which no workflow declares`},
		"an unknown workflow": {func(t testing.TB) {
			other := billing
			other.Name = "other"
			semeltest.New(t, billing.Definition()).Run(other.New("", one))
		}, "semeltest: workflow other@1 is unknown in this world: give its definition to New"},
		"another input": {func(t testing.TB) {
			w := semeltest.New(t, billing.Definition())
			w.Start(billing.New("", one))
			w.Start(billing.New("", invoice{ID: one.ID, Cents: 1}))
		}, `semeltest: run key "4417" of billing belongs to a run with another input; different: input.cents`},
		"no step": {func(t testing.TB) {
			w := semeltest.New(t, billing.Definition())
			w.Step(w.Run(billing.New("", one)), "charge")
		}, "has no record of step \"charge\"; it has [\"mail\"]"},
		"nothing to approve": {func(t testing.TB) {
			w := semeltest.New(t, billing.Definition())
			w.Approve(w.Run(billing.New("", one)))
		}, "asks for no approval"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			problems := simulate(test.test)
			if len(problems) != 1 || !strings.Contains(problems[0], test.want) {
				t.Errorf("problems %q, want one with %q", problems, test.want)
			}
		})
	}
}
