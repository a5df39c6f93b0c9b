package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/semel-dev/semel"
)

// Kind is the Request.Kind of a command.
const Kind = "command"

// What Options mean where they say nothing.
const (
	DefaultGrace        = 5 * time.Second
	DefaultCheckTimeout = 30 * time.Second
)

// Options say how programs are run. The zero value is useful.
type Options struct {
	// Check is a line for /bin/sh that tells whether the effect of an operation
	// happened; the package comment says how. It serves operations whose
	// contract has none.
	Check string
	// CheckTimeout bounds a check; 0 means DefaultCheckTimeout.
	CheckTimeout time.Duration
	// NoEffectExit lists the exit codes by which the program says that nothing
	// happened. It serves operations whose contract lists none.
	NoEffectExit []int

	// Dir and Env are the program's working directory and environment; empty
	// and nil mean this process's own. The program is found in this process's
	// PATH in any case.
	Dir string
	Env []string
	// Stdout and Stderr receive what the program prints, while it runs; nil
	// drops it. A Write that still blocks shortly after the program has ended
	// is abandoned: the outcome does not wait for a reader.
	Stdout, Stderr io.Writer
	// Forward lists signals that reach the program instead of this process
	// while it runs, except those that this process ignores.
	Forward []os.Signal
	// Grace is the pause between SIGTERM and SIGKILL; 0 means DefaultGrace.
	Grace time.Duration
}

// NewRequest is the request to run the program args[0] with the arguments
// args[1:] and the given standard input. It fails with *semel.InputError.
func NewRequest(args []string, stdin []byte) (semel.Request, error) {
	if len(args) == 0 || args[0] == "" {
		return semel.Request{}, &semel.InputError{Field: "program", Problem: "is missing", Hint: "give it after --, for example -- ./charge 4417"}
	}
	for i, arg := range args {
		if !utf8.ValidString(arg) {
			return semel.Request{}, &semel.InputError{
				Field: fmt.Sprintf("argument %d", i), Problem: "is not valid UTF-8, so it could not be kept exactly",
				Hint: "pass such bytes by standard input or in a file",
			}
		}
	}
	r := semel.Request{Kind: Kind, Args: slices.Clone(args), Body: stdin}
	if strings.ContainsRune(args[0], '/') {
		program, err := filepath.Abs(args[0]) // ./charge somewhere else is another program
		if err != nil {
			return semel.Request{}, &semel.InputError{Field: "program", Problem: "cannot be found from here: " + err.Error(), Hint: "give its whole path"}
		}
		r.Args[0] = program
	}
	if err := r.Validate(); err != nil {
		return semel.Request{}, err
	}
	return r, nil
}

// Destination runs programs. It is safe for concurrent use. Close it.
type Destination struct {
	options Options

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
	closing chan struct{} // closed when Close has waited long enough
	hurry   sync.Once
}

var (
	_ semel.Destination = (*Destination)(nil)
	_ semel.Looker      = (*Destination)(nil)
)

// New makes a Destination. The error is *semel.InputError.
func New(o Options) (*Destination, error) {
	for _, code := range o.NoEffectExit {
		if code < 1 || code > 255 {
			return nil, &semel.InputError{
				Field: "no-effect-exit", Problem: fmt.Sprintf("%d cannot mean that nothing happened", code),
				Hint: "give exit codes from 1 to 255; 0 always means that it happened",
			}
		}
	}
	if o.Grace < 0 || o.CheckTimeout < 0 {
		return nil, &semel.InputError{Field: "limits", Problem: "are negative", Hint: "leave out a limit that is not meant"}
	}
	o.Grace = cmp.Or(o.Grace, DefaultGrace)
	o.CheckTimeout = cmp.Or(o.CheckTimeout, DefaultCheckTimeout)
	return &Destination{options: o, closing: make(chan struct{})}, nil
}

// Close refuses new attempts, waits for the programs that run until ctx ends,
// and then stops them as a timeout does; what is known of them is still
// delivered.
func (d *Destination) Close(ctx context.Context) error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	idle := make(chan struct{})
	go func() {
		d.running.Wait()
		close(idle)
	}()
	select {
	case <-idle:
	case <-ctx.Done():
		d.hurry.Do(func() { close(d.closing) })
		<-idle
	}
	return nil
}

// enter makes Close wait for one more program, unless it has begun.
func (d *Destination) enter() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return errors.New("the destination is closed")
	}
	d.running.Add(1)
	return nil
}

