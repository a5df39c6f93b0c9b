package main

import (
	"bufio"
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
)

const (
	lanes     = 12              // orders that one worker has at a time
	redeliver = 4 * time.Second // an order without a reply goes to another worker, too
	patience  = 12              // times that an unknown is asked about in the quiet phase
)

// desk hands intentions to workers, at least once each, and again until
// nothing can be gained by asking.
type desk struct {
	t          *testing.T
	rng        *rand.Rand
	dir        string
	log        *os.File
	assignment func(slot int) assignment

	mu      sync.Mutex
	crew    []*worker // by slot
	jobs    []job
	quiet   bool
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
}

// job is an intention on its way.
type job struct {
	Intention
	at      time.Time // not before
	out     int       // orders without a reply
	tries   int
	settled bool
	asked   int    // times that it was unknown, in this phase
	told    string // the effect of which a worker said that it is completed
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
func (d *desk) command(role string) (*exec.Cmd, io.WriteCloser, io.Reader) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Stderr = d.log
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
func (d *desk) keep(slot int) {
	for generation := 1; ; generation++ {
		d.mu.Lock()
		if d.ending {
			d.mu.Unlock()
			return
		}
		a := d.assignment(slot)
		a.Name = fmt.Sprintf("w%d.%d", slot, generation)
		a.Spool = filepath.Join(d.dir, fmt.Sprintf("spool-%d", slot))
		cmd, in, out := d.command("worker")
		if err := cmd.Start(); err != nil {
			d.mu.Unlock()
			d.t.Error(err)
			return
		}
		d.n.workers++
		w := &worker{name: a.Name, slot: slot, cmd: cmd, in: in, orders: map[int]time.Time{}}
		d.crew[slot] = w
		_ = json.NewEncoder(in).Encode(a)
		d.mu.Unlock()
		for replies := bufio.NewScanner(out); replies.Scan(); {
			var r reply
			if err := json.Unmarshal(replies.Bytes(), &r); err != nil {
				d.t.Errorf("worker %s says %q: %v", w.name, replies.Text(), err)
				continue
			}
			d.heard(w, r)
		}
		err := cmd.Wait()
		d.mu.Lock()
		d.thaw(w)
		d.crew[slot] = nil
		for i := range w.orders {
			d.jobs[i].out--
			d.jobs[i].at = time.Now().Add(time.Duration(d.rng.IntN(500)) * time.Millisecond)
		}
		if err != nil && !w.killed {
			d.n.failedStarts++
			if w.replied {
				d.t.Errorf("worker %s ended by itself: %v: see %s", w.name, err, d.log.Name())
			}
		}
		ended := err == nil
		d.mu.Unlock()
		if ended {
			return
		}
		time.Sleep(300 * time.Millisecond)
	}
}

// heard takes a worker's reply.
func (d *desk) heard(w *worker, r reply) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.Number < 0 {
		d.n.spooled += r.Spooled
		return
	}
	w.replied = true
	delete(w.orders, r.Number)
	j := &d.jobs[r.Number]
	j.out--
	again := func(after time.Duration) {
		if at := time.Now().Add(after); !j.settled {
			j.at = at
		}
	}
	switch {
	case r.NotAsked != "":
		d.n.notAsked++
		again(300 * time.Millisecond)
	case r.Status == "completed":
		if j.told != "" && j.told != r.Effect {
			d.t.Errorf("%s: told completed with effect %q, and before with %q", j.Key, r.Effect, j.told)
		}
		j.settled, j.told = true, r.Effect
		d.n.told++
	case j.settled: // a reply from before
	case r.Status == "in_progress":
		again(700 * time.Millisecond)
	case r.Status == "failed" && r.Next == "done" && j.Final:
		j.settled = true
	case r.Status == "failed":
		again(200 * time.Millisecond)
	case r.Status == "unknown" && r.Next == "person":
		j.settled = true
	case r.Status == "unknown":
		j.asked++
		if d.quiet {
			j.settled = j.asked >= patience
			again(400 * time.Millisecond)
		} else {
			j.settled = j.asked >= 4 // recovery goes on, and the quiet phase asks again
			again(1500 * time.Millisecond)
		}
	default: // conflict, expired, incident: the verdict sees it
		j.settled = true
	}
}

