package spool_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/spool"
)

// TestMain is also the program of the processes that are killed.
func TestMain(m *testing.M) {
	role, dir := os.Getenv("SPOOL_ROLE"), os.Getenv("SPOOL_DIR")
	if role == "" {
		os.Exit(m.Run())
	}
	if err := play(role, dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func play(role, dir string) error {
	s, err := spool.Open(dir)
	if err != nil {
		return err
	}
	first, _ := strconv.Atoi(os.Getenv("SPOOL_FIRST"))
	switch role {
	case "put for ever":
		for n := first; ; n++ {
			if err := s.Put(evidence(n)); err != nil {
				return err
			}
			fmt.Println(evidence(n).Key) // acknowledged
		}
	case "hand on":
		return s.Each(context.Background(), func(e semel.Evidence) error {
			_, err := fmt.Println(e.Key)
			time.Sleep(time.Millisecond)
			return err
		})
	case "hold":
		return s.Each(context.Background(), func(e semel.Evidence) error {
			fmt.Println(e.Key)
			time.Sleep(time.Hour) // until it is killed
			return nil
		})
	}
	return errors.New("no such role")
}

func process(t *testing.T, role, dir string, first int) (cmd *exec.Cmd, lines *bufio.Scanner) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SPOOL_ROLE="+role, "SPOOL_DIR="+dir, "SPOOL_FIRST="+strconv.Itoa(first))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, bufio.NewScanner(out)
}

// M1, M17: kill -9 at any moment loses nothing that was acknowledged, and
// leaves nothing that holds up the rest.
func TestKilledWritersLoseNothingAcknowledged(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	acknowledged := map[string]bool{}
	for round := range 10 {
		cmd, lines := process(t, "put for ever", dir, 1000*round)
		var once sync.Once
		for lines.Scan() {
			acknowledged[lines.Text()] = true
			once.Do(func() {
				time.AfterFunc(time.Duration(rand.IntN(30_000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
			})
		}
		_ = cmd.Wait() // killed
	}
	// Files of dead writers are taken up after a minute.
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-time.Hour)
	for _, e := range entries {
		if err := os.Chtimes(filepath.Join(dir, e.Name()), long, long); err != nil {
			t.Fatal(err)
		}
	}
	var aside *spool.SetAsideError
	err = open(t, dir).Each(t.Context(), func(e semel.Evidence) error {
		delete(acknowledged, string(e.Key))
		return nil
	})
	if err != nil && !errors.As(err, &aside) {
		t.Error(err)
	}
	if len(acknowledged) > 0 {
		t.Errorf("lost: %v", acknowledged)
	}
}

// Processes that hand on at once share the work; what a killed one held is
// handed on by another.
func TestKilledReadersLoseNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	s := open(t, dir)
	const pieces = 60
	for n := range pieces {
		put(t, s, n)
	}
	holder, lines := process(t, "hold", dir, 0)
	if !lines.Scan() || lines.Text() != "invoice-0" {
		t.Fatalf("the holder has %q, %v", lines.Text(), lines.Err())
	}
	taken := map[string]int{}
	var mu sync.Mutex
	var readers sync.WaitGroup
	for range 3 {
		cmd, lines := process(t, "hand on", dir, 0)
		readers.Go(func() {
			for lines.Scan() {
				mu.Lock()
				taken[lines.Text()]++
				mu.Unlock()
			}
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
	readers.Wait()
	if len(taken) != pieces-1 || taken["invoice-0"] != 0 {
		t.Errorf("%d pieces handed on, the held one %d times; want the other %d", len(taken), taken["invoice-0"], pieces-1)
	}
	for key, times := range taken {
		if times != 1 {
			t.Errorf("%s was handed on %d times", key, times)
		}
	}
	_ = holder.Process.Kill()
	_ = holder.Wait()
	if got := drain(t, s); len(got) != 1 || got[0] != "invoice-0" {
		t.Errorf("after the kill: %q, want invoice-0", got)
	}
}

// A full disk keeps what is there and says what to do.
func TestFullDiskSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("semel", dir, "tmpfs", 0, "size=64k,mode=700"); err != nil {
		t.Skipf("only root can make a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	s := open(t, dir)
	n := 0
	for ; ; n++ {
		err := s.Put(evidence(n))
		if err == nil {
			continue
		}
		if !errors.Is(err, spool.ErrFull) || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "free some space") {
			t.Errorf("got %v, want ErrFull with the next move", err)
		}
		break
	}
	if got := drain(t, s); len(got) != n || n == 0 {
		t.Errorf("%d pieces left of %d", len(got), n)
	}
	put(t, s, n) // there is room again
}