// Send runs the program of s.Operation.Request and says what its ending tells.
// When ctx ends first, Send returns EvLost at once; the program runs on and its
// evidence goes to s.Late. Without s.Late nobody would hear of it: then the
// program is stopped.
func (d *Destination) Send(ctx context.Context, s *semel.Send) semel.Event {
	if err := d.enter(); err != nil {
		return refused(s, err.Error())
	}
	defer d.running.Done()

	p, err := d.prepare(ctx, s)
	if err != nil {
		return refused(s, "the program was not started: "+err.Error())
	}
	if err := p.launch(s.Begin); err != nil {
		return startFailure(s, err)
	}
	timeout, attempt, late := s.Operation.Contract.Timeout, s.Attempt, s.Late
	noEffect := d.noEffectExit(s)
	ended := make(chan semel.Event, 1)
	d.running.Go(func() {
		e := p.supervise(timeout, d.closing)
		ended <- e.event(attempt, noEffect)
	})

	select {
	case ev := <-ended:
		return ev
	case <-ctx.Done():
	}
	reason := fmt.Sprintf("nobody waits for the program any more (%v)", context.Cause(ctx))
	if late == nil {
		p.stop(reason)
		return <-ended
	}
	d.running.Go(func() { late(<-ended) })
	return semel.Event{Kind: semel.EvLost, Attempt: attempt, Reason: reason + "; it may still be running"}
}

// Look runs the check program and says what its ending tells. It is EvNoAnswer
// where no check is given.
func (d *Destination) Look(ctx context.Context, s *semel.Send) semel.Event {
	if err := d.enter(); err != nil {
		return noAnswer(err.Error())
	}
	defer d.running.Done()

	line := d.check(s)
	if line == "" {
		return noAnswer("no check program is given")
	}
	cmd := exec.Command("/bin/sh", append([]string{"-c", line}, s.Operation.Request.Args...)...)
	cmd.Dir, cmd.Env = d.options.Dir, d.environ(s)
	p := &process{cmd: cmd}
	if err := p.launch(ctx.Err); err != nil {
		return noAnswer("the check was not started: " + err.Error())
	}
	stopWaiting := context.AfterFunc(ctx, func() { p.stop("nobody waits for it any more") })
	defer stopWaiting()
	e := p.supervise(d.options.CheckTimeout, d.closing)
	return e.checked()
}

// prepare does everything that can be done before the attempt begins.
func (d *Destination) prepare(ctx context.Context, s *semel.Send) (*process, error) {
	if s.Begin == nil {
		return nil, errors.New("nobody checks the claim")
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	args := s.Operation.Request.Args
	if _, err := NewRequest(args, s.Operation.Request.Body); err != nil {
		return nil, err
	}
	cmd := exec.Command(args[0], args[1:]...)
	if cmd.Err != nil {
		return nil, cmd.Err
	}
	cmd.Dir, cmd.Env = d.options.Dir, d.environ(s)
	return &process{
		cmd: cmd, stdin: s.Operation.Request.Body, grace: d.options.Grace, forward: d.options.Forward,
		stdout: stream{pass: d.options.Stdout}, stderr: stream{pass: d.options.Stderr},
	}, nil
}

// check is the operation's own check, which every later process finds in its
// contract, or else the destination's.
func (d *Destination) check(s *semel.Send) string {
	return cmp.Or(s.Operation.Contract.Check, d.options.Check)
}

func (d *Destination) noEffectExit(s *semel.Send) []int {
	if codes := s.Operation.Contract.NoEffectExit; len(codes) > 0 {
		return codes
	}
	return d.options.NoEffectExit
}

func (d *Destination) environ(s *semel.Send) []string {
	env := d.options.Env
	if env == nil {
		env = os.Environ()
	}
	return append(slices.Clone(env),
		"SEMEL_KEY="+string(s.Operation.Key),
		"SEMEL_SCOPE="+string(s.Operation.Scope),
		"SEMEL_OPERATION="+s.Operation.ID.String(),
		"SEMEL_ATTEMPT="+strconv.Itoa(s.Attempt),
		"SEMEL_DESTINATION_KEY="+s.DestinationKey,
	)
}

func refused(s *semel.Send, reason string) semel.Event {
	return semel.Event{Kind: semel.EvRefused, Attempt: s.Attempt, Reason: plain(reason)}
}

// startFailure judges an error of launch: the system reports a failed exec as
// such, so nothing ran. EPIPE is the one error that means the report was lost.
func startFailure(s *semel.Send, err error) semel.Event {
	if errors.Is(err, syscall.EPIPE) {
		return semel.Event{Kind: semel.EvLost, Attempt: s.Attempt, Reason: "whether the program was started is not known: " + err.Error()}
	}
	return refused(s, "the program was not started: "+err.Error())
}
