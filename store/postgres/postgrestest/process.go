package postgrestest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
)

// process is a running server binary, watched by one goroutine that ends with it.
type process struct {
	handle *os.Process
	done   chan struct{} // closed after exit
	err    error         // how it exited; read after done
}

// startProcess runs a binary as account, with its output appended to the log.
func startProcess(path string, args []string, dir directory, account account) (*process, error) {
	log, err := os.OpenFile(dir.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(path, args...)
	cmd.Dir = dir.path
	cmd.Env = environment(os.Environ())
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = attributes(account)

	p := &process{done: make(chan struct{})}
	started := make(chan error)
	go p.watch(cmd, started)
	if err := <-started; err != nil {
		return nil, err
	}
	p.handle = cmd.Process
	return p, nil
}

// watch starts the command and waits for its end on one thread: the system
// signals a child when the thread that started it dies, not the process.
func (p *process) watch(cmd *exec.Cmd, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Start()
	started <- err
	if err == nil {
		p.err = cmd.Wait()
		close(p.done)
	}
}

func (p *process) exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// signal does nothing to a process that has exited.
func (p *process) signal(sig syscall.Signal) error {
	err := p.handle.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// wait returns nil after the process exited, however it did. When ctx ends
// first the process is killed, and the error is that of ctx.
func (p *process) wait(ctx context.Context) error {
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		_ = p.handle.Kill()
		<-p.done
		return ctx.Err()
	}
}

// environment drops what would configure the server behind our back.
func environment(environ []string) []string {
	kept := []string{"LC_ALL=C"}
	for _, e := range environ {
		if !strings.HasPrefix(e, "PG") && !strings.HasPrefix(e, "LC_") && !strings.HasPrefix(e, "LANG") {
			kept = append(kept, e)
		}
	}
	return kept
}
