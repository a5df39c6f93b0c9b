package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/store/sqlite"
)

// processes are the parts that this test binary plays as another process; each
// returns an exit code.
var processes = map[string]func(path string) int{
	"create and claim": createAndClaim,
	"claim for ever":   claimForEver,
	"hold the lock":    holdTheLock,
}

func start(t *testing.T, part, path string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "SEMEL_SQLITE_TEST="+part, "SEMEL_SQLITE_PATH="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

// TestManyProcessesCreate: M14, M41. Twenty processes may create one database
// at the same time; of their claims of one key exactly one is made.
func TestManyProcessesCreate(t *testing.T) {
	path := newPath(t)
	type process struct {
		cmd *exec.Cmd
		out *bufio.Scanner
	}
	var all []process
	for range 20 {
		cmd, out := start(t, "create and claim", path)
		all = append(all, process{cmd, out})
	}
	won := 0
	for _, p := range all {
		for p.out.Scan() {
			if p.out.Text() == "won" {
				won++
			}
		}
		if err := p.cmd.Wait(); err != nil {
			t.Errorf("a process failed: %v", err)
		}
	}
	if won != 1 {
		t.Fatalf("%d processes made the claim, want exactly 1", won)
	}
}

func createAndClaim(path string) int {
	s, err := sqlite.Open(context.Background(), path, sqlite.Options{Create: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if _, err = claim(context.Background(), s, "one"); err == nil {
		fmt.Println("won")
	} else if !strings.Contains(err.Error(), semel.ErrStale.Error()) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if _, err := claim(context.Background(), s, fmt.Sprintf("own-%d", os.Getpid())); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := s.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// TestKilled: M1. What Commit acknowledged is there after kill -9.
func TestKilled(t *testing.T) {
	path := newPath(t)
	for round := range 3 {
		cmd, out := start(t, "claim for ever", path)
		var acknowledged []string
		for len(acknowledged) < 50 && out.Scan() {
			acknowledged = append(acknowledged, out.Text())
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for out.Scan() {
			acknowledged = append(acknowledged, out.Text())
		}
		_ = cmd.Wait() // killed
		s := create(t, path)
		for _, key := range acknowledged {
			if _, err := s.Load(t.Context(), "test", semel.Key(key)); err != nil {
				t.Errorf("round %d: %s was acknowledged: %v", round, key, err)
			}
		}
	}
}

func claimForEver(path string) int {
	s, err := sqlite.Open(context.Background(), path, sqlite.Options{Create: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for i := range 8 {
		go func() {
			for n := 0; ; n++ {
				key := fmt.Sprintf("%d-%d-%d", os.Getpid(), i, n)
				if _, err := claim(context.Background(), s, key); err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				os.Stdout.WriteString(key + "\n")
			}
		}()
	}
	time.Sleep(time.Minute)
	return 1
}

// TestLockedByAnother: a process that holds the lock delays a commit and does
// not fail it; a caller who gives up meanwhile learns that nothing was written.
func TestLockedByAnother(t *testing.T) {
	path := newPath(t)
	s := create(t, path)
	cmd, out := start(t, "hold the lock", path)
	if !out.Scan() {
		t.Fatal("the other process did not begin")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := claim(ctx, s, "impatient")
	wantError(t, err, semel.ErrUnavailable)
	patient := mustClaim(t, s, "patient")
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.LoadID(t.Context(), patient.ID); err != nil {
		t.Error(err)
	}
	_, err = s.Load(t.Context(), "test", "impatient")
	wantError(t, err, semel.ErrNotFound)
}

func holdTheLock(path string) int {
	s, err := sqlite.Open(context.Background(), path, sqlite.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := s.Exec(context.Background(), "begin immediate"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("holding")
	time.Sleep(700 * time.Millisecond)
	return 0
}

// TestFairTurns: section 6. A cron's claim beside a store that is never idle
// gets its turn soon: few claims of the other are made before it. How many these
// are does not depend on how fast the machine is.
func TestFairTurns(t *testing.T) {
	const most = 10_000 // about a hundred are usual
	path := newPath(t)
	s, db := create(t, path), raw(t, path)
	made := func() (n int) {
		t.Helper()
		if err := db.QueryRowContext(t.Context(), "select count(*) from operation").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	cmd, busy := start(t, "claim for ever", path)
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	go func() {
		for busy.Scan() { // so that it never waits for us
		}
	}()
	goesOn := func() {
		for before := made(); made() == before; time.Sleep(5 * time.Millisecond) {
		}
	}
	goesOn()
	longest := 0
	for i := range 20 {
		before := made()
		mustClaim(t, s, fmt.Sprint("cron-", i))
		longest = max(longest, made()-before)
	}
	goesOn()
	t.Logf("at most %d claims were made before one", longest)
	if longest > most {
		t.Errorf("a claim beside a busy process waited for %d of its claims", longest)
	}
}
