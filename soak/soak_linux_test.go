package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

const (
	workers      = 5
	roleVariable = "SEMEL_SOAK_ROLE"
)

var (
	operations = flag.Int("operations", 200, "how many intentions")
	seedFlag   = flag.Uint64("seed", 0, "of the faults and of the chaos; 0 draws one")
	during     = flag.Duration("during", 10*time.Second, "the time over which the intentions come in")
	runCount   = flag.Int("runs", 60, "how many runs")
	keepDir    = flag.String("dir", "", "keep the evidence below this directory")
	results    = flag.String("results", "", "write the report below this directory")
)

func TestMain(m *testing.M) {
	role, argument, _ := strings.Cut(os.Getenv(roleVariable), " ")
	var err error
	switch role {
	case "":
		m.Run()
		return
	case "worker":
		err = work(os.Stdin, os.Stdout)
	case "runner":
		err = execute(os.Stdin, os.Stdout)
	case "provider":
		seed, dir, _ := strings.Cut(argument, " ")
		n, _ := strconv.ParseUint(seed, 10, 64)
		err = provide(dir, n, os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, role, err)
		os.Exit(1)
	}
}

// TestSoak performs intentions of four kinds by five worker processes on one
// database, each intention asked for once, twice or three times, while the
// destination loses answers and workers are killed, frozen for longer than
// lease and send_by, and cut off from the database, which itself crashes,
// restarts and refuses writes. Then fresh workers recover what can be
// recovered, and the verdict counts effects in the destination's ledger.
func TestSoak(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64N(1 << 32)
	}
	for _, store := range []string{"sqlite", "postgres"} {
		t.Run(store, func(t *testing.T) {
			if *operations <= 2000 {
				t.Parallel() // the long soak has the machine to itself
			}
			soak(t, store, seed)
		})
	}
}

func soak(t *testing.T, store string, seed uint64) {
	began := time.Now()
	d := &desk{crew: newCrew(t, "worker", fmt.Sprintf("%d-%s", seed, store), seed, workers)}
	dir, log := d.dir, d.log
	defer log.Close()
	d.heard, d.gone = d.hear, d.forget
	intentions := intend(seed, *operations)
	write(t, filepath.Join(dir, intentionsFile), intentions) // before anything can happen
	for _, i := range intentions {
		d.jobs = append(d.jobs, job{Intention: i, at: time.Now().Add(time.Duration(d.rng.Int64N(int64(*during))))})
	}
	var at place
	if store == "sqlite" {
		at = newFile(dir)
	} else {
		at = newServer(t)
	}
	setUp, err := openStore(t.Context(), at.own())
	if err != nil {
		t.Fatal(err)
	}
	if err := setUp.Close(); err != nil {
		t.Fatal(err)
	}
	addresses, closeProvider := d.provider(seed)
	d.assignment = func(slot int) assignment {
		return assignment{DB: at.url(slot), Main: addresses[0], Short: addresses[1], Seed: seed, MayLose: at.mayLose(), DeadProxyPct: 20}
	}

	// The chaos.
	for slot := range workers {
		d.wg.Go(func() { d.keep(slot) })
	}
	calm, stop := context.WithCancel(t.Context())
	chaos := make(chan struct{})
	go func() {
		defer close(chaos)
		d.chaos(calm, at, rand.New(rand.NewPCG(seed, 2)), began.Add(*during))
	}()
	settled := d.dispatch(began.Add(*during + *during/4))
	stop()
	<-chaos
	chaosTook := time.Since(began)

	// The quiet phase: whoever is left dies, and fresh workers recover.
	d.mu.Lock()
	d.quiet = true
	d.killAll()
	at.calm()
	d.mu.Unlock()
	var claims map[string]Claim
	for until := time.Now().Add(4 * time.Minute); time.Now().Before(until) && d.reopen(claims) > 0; {
		if !d.dispatch(until) {
			t.Errorf("the quiet phase did not settle everything (the chaos did: %v)", settled)
			break
		}
		claims = d.waitForRecovery(at)
	}
	d.mu.Lock()
	d.ending = true
	for _, w := range d.hands {
		if w != nil {
			_ = w.in.Close()
		}
	}
	d.mu.Unlock()
	d.wg.Wait()
	closeProvider()
	for slot := range workers {
		if left, err := filepath.Glob(filepath.Join(dir, fmt.Sprintf("spool-%d", slot), "*")); err != nil || len(left) > 0 {
			t.Errorf("%d pieces of evidence are left in the spool of slot %d (%v)", len(left), slot, err)
		}
	}
	for i := range d.jobs {
		if j := &d.jobs[i]; j.told != "" && claims[j.Key].State != string(semel.Completed) {
			t.Errorf("%s: a worker was told that it is completed (%s), in the end it is %s", j.Key, j.told, claims[j.Key].State)
		}
	}
	var all []Claim
	for _, i := range intentions {
		if c, ok := claims[i.Key]; ok {
			all = append(all, c)
			delete(claims, i.Key)
		}
	}
	for _, c := range claims {
		all = append(all, c)
	}
	write(t, filepath.Join(dir, claimsFile), all)
	write(t, filepath.Join(dir, freezesFile), d.freezes)
	var report strings.Builder
	fmt.Fprintf(&report, "soak of %d operations on %s, seed %d\n", len(d.jobs), store, seed)
	d.took(&report, chaosTook, time.Since(began))
	n := d.n
	fmt.Fprintf(&report, "submissions %d, of them for an operation asked for before or at the same time: %d; not asked (store away, sent nothing): %d\n",
		n.submissions, n.duplicates, n.notAsked)
	d.report(&report, store, at)
	d.conclude(&report, fmt.Sprintf("%d-%s", seed, store))
}

// intend draws the intentions.
func intend(seed uint64, n int) []Intention {
	rng := rand.New(rand.NewPCG(seed, 0))
	var all []Intention
	for k := range n {
		i := Intention{
			Key: fmt.Sprintf("intention-%05d", k), Reference: fmt.Sprintf("ref-%d-%05d", seed, k),
			Amount: 100 + rng.Int64N(100_000), Resource: "charges", Final: rng.IntN(10) == 0,
		}
		switch draw := rng.IntN(100); {
		case draw < 35:
			i.Protection = Keyed
		case draw < 50:
			i.Protection = Short
		case draw < 80:
			i.Protection, i.Resource = Lookup, "transfers"
		default:
			i.Protection, i.Resource = None, "messages"
		}
		all = append(all, i)
	}
	return all
}

// reopen has everything asked for again that may still be done: at first what
// no worker was told to be completed, then what failed and is to be tried until
// it is done. It returns how much that is.
func (d *desk) reopen(claims map[string]Claim) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.jobs {
		j := &d.jobs[i]
		c, known := claims[j.Key]
		if claims == nil && j.told != "" || known && (c.State != string(semel.Failed) || j.Final) {
			continue
		}
		j.settled, j.asked, j.at = false, 0, time.Now()
		n++
	}
	return n
}

// waitForRecovery returns what Semel says about all operations, once nothing is
// left that it would do by itself.
func (d *desk) waitForRecovery(at place) map[string]Claim {
	store, err := openStore(d.t.Context(), at.own())
	if err != nil {
		d.t.Fatal(err)
	}
	defer store.Close()
	for until := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Second) {
		claims, open := d.claims(store)
		if open == 0 {
			return claims
		}
		if time.Now().After(until) {
			d.t.Errorf("%d operations are still not settled, and no person is asked", open)
			return claims
		}
	}
}
