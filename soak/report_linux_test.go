package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// newCrew is one that has no hands yet, and a directory for its evidence.
func newCrew(t *testing.T, role, name string, seed uint64, hands int) *crew {
	dir := t.TempDir()
	if *keepDir != "" {
		dir = filepath.Join(*keepDir, name)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	log, err := os.Create(filepath.Join(dir, "workers.log"))
	if err != nil {
		t.Fatal(err)
	}
	return &crew{t: t, role: role, rng: rand.New(rand.NewPCG(seed, 1)), dir: dir, log: log, hands: make([]*worker, hands)}
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

// took writes what was measured, and for how long.
func (c *crew) took(w io.Writer, chaos, all time.Duration) {
	commit, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		commit = []byte("unknown")
	}
	fmt.Fprintf(w, "commit %s, %s %s/%s, %d processors\n", bytes.TrimSpace(commit), runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	fmt.Fprintf(w, "duration %v, of which chaos %v\n\n", all.Round(time.Second), chaos.Round(time.Second))
}

// report writes what was done to the crew.
func (c *crew) report(w io.Writer, store string, at place) {
	n := c.n
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

// conclude judges what the crew left behind, and ends the report with it.
func (c *crew) conclude(report *strings.Builder, name string) {
	if text, err := os.ReadFile(c.log.Name()); err != nil || bytes.Contains(text, []byte("panic:")) || bytes.Contains(text, []byte("fatal error:")) || bytes.Contains(text, []byte("DATA RACE")) {
		c.t.Errorf("a worker panicked: see %s (%v)", c.log.Name(), err)
	}
	e, err := read(c.dir)
	if err != nil {
		c.t.Fatal(err)
	}
	v := judge(e)
	v.print(report)
	c.t.Log("\n" + report.String())
	if !v.passed() {
		c.t.Errorf("the verdict is FAIL; the evidence is in %s (keep it with -dir)", c.dir)
	}
	if *results == "" {
		return
	}
	if err := errors.Join(os.MkdirAll(*results, 0o755), os.WriteFile(filepath.Join(*results, name+".txt"), []byte(report.String()), 0o600)); err != nil {
		c.t.Error(err)
	}
}
