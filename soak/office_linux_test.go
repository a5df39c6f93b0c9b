package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

const (
	runners = 3 // and a fourth process that executes nothing, for a client
	few     = 6 // errands that one process has at a time
	rounds  = 9 // times that a person retries in the quiet phase
)

// office sends processes on errands, at least once each, until they are done.
type office struct {
	*crew
	errands []trip
}

// trip is an errand on its way.
type trip struct {
	errand
	at     time.Time // not before
	copies int       // how many processes are sent at the same time
	out    int       // without an answer
	tries  int
	done   bool
	run    string // that it was told
	begun  int    // times that it was told that its run is new
}

// TestSoakRuns executes runs of seven workflows by three worker processes on
// one database. Clients start runs, some by two processes at once, and send
// events before and after somebody waits for them; the destination loses
// answers and refuses; workers are killed, frozen for longer than their lease,
// drained, and cut off from the database, which itself crashes; people cancel,
// pause, resume and retry runs. Then all must come to rest, and the verdict
// holds the destination's ledger against the plans of the runs.
func TestSoakRuns(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64N(1 << 32)
	}
	for _, store := range []string{"sqlite", "postgres"} {
		t.Run(store, func(t *testing.T) {
			if *runCount <= 500 {
				t.Parallel()
			}
			soakRuns(t, store, seed)
		})
	}
}

func soakRuns(t *testing.T, store string, seed uint64) {
	began := time.Now()
	name := fmt.Sprintf("%d-%s-runs", seed, store)
	o := &office{crew: newCrew(t, "runner", name, seed, runners+1)}
	defer o.log.Close()
	o.heard, o.gone, o.also = o.hear, o.forget, o.people
	plans := planRuns(seed, *runCount)
	write(t, filepath.Join(o.dir, plansFile), plans) // before anything can happen
	write(t, filepath.Join(o.dir, intentionsFile), intended(plans))
	o.plan(plans, *during)
	var at place
	if store == "sqlite" {
		at = newFile(o.dir)
	} else {
		at = newServer(t)
	}
	own, err := openStore(t.Context(), at.own())
	if err != nil {
		t.Fatal(err)
	}
	if err := own.Close(); err != nil {
		t.Fatal(err)
	}
	addresses, closeProvider := o.provider(seed)
	o.assignment = func(slot int) assignment {
		return assignment{
			DB: at.url(slot), Main: addresses[0], Short: addresses[1], Seed: seed, MayLose: at.mayLose(),
			DeadProxyPct: 20, Client: slot == runners,
		}
	}
	for slot := range o.hands {
		o.wg.Go(func() { o.keep(slot) })
	}
	chaos := make(chan struct{})
	go func() {
		defer close(chaos)
		o.chaos(t.Context(), at, rand.New(rand.NewPCG(seed, 2)), began.Add(*during))
	}()
	o.dispatch(began.Add(*during))
	<-chaos
	took := time.Since(began)

	// The quiet phase: whoever is left dies, and fresh workers go on.
	o.mu.Lock()
	o.also = nil
	o.killAll()
	at.calm()
	o.mu.Unlock()
	if !o.dispatch(time.Now().Add(4 * time.Minute)) {
		t.Error("the quiet phase did not do every errand")
	}
	o.settle(at)
	o.mu.Lock()
	o.ending = true
	for _, w := range o.hands {
		if w != nil {
			_ = w.in.Close()
		}
	}
	o.mu.Unlock()
	o.wg.Wait()
	closeProvider()
	o.leave(at)

	var report strings.Builder
	fmt.Fprintf(&report, "soak of %d runs on %s, seed %d\n", len(plans), store, seed)
	o.took(&report, took, time.Since(began))
	n := o.n
	fmt.Fprintf(&report, "errands %d, of them by two processes at once or again: %d; not taken (store away): %d\n", n.submissions, n.duplicates, n.notAsked)
	fmt.Fprintf(&report, "starts that found their run: %d; cancelled %d, paused %d, resumed %d, retried %d; asked too late: %d; operations retried by a person: %d\n",
		n.found, n.asked["cancel"], n.asked["pause"], n.asked["resume"], n.asked["retry"], n.tooLate, n.operations)
	fmt.Fprintf(&report, "SIGTERM, to drain: %d\n", n.drains)
	o.report(&report, store, at)
	o.conclude(&report, name)
}

