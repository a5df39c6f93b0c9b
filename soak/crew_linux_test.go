package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

// crew is the processes that work, and what is done to them.
type crew struct {
	t          *testing.T
	role       string
	rng        *rand.Rand
	dir        string
	log        *os.File
	assignment func(slot int) assignment
	heard      func(w *worker, line []byte) // takes what a worker says
	gone       func(w *worker)              // it is dead, and has orders without a reply; under mu
	also       func(rng *rand.Rand)         // further chaos, now and then; under mu

	mu      sync.Mutex
	hands   []*worker // by slot
	ending  bool
	freezes []Freeze
	n       numbers
	wg      sync.WaitGroup
}

// numbers of the soak itself.
type numbers struct {
	submissions, duplicates, notAsked, kills, stops, longStops, workers, failedStarts, told int
	spooled, refused                                                                        int
	cuts, lostAsked, restarts, crashes, readonly, blackouts, locks                          int
	// of runs
	found, tooLate, drains, operations int
	asked                              map[string]int // by verb
}

// worker is one process in its slot.
type worker struct {
	name    string
	slot    int
	cmd     *exec.Cmd
	in      io.WriteCloser
	orders  map[int]time.Time // without a reply, since
	frozen  time.Time
	killed  bool
	replied bool
}

// command re-executes the test binary in a role.
func (c *crew) command(role string) (*exec.Cmd, io.WriteCloser, io.Reader) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Stderr = c.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		panic(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		panic(err)
	}
	return cmd, in, out
}

// keep runs one worker after the other in a slot.
func (c *crew) keep(slot int) {
	for generation := 1; ; generation++ {
		c.mu.Lock()
		if c.ending {
			c.mu.Unlock()
			return
		}
		a := c.assignment(slot)
		a.Name = fmt.Sprintf("w%d.%d", slot, generation)
		a.Spool = filepath.Join(c.dir, fmt.Sprintf("spool-%d", slot))
		cmd, in, out := c.command(c.role)
		if err := cmd.Start(); err != nil {
			c.mu.Unlock()
			c.t.Error(err)
			return
		}
		c.n.workers++
		w := &worker{name: a.Name, slot: slot, cmd: cmd, in: in, orders: map[int]time.Time{}}
		c.hands[slot] = w
		_ = json.NewEncoder(in).Encode(a)
		c.mu.Unlock()
		for replies := bufio.NewScanner(out); replies.Scan(); {
			c.heard(w, replies.Bytes())
		}
		err := cmd.Wait()
		c.mu.Lock()
		c.thaw(w)
		c.hands[slot] = nil
		c.gone(w)
		if err != nil && !w.killed {
			c.n.failedStarts++
			if w.replied {
				c.t.Errorf("worker %s ended by itself: %v: see %s", w.name, err, c.log.Name())
			}
		}
		c.mu.Unlock()
		time.Sleep(300 * time.Millisecond)
	}
}

func (c *crew) tell(w *worker, order any) bool {
	line, err := json.Marshal(order)
	if err != nil {
		panic(err)
	}
	_, err = w.in.Write(append(line, '\n'))
	return err == nil
}

// any is a worker that runs, as far as is known here; nil for none.
func (c *crew) any() *worker {
	for _, slot := range c.rng.Perm(len(c.hands)) {
		if w := c.hands[slot]; w != nil && w.frozen.IsZero() && !w.killed {
			return w
		}
	}
	return nil
}

func (c *crew) kill(w *worker) {
	w.killed = true
	_ = w.cmd.Process.Kill()
	c.n.kills++
}

// freeze stops a worker for so long, or until it is killed.
func (c *crew) freeze(w *worker, long time.Duration) {
	if w.cmd.Process.Signal(syscall.SIGSTOP) != nil {
		return
	}
	w.frozen = time.Now()
	c.n.stops++
	c.wg.Go(func() {
		time.Sleep(long)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.thaw(w)
	})
}

// thaw lets a worker go on. The freeze ends, for the record, before it does.
func (c *crew) thaw(w *worker) {
	if w.frozen.IsZero() {
		return
	}
	c.freezes = append(c.freezes, Freeze{Worker: w.name, From: w.frozen, To: time.Now()})
	w.frozen = time.Time{}
	_ = w.cmd.Process.Signal(syscall.SIGCONT)
}

// killAll ends every worker at once.
func (c *crew) killAll() {
	for _, w := range c.hands {
		if w != nil && !w.killed {
			c.kill(w)
		}
	}
}

// provider starts the destination's process.
func (c *crew) provider(seed uint64) (addresses []string, end func()) {
	cmd, in, out := c.command(fmt.Sprintf("provider %d %s", seed, c.dir))
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &addresses)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return addresses, func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil {
			c.t.Errorf("the destination: %v", err)
		}
	}
}

// chaos does one thing after the other until ctx ends.
func (c *crew) chaos(ctx context.Context, at place, rng *rand.Rand, until time.Time) {
	seconds := func(least, most int) time.Duration {
		return time.Duration(least*1000+rng.IntN((most-least)*1000)) * time.Millisecond
	}
	for time.Now().Before(until) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(seconds(0, 2) * 6 / 10):
		}
		if c.also != nil && rng.IntN(3) == 0 {
			c.mu.Lock()
			c.also(rng)
			c.mu.Unlock()
			continue
		}
		draw := rng.IntN(100)
		if draw >= 84 {
			if err := at.trouble(ctx, c, rng); err != nil && ctx.Err() == nil {
				c.t.Error(err)
			}
			continue
		}
		c.mu.Lock()
		if w := c.any(); w != nil {
			switch {
			case draw < 30:
				c.kill(w)
			case draw < 48:
				c.freeze(w, seconds(2, 5)) // beyond lease and send_by
			case draw < 54:
				c.n.longStops++
				c.freeze(w, seconds(11, 16)) // beyond proof of absence and the short window
			case draw < 66:
				c.n.cuts++
				at.cut(c, w, seconds(1, 7))
			case draw < 81:
				n := 1 + rng.IntN(4)
				c.n.lostAsked += n
				at.lose(c, w, n)
			default:
				c.n.blackouts++
				c.killAll()
			}
		}
		c.mu.Unlock()
	}
}

// claims is what Semel says about all operations, and how many of them it would
// still do something about by itself.
func (c *crew) claims(store semel.Store) (claims map[string]Claim, open int) {
	claims = map[string]Claim{}
	c.n.refused = 0
	now, err := store.Now(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	a := c.assignment(0)
	for _, p := range Protections() {
		for o, err := range store.List(c.t.Context(), semel.Filter{Scope: scopeOf(p)}) {
			if err != nil {
				c.t.Fatal(err)
			}
			next := semel.Decide(&o, o.Contract.Stricter(a.contract(p)), now)
			if o.State == semel.InProgress || o.State == semel.Unknown && next.Kind != semel.MovePerson {
				open++
			}
			for _, a := range o.Attempts {
				if a.Number > 1 && a.Outcome == semel.EvRefused {
					c.n.refused++
				}
			}
			claims[string(o.Key)] = Claim{
				Key: string(o.Key), State: string(o.State), Reason: o.Reason, Incident: o.Incident, Next: string(next.Kind), Why: next.Reason,
				Attempts: o.Attempt, KeySince: o.KeySince, ListedAt: now,
			}
		}
	}
	return claims, open
}