// dispatch hands out what is due until all is settled or time is up.
func (d *desk) dispatch(until time.Time) bool {
	for time.Now().Before(until) {
		if d.round() == 0 {
			return true
		}
		time.Sleep(5 * time.Millisecond)
	}
	return false
}

// round hands out what is due now and returns how much is not settled.
func (d *desk) round() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	now, left := time.Now(), 0
	free := 0
	for _, w := range d.crew {
		if w == nil {
			continue
		}
		free += lanes - len(w.orders)
		for i, since := range w.orders {
			if j := &d.jobs[i]; now.Sub(since) > redeliver && j.out == 1 && !j.settled && j.at.After(now) {
				j.at = now
			}
		}
	}
	for i := range d.jobs {
		j := &d.jobs[i]
		if j.settled {
			continue
		}
		left++
		if free == 0 || j.at.After(now) {
			continue
		}
		copies := 1
		if chance := d.rng.IntN(100); chance < 5 {
			copies = 3
		} else if chance < 30 {
			copies = 2
		}
		sent := 0
		for _, slot := range d.rng.Perm(len(d.crew)) {
			if w := d.crew[slot]; sent < copies && w != nil && len(w.orders) < lanes && w.orders[i].IsZero() && d.send(w, i) {
				sent++
			}
		}
		free -= sent
		if sent > 0 {
			j.at = now.Add(redeliver)
			j.tries++
		}
		d.n.submissions += sent
		d.n.duplicates += max(0, sent-1)
		if j.tries > 1 {
			d.n.duplicates += min(sent, 1)
		}
	}
	return left
}

func (d *desk) send(w *worker, i int) bool {
	o := order{Do: &d.jobs[i].Intention, Number: i}
	switch d.rng.IntN(10) {
	case 0:
		o.Leave = time.Duration(1+d.rng.IntN(300)) * time.Millisecond
	case 1, 2, 3:
		o.Wait = time.Duration(d.rng.IntN(1000)) * time.Millisecond
	}
	if !d.tell(w, o) {
		return false
	}
	w.orders[i] = time.Now()
	d.jobs[i].out++
	return true
}

func (d *desk) tell(w *worker, o order) bool {
	line, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	_, err = w.in.Write(append(line, '\n'))
	return err == nil
}

// any is a worker that runs, as far as is known here; nil for none.
func (d *desk) any() *worker {
	for _, slot := range d.rng.Perm(len(d.crew)) {
		if w := d.crew[slot]; w != nil && w.frozen.IsZero() && !w.killed {
			return w
		}
	}
	return nil
}

func (d *desk) kill(w *worker) {
	w.killed = true
	_ = w.cmd.Process.Kill()
	d.n.kills++
}

// freeze stops a worker for so long, or until it is killed.
func (d *desk) freeze(w *worker, long time.Duration) {
	if w.cmd.Process.Signal(syscall.SIGSTOP) != nil {
		return
	}
	w.frozen = time.Now()
	d.n.stops++
	d.wg.Go(func() {
		time.Sleep(long)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.thaw(w)
	})
}

// thaw lets a worker go on. The freeze ends, for the record, before it does.
func (d *desk) thaw(w *worker) {
	if w.frozen.IsZero() {
		return
	}
	d.freezes = append(d.freezes, Freeze{Worker: w.name, From: w.frozen, To: time.Now()})
	w.frozen = time.Time{}
	_ = w.cmd.Process.Signal(syscall.SIGCONT)
}

// killAll ends every worker at once.
func (d *desk) killAll() {
	for _, w := range d.crew {
		if w != nil && !w.killed {
			d.kill(w)
		}
	}
}
