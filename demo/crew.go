package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

const (
	// workers is how many processes share the invoices, in both halves.
	workers = 3
	// failures is how often a worker may end by itself, with an error, before
	// the night is given up.
	failures = 5
	// announced is how long to wait for a worker to say what it is sending: its
	// request may be faster than its words.
	announced = 3 * time.Second
	// farewell is how long a worker may take to record what it knows when the
	// night is interrupted.
	farewell = 8 * time.Second
)

// crew is the worker processes of one half of the night.
type crew struct {
	program string
	args    []string
	log     *os.File
	work    assignment // without its part

	mu    sync.Mutex
	said  chan struct{} // closed at the next announcement
	sends map[string]*worker
}

// worker is one process.
type worker struct {
	cmd    *exec.Cmd
	killed bool // by us; guarded by crew.mu
	gone   chan struct{}
}

// run keeps all workers at work until each has done its part, replacing those
// that die.
func (c *crew) run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var wg sync.WaitGroup
	for part := range workers {
		wg.Go(func() {
			if err := c.keep(ctx, part); err != nil {
				stop(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// keep starts one worker after the other until one has done the part.
func (c *crew) keep(ctx context.Context, part int) error {
	for failed := 0; ctx.Err() == nil; {
		killed, err := c.one(ctx, part)
		if err == nil {
			return nil
		}
		if killed || ctx.Err() != nil {
			continue
		}
		if failed++; failed == failures {
			return fmt.Errorf("worker %d ended %d times: %w: see %s", part, failed, err, c.log.Name())
		}
	}
	return ctx.Err()
}

// one runs one worker to its end.
func (c *crew) one(ctx context.Context, part int) (killed bool, err error) {
	work := c.work
	work.Part = part
	orders, err := json.Marshal(work)
	if err != nil {
		return false, err
	}
	w := &worker{cmd: exec.CommandContext(ctx, c.program, c.args...), gone: make(chan struct{})}
	w.cmd.Args[0] = os.Args[0] // a program may go by its name
	w.cmd.Stderr = c.log
	w.cmd.SysProcAttr = tied()
	in, err := w.cmd.StdinPipe()
	if err != nil {
		return false, err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	w.cmd.Cancel = in.Close // the worker sees it, records what it knows and ends
	w.cmd.WaitDelay = farewell
	if err := w.cmd.Start(); err != nil {
		return false, fmt.Errorf("start a worker: %w", err)
	}
	_, err = in.Write(append(orders, '\n'))
	c.listen(w, out)
	err = errors.Join(err, w.cmd.Wait())
	close(w.gone)
	c.mu.Lock()
	defer c.mu.Unlock()
	return w.killed, err
}

// listen notes what the worker says it is sending, until it ends.
func (c *crew) listen(w *worker, out io.Reader) {
	words := bufio.NewScanner(out)
	for words.Scan() {
		name, ok := strings.CutPrefix(words.Text(), "sending ")
		if !ok {
			continue
		}
		c.mu.Lock()
		c.sends[name] = w
		close(c.said)
		c.said = make(chan struct{})
		c.mu.Unlock()
	}
}

// kill ends the worker that is sending name with SIGKILL, and returns when it
// is dead.
func (c *crew) kill(name string) bool {
	timer := time.NewTimer(announced)
	defer timer.Stop()
	for {
		c.mu.Lock()
		w, said := c.sends[name], c.said
		if w != nil {
			w.killed = true
		}
		c.mu.Unlock()
		if w != nil {
			if w.cmd.Process.Kill() != nil {
				return false // it ended by itself
			}
			<-w.gone
			return true
		}
		select {
		case <-said:
		case <-timer.C:
			return false
		}
	}
}
