package command

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

const (
	// drain is how long output may take to end after its program has.
	drain = 2 * time.Second
	// settle is how long a killed group may take to disappear; one that was not
	// killed gets a tenth of it.
	settle = time.Second
)

// process is one program with its group. launch, then supervise, once each.
type process struct {
	cmd            *exec.Cmd
	stdin          []byte
	stdout, stderr stream
	grace          time.Duration
	forward        []os.Signal

	signals chan os.Signal // to forward
	broken  chan os.Signal // SIGPIPE of our own output, which must not end us
	halt    chan string
	input   *os.File
}

// ending is how a program ended.
type ending struct {
	exit    int    // 128 and the signal's number if a signal ended it
	signal  string // the signal that ended it
	stopped string // why it was told to stop, empty if it was not
	closed  bool   // nothing of it is left
	stdout  *stream
	stderr  *stream
}

// launch starts the program right after begin returned nil. An error means
// that it did not run, unless it is EPIPE.
func (p *process) launch(begin func() error) error {
	p.halt = make(chan string, 1)
	p.listen()
	err := p.start(begin)
	if err != nil {
		p.unlisten()
	}
	return err
}

func (p *process) start(begin func() error) error {
	theirs, err := p.connect()
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
	}()
	if err != nil {
		p.disconnect()
		return err
	}
	lead(p.cmd)
	if err := begin(); err != nil {
		p.disconnect()
		return err
	}
	select {
	case sig := <-p.signals:
		p.disconnect()
		return fmt.Errorf("interrupted before it (%v)", sig)
	default:
	}
	if err := p.cmd.Start(); err != nil {
		p.disconnect()
		return err
	}
	return nil
}

// connect makes the pipes and returns the program's ends of them.
func (p *process) connect() (theirs []*os.File, err error) {
	for _, s := range []*stream{&p.stdout, &p.stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			return theirs, err
		}
		s.pipe = r
		theirs = append(theirs, w)
	}
	p.cmd.Stdout, p.cmd.Stderr = theirs[0], theirs[1]
	if len(p.stdin) == 0 {
		return theirs, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return theirs, err
	}
	p.cmd.Stdin, p.input = r, w
	return append(theirs, r), nil
}

func (p *process) disconnect() {
	for _, f := range []*os.File{p.stdout.pipe, p.stderr.pipe, p.input} {
		if f != nil {
			f.Close()
		}
	}
}

// listen takes the signals that belong to the program. A signal that this
// process ignores is ignored by the program too, and stays so.
func (p *process) listen() {
	if p.stdout.pass != nil || p.stderr.pass != nil {
		p.broken = make(chan os.Signal, 1)
		signal.Notify(p.broken, syscall.SIGPIPE)
	}
	p.signals = make(chan os.Signal, 16)
	for _, sig := range p.forward {
		if !signal.Ignored(sig) {
			signal.Notify(p.signals, sig)
		}
	}
}

func (p *process) unlisten() {
	signal.Stop(p.signals)
	if p.broken != nil {
		signal.Stop(p.broken)
	}
}

// stop tells the program to end; supervise does the rest.
func (p *process) stop(reason string) {
	select {
	case p.halt <- reason:
	default: // told before
	}
}

// supervise waits for the end of the program and of its output. A timeout of 0
// is none.
func (p *process) supervise(timeout time.Duration, closing <-chan struct{}) ending {
	defer p.unlisten()
	defer p.disconnect()
	e := ending{stdout: &p.stdout, stderr: &p.stderr}
	abandon := make(chan struct{})
	var reading, passing sync.WaitGroup
	p.stdout.pump(&reading, &passing, abandon)
	p.stderr.pump(&reading, &passing, abandon)
	if p.input != nil {
		reading.Go(func() {
			_, _ = p.input.Write(p.stdin) // a program need not read it
			p.input.Close()
		})
	}
	exited := make(chan func() error, 1)
	go func() { exited <- awaitExit(p.cmd) }()

	reap := p.attend(&e, exited, timeout, closing)
	if reap != nil && e.stopped != "" {
		signalGroup(p.cmd.Process, syscall.SIGKILL) // what the leader left behind
	}
	outputEnded := make(chan struct{})
	go func() { reading.Wait(); passing.Wait(); close(outputEnded) }()
	select {
	case <-outputEnded:
	case <-time.After(drain):
		close(abandon)
		p.stdout.expire()
		p.stderr.expire()
		if p.input != nil {
			p.input.Close()
		}
		reading.Wait()
	}
	if reap == nil {
		e.exit, e.signal = 128+int(syscall.SIGKILL), syscall.SIGKILL.String()
		return e
	}
	p.bury(&e, reap)
	return e
}

// attend forwards signals and enforces the end, until the program has exited.
// It gives up on a program that cannot be killed, and returns nil.
func (p *process) attend(e *ending, exited <-chan func() error, timeout time.Duration, closing <-chan struct{}) (reap func() error) {
	var timedOut, overdue, hopeless <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		timedOut = timer.C
	}
	stop := func(reason string) {
		if e.stopped != "" {
			return
		}
		e.stopped = reason
		signalGroup(p.cmd.Process, syscall.SIGTERM)
		overdue = time.After(p.grace)
	}
	for {
		select {
		case reap := <-exited:
			return reap
		case sig := <-p.signals:
			signalGroup(p.cmd.Process, sig)
		case reason := <-p.halt:
			stop(reason)
		case <-timedOut:
			stop(fmt.Sprintf("no end within %v", timeout))
		case <-closing:
			closing = nil
			stop("this process is shutting down")
		case <-overdue:
			signalGroup(p.cmd.Process, syscall.SIGKILL)
			hopeless = time.After(drain)
		case <-hopeless:
			return nil
		}
	}
}

// bury takes the exit status. Until then the group's number belongs to nobody
// else, so no signal can reach a stranger.
func (p *process) bury(e *ending, reap func() error) {
	err := reap()
	var exit *exec.ExitError
	switch state := p.cmd.ProcessState; {
	case state == nil || err != nil && !errors.As(err, &exit):
		e.exit, e.signal = 255, "an unknown cause"
	default:
		e.exit, e.signal = state.ExitCode(), ""
		if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			e.exit, e.signal = 128+int(status.Signal()), status.Signal().String()
		}
	}
	if e.exit == 0 && e.stopped == "" {
		return
	}
	patience := settle
	if e.stopped == "" {
		patience = settle / 10
	}
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		if groupGone(p.cmd.Process) || e.stopped != "" && onlyZombies(p.cmd.Process.Pid) {
			e.closed = p.stdout.ended && p.stderr.ended
			return
		}
	}
}