// plan makes errands of plans: each is started, each wait gets its event, a
// while before or after that, and a few are to be cancelled or paused.
func (o *office) plan(plans []Plan, over time.Duration) {
	o.n.asked = map[string]int{}
	now := time.Now()
	for i := range plans {
		at := now.Add(time.Duration(o.rng.Int64N(int64(over) * 9 / 10)))
		copies := 1
		if o.rng.IntN(4) == 0 {
			copies = 2
		}
		o.add(trip{errand: errand{Start: &plans[i]}, at: at, copies: copies})
		soon := at.Add(time.Duration(o.rng.IntN(1200)) * time.Millisecond)
		ask := func(verb semel.RunVerb, at time.Time) {
			o.add(trip{errand: errand{Ask: &Asked{plans[i].id(), string(verb)}}, at: at, copies: 1})
		}
		switch o.rng.IntN(25) {
		case 0:
			ask(semel.CancelRun, soon)
		case 1, 2:
			ask(semel.PauseRun, soon)
			ask(semel.ResumeRun, soon.Add(time.Duration(500+o.rng.IntN(2500))*time.Millisecond))
		}
		for _, n := range plans[i].Nodes {
			if n.Event == "" {
				continue
			}
			data, _ := json.Marshal(n.Event) // a string
			e := &semel.InboxEvent{ID: "event " + n.Event, Name: "paid", Match: n.Event, Data: data, By: "soak"}
			o.add(trip{errand: errand{Event: e}, at: at.Add(time.Duration(o.rng.IntN(5000)-2000) * time.Millisecond), copies: copies})
		}
	}
}

func (o *office) add(t trip) {
	t.Number = len(o.errands)
	o.errands = append(o.errands, t)
}

// people retry some runs that are held, or drain a worker.
func (o *office) people(rng *rand.Rand) {
	if w := o.any(); w != nil && rng.IntN(3) == 0 {
		w.killed = true // as far as handing out errands goes; it ends by itself
		o.n.drains++
		_ = w.cmd.Process.Signal(syscall.SIGTERM)
		return
	}
	if w := o.any(); w != nil {
		o.tell(w, errand{Number: -1, Tend: 10})
	}
}

// hear takes an answer.
func (o *office) hear(w *worker, line []byte) {
	var a answer
	if err := json.Unmarshal(line, &a); err != nil {
		o.t.Errorf("worker %s says %q: %v", w.name, line, err)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.n.spooled += a.Spooled
	o.n.asked["retry"] += a.Tended
	if a.Number < 0 {
		return
	}
	w.replied = true
	delete(w.orders, a.Number)
	t := &o.errands[a.Number]
	t.out--
	if a.Problem != "" {
		o.n.notAsked++
		if strings.Contains(a.Problem, "another input") {
			o.t.Errorf("errand %d: %s", a.Number, a.Problem)
			t.done = true
		}
		t.at = time.Now().Add(300 * time.Millisecond)
		return
	}
	t.done = true
	switch {
	case t.Start != nil:
		if t.run != "" && t.run != a.Run {
			o.t.Errorf("run %s has two identities: %s and %s", t.Start.id(), t.run, a.Run)
		}
		if t.run = a.Run; a.Existing {
			o.n.found++
		} else {
			t.begun++
		}
		if t.begun > 1 {
			o.t.Errorf("run %s was begun %d times", t.Start.id(), t.begun)
		}
	case t.Ask != nil && a.Refused:
		o.n.tooLate++
	case t.Ask != nil:
		o.n.asked[t.Ask.Verb]++
	}
}

// forget takes back the errands of a process that is gone.
func (o *office) forget(w *worker) {
	for i := range w.orders {
		o.errands[i].out--
		o.errands[i].at = time.Now().Add(time.Duration(o.rng.IntN(300)) * time.Millisecond)
	}
}

// dispatch sends processes on errands until all are done or time is up.
func (o *office) dispatch(until time.Time) bool {
	for time.Now().Before(until) {
		if o.round() == 0 {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

func (o *office) round() (left int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	for i := range o.errands {
		t := &o.errands[i]
		if t.done {
			continue
		}
		left++
		if t.at.After(now) {
			continue
		}
		sent := 0
		for _, slot := range o.rng.Perm(len(o.hands)) {
			w := o.hands[slot]
			if sent == t.copies || w == nil || w.killed || len(w.orders) >= few || !w.orders[i].IsZero() || !o.tell(w, t.errand) {
				continue
			}
			w.orders[i] = now
			t.out++
			sent++
		}
		o.n.submissions += sent
		o.n.duplicates += max(0, sent-1)
		if sent > 0 {
			if t.tries++; t.tries > 1 {
				o.n.duplicates++
			}
			t.at = now.Add(redeliver)
		}
	}
	return left
}
