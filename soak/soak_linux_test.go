package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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
	dir := t.TempDir()
	if *keepDir != "" {
		dir = filepath.Join(*keepDir, fmt.Sprintf("%d-%s", seed, store))
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	log, err := os.Create(filepath.Join(dir, "workers.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	d := &desk{t: t, rng: rand.New(rand.NewPCG(seed, 1)), dir: dir, log: log, crew: make([]*worker, workers)}
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
	for _, w := range d.crew {
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
	if text, err := os.ReadFile(log.Name()); err != nil || bytes.Contains(text, []byte("panic:")) || bytes.Contains(text, []byte("fatal error:")) || bytes.Contains(text, []byte("DATA RACE")) {
		t.Errorf("a worker panicked: see %s (%v)", log.Name(), err)
	}

	evidence, err := read(dir)
	if err != nil {
		t.Fatal(err)
	}
	v := judge(evidence)
	var report strings.Builder
	d.report(&report, store, seed, at, chaosTook, time.Since(began))
	v.print(&report)
	t.Log("\n" + report.String())
	if !v.passed() {
		t.Errorf("the verdict is FAIL; the evidence is in %s (keep it with -dir)", dir)
	}
	if *results != "" {
		name := filepath.Join(*results, fmt.Sprintf("%d-%s.txt", seed, store))
		if err := errors.Join(os.MkdirAll(*results, 0o755), os.WriteFile(name, []byte(report.String()), 0o600)); err != nil {
			t.Error(err)
		}
	}
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

func write[T any](t *testing.T, path string, all []T) {
	t.Helper()
	var b bytes.Buffer
	for e, i := json.NewEncoder(&b), 0; i < len(all); i++ {
		if err := e.Encode(all[i]); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = f.Write(b.Bytes()); err == nil {
		err = f.Sync()
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
}

// provider starts the destination's process.
func (d *desk) provider(seed uint64) (addresses []string, end func()) {
	cmd, in, out := d.command(fmt.Sprintf("provider %d %s", seed, d.dir))
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &addresses)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	return addresses, func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil {
			d.t.Errorf("the destination: %v", err)
		}
	}
}

// chaos does one thing after the other until ctx ends.
func (d *desk) chaos(ctx context.Context, at place, rng *rand.Rand, until time.Time) {
	seconds := func(least, most int) time.Duration {
		return time.Duration(least*1000+rng.IntN((most-least)*1000)) * time.Millisecond
	}
	for time.Now().Before(until) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(seconds(0, 2) * 6 / 10):
		}
		draw := rng.IntN(100)
		if draw >= 84 {
			if err := at.trouble(ctx, d, rng); err != nil && ctx.Err() == nil {
				d.t.Error(err)
			}
			continue
		}
		d.mu.Lock()
		if w := d.any(); w != nil {
			switch {
			case draw < 30:
				d.kill(w)
			case draw < 48:
				d.freeze(w, seconds(2, 5)) // beyond lease and send_by
			case draw < 54:
				d.n.longStops++
				d.freeze(w, seconds(11, 16)) // beyond proof of absence and the short window
			case draw < 66:
				d.n.cuts++
				at.cut(d, w, seconds(1, 7))
			case draw < 81:
				n := 1 + rng.IntN(4)
				d.n.lostAsked += n
				at.lose(d, w, n)
			default:
				d.n.blackouts++
				d.killAll()
			}
		}
		d.mu.Unlock()
	}
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

func (d *desk) claims(store semel.Store) (claims map[string]Claim, open int) {
	claims = map[string]Claim{}
	d.n.refused = 0
	now, err := store.Now(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	a := d.assignment(0)
	for _, p := range Protections() {
		for o, err := range store.List(d.t.Context(), semel.Filter{Scope: scopeOf(p)}) {
			if err != nil {
				d.t.Fatal(err)
			}
			next := semel.Decide(&o, o.Contract.Stricter(a.contract(p)), now)
			if o.State == semel.InProgress || o.State == semel.Unknown && next.Kind != semel.MovePerson {
				open++
			}
			for _, a := range o.Attempts {
				if a.Number > 1 && a.Outcome == semel.EvRefused {
					d.n.refused++
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

// report writes what was done.
func (d *desk) report(w io.Writer, store string, seed uint64, at place, chaos, all time.Duration) {
	commit, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		commit = []byte("unknown")
	}
	n := d.n
	fmt.Fprintf(w, "soak of %d operations on %s, seed %d\n", len(d.jobs), store, seed)
	fmt.Fprintf(w, "commit %s, %s %s/%s, %d processors\n", bytes.TrimSpace(commit), runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	fmt.Fprintf(w, "duration %v, of which chaos %v\n\n", all.Round(time.Second), chaos.Round(time.Second))
	fmt.Fprintf(w, "submissions %d, of them for an operation asked for before or at the same time: %d; not asked (store away, sent nothing): %d\n",
		n.submissions, n.duplicates, n.notAsked)
	fmt.Fprintf(w, "worker processes %d; SIGKILL %d (in %d of the events all workers at once); could not start, the store being away: %d\n",
		n.workers, n.kills, n.blackouts, n.failedStarts)
	fmt.Fprintf(w, "SIGSTOP %d beyond lease and send_by (%v), %d of them beyond proof of absence and the short window\n", n.stops, lease, n.longStops)
	lost := at.lost()
	if lost < 0 {
		lost = int64(n.lostAsked)
	}
	fmt.Fprintf(w, "cut off from the database alone: %d; acknowledgements of commits lost: %d\n", n.cuts, lost)
	fmt.Fprintf(w, "second and later attempts refused (by the destination, by a proxy that is not there, by the check before sending): %d\n", n.refused)
	fmt.Fprintf(w, "evidence that a dead or cut-off worker left in its spool for its successor: %d\n", n.spooled)
	if store == "sqlite" {
		fmt.Fprintf(w, "write lock held by another program for up to 4 s: %d\n\n", n.locks)
	} else {
		fmt.Fprintf(w, "database crashed %d, restarted %d, read-only for up to 3.5 s: %d\n\n", n.crashes, n.restarts, n.readonly)
	}
}
