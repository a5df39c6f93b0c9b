package main

import (
	"encoding/json"
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
	*crew
	jobs  []job
	quiet bool
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

// hear takes a worker's reply.
func (d *desk) hear(w *worker, line []byte) {
	var r reply
	if err := json.Unmarshal(line, &r); err != nil {
		d.t.Errorf("worker %s says %q: %v", w.name, line, err)
		return
	}
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

// forget takes back the orders of a worker that is gone.
func (d *desk) forget(w *worker) {
	for i := range w.orders {
		d.jobs[i].out--
		d.jobs[i].at = time.Now().Add(time.Duration(d.rng.IntN(500)) * time.Millisecond)
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
	for _, w := range d.hands {
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
		for _, slot := range d.rng.Perm(len(d.hands)) {
			if w := d.hands[slot]; sent < copies && w != nil && len(w.orders) < lanes && w.orders[i].IsZero() && d.send(w, i) {
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
