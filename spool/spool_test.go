package spool_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/spool"
)

// evidence n is told apart by its key.
func evidence(n int) semel.Evidence {
	return semel.Evidence{
		ID: semel.ID{1, byte(n)}, Scope: "billing", Key: semel.Key(fmt.Sprintf("invoice-%d", n)), Token: semel.ID{2, byte(n)},
		Event: semel.Event{
			Kind: semel.EvConfirmed, Attempt: 1, By: "worker", Reason: "a\x00b",
			Result:  &semel.Result{Reference: "ch_1", Status: 201, Body: []byte("\x00\xff{}"), Size: -1},
			AskedAt: time.Date(2026, 7, 1, 2, 3, 4, 5, time.UTC), CheckAfter: time.Minute,
		},
	}
}

func open(t *testing.T, dir string) *spool.Spool {
	t.Helper()
	s, err := spool.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func put(t *testing.T, s *spool.Spool, n ...int) {
	t.Helper()
	for _, n := range n {
		if err := s.Put(evidence(n)); err != nil {
			t.Fatal(err)
		}
	}
}

// drain takes everything there is, as keys.
func drain(t *testing.T, s *spool.Spool) []string {
	t.Helper()
	keys := []string{}
	if err := s.Each(t.Context(), func(e semel.Evidence) error { keys = append(keys, string(e.Key)); return nil }); err != nil {
		t.Error(err)
	}
	return keys
}

// M17: evidence comes back as it was put, oldest first, in another process's
// time too, and is gone after that.
func TestEvidenceComesBackUnchangedAndInOrder(t *testing.T) {
	dir := t.TempDir() + "/spool"
	put(t, open(t, dir), 1, 2)
	put(t, open(t, dir), 3)
	s := open(t, dir)
	var got []semel.Evidence
	if err := s.Each(t.Context(), func(e semel.Evidence) error { got = append(got, e); return nil }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]semel.Evidence{evidence(1), evidence(2), evidence(3)}, got); diff != "" {
		t.Errorf("evidence (-want +got):\n%s", diff)
	}
	if left := drain(t, s); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

// The order is that of the puts although the clock was set back by years.
func TestOrderSurvivesAClockSetBack(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	put(t, s, 1)
	old := only(t, dir)
	if err := os.Rename(old, filepath.Join(dir, "08"+filepath.Base(old)[2:])); err != nil {
		t.Fatal(err)
	}
	put(t, open(t, dir), 2)
	put(t, s, 3)
	if diff := cmp.Diff([]string{"invoice-1", "invoice-2", "invoice-3"}, drain(t, s)); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// What fn refuses stays; the next ones are not held up by it. An unavailable
// store ends the round.
func TestEvidenceStaysUntilItWasTaken(t *testing.T) {
	s := open(t, t.TempDir())
	put(t, s, 1, 2, 3)
	poison := errors.New("poison")
	err := s.Each(t.Context(), func(e semel.Evidence) error {
		if e.Key == "invoice-1" {
			return poison
		}
		return nil
	})
	if !errors.Is(err, poison) {
		t.Errorf("got %v, want poison", err)
	}
	put(t, s, 4)
	calls := 0
	err = s.Each(t.Context(), func(semel.Evidence) error { calls++; return semel.ErrUnavailable })
	if !errors.Is(err, semel.ErrUnavailable) || calls != 1 {
		t.Errorf("got %v after %d calls, want unavailable after 1", err, calls)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Each(ctx, func(semel.Evidence) error { calls++; return nil }); !errors.Is(err, context.Canceled) || calls != 1 {
		t.Errorf("got %v after %d calls, want canceled after 1", err, calls)
	}
	if diff := cmp.Diff([]string{"invoice-1", "invoice-4"}, drain(t, s)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

// Torn and foreign files are set aside and reported, keep their content and
// hold up nobody. A file from a newer semel stays where it is.
func TestStrangeFilesAreSetAside(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	write(t, outside, "do not read")
	tests := map[string]struct {
		prepare func(t *testing.T, dir, entry string)
		problem string
	}{
		"cut":   {func(t *testing.T, _, entry string) { truncate(t, entry, 200) }, "is torn"},
		"empty": {func(t *testing.T, _, entry string) { truncate(t, entry, 0) }, "is torn"},
		"one bit": {func(t *testing.T, _, entry string) {
			b, err := os.ReadFile(entry)
			if err != nil {
				t.Fatal(err)
			}
			b[len(b)/2] ^= 1
			write(t, entry, string(b))
		}, "is torn"},
		"huge": {func(t *testing.T, _, entry string) { truncate(t, entry, 100<<20) }, "is torn"},
		"note": {func(t *testing.T, dir, entry string) { rename(t, entry, dir+"/note.txt") }, "is not a file of the spool"},
		"link out of the spool": {func(t *testing.T, _, entry string) {
			remove(t, entry)
			if err := os.Symlink(outside, entry); err != nil {
				t.Fatal(err)
			}
		}, "is not a file of the spool"},
		"link to other evidence": {func(t *testing.T, dir, entry string) {
			rename(t, entry, dir+"/.hidden")
			if err := os.Symlink(".hidden", entry); err != nil {
				t.Fatal(err)
			}
		}, "is not a file of the spool"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			put(t, s, 1)
			test.prepare(t, dir, only(t, dir))
			put(t, s, 2)
			var keys []string
			err := s.Each(t.Context(), func(e semel.Evidence) error { keys = append(keys, string(e.Key)); return nil })
			var aside *spool.SetAsideError
			if !errors.As(err, &aside) || !strings.HasPrefix(aside.Problem, test.problem) {
				t.Fatalf("got %v, want it set aside since it %s", err, test.problem)
			}
			if diff := cmp.Diff([]string{"invoice-2"}, keys); diff != "" {
				t.Errorf("handed on (-want +got):\n%s", diff)
			}
			if _, err := os.Lstat(aside.Path); err != nil || !strings.HasSuffix(aside.Path, ".set-aside") {
				t.Errorf("%s: %v", aside.Path, err)
			}
			if left := drain(t, s); len(left) != 0 { // reported once
				t.Errorf("left: %q", left)
			}
		})
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != "do not read" {
		t.Errorf("the linked file is now %q, %v", b, err)
	}
}

func TestEvidenceOfANewerSemelStays(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	put(t, s, 1)
	entry := only(t, dir)
	b, err := os.ReadFile(entry)
	if err != nil {
		t.Fatal(err)
	}
	write(t, entry, strings.Replace(string(b), "semel-spool-1", "semel-spool-2", 1))
	put(t, s, 2)
	var keys []string
	err = s.Each(t.Context(), func(e semel.Evidence) error { keys = append(keys, string(e.Key)); return nil })
	if err == nil || !strings.Contains(err.Error(), "upgrade this one") || only(t, dir) != entry {
		t.Errorf("got %v, want it kept until an upgrade", err)
	}
	if diff := cmp.Diff([]string{"invoice-2"}, keys); diff != "" {
		t.Errorf("handed on (-want +got):\n%s", diff)
	}
}

// A writer that died before the rename left evidence all the same; one that
// died before the last byte did not. A living writer is left alone.
func TestFilesOfDeadWriters(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	put(t, s, 1)
	whole := strings.TrimSuffix(only(t, dir), ".evidence") + ".writing"
	rename(t, only(t, dir), whole)
	if left := drain(t, s); len(left) != 0 {
		t.Errorf("took %q from a writer at work", left)
	}
	torn := strings.Replace(whole, "-", "-0", 1)
	write(t, torn, "semel-spool-1 ")
	long := time.Now().Add(-time.Hour)
	if err := errors.Join(os.Chtimes(whole, long, long), os.Chtimes(torn, long, long)); err != nil {
		t.Fatal(err)
	}
	var keys []string
	err := s.Each(t.Context(), func(e semel.Evidence) error { keys = append(keys, string(e.Key)); return nil })
	var aside *spool.SetAsideError
	if diff := cmp.Diff([]string{"invoice-1"}, keys); diff != "" || !errors.As(err, &aside) {
		t.Errorf("%v, handed on (-want +got):\n%s", err, diff)
	}
}

// Several rounds at once: each piece is handed on by one of them.
func TestEachPieceIsHandedOnByOne(t *testing.T) {
	dir := t.TempDir()
	s, other := open(t, dir), open(t, dir)
	const pieces = 100
	for n := range pieces {
		put(t, s, n)
	}
	var mu sync.Mutex
	taken := map[string]int{}
	var rounds sync.WaitGroup
	for i := range 6 {
		rounds.Go(func() {
			from := []*spool.Spool{s, other}[i%2]
			err := from.Each(t.Context(), func(e semel.Evidence) error {
				mu.Lock()
				defer mu.Unlock()
				taken[string(e.Key)]++
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	rounds.Wait()
	for key, times := range taken {
		if times != 1 {
			t.Errorf("%s was handed on %d times", key, times)
		}
	}
	if len(taken) != pieces {
		t.Errorf("%d pieces were handed on, want %d", len(taken), pieces)
	}
}

func TestOnlyTheOwnerReadsAndWrites(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	put(t, open(t, dir), 1)
	for name, want := range map[string]os.FileMode{dir: 0o700, only(t, dir): 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %v", name, info.Mode(), err, want)
		}
	}
}

func TestUnsafeDirectoriesAreRefused(t *testing.T) {
	base := t.TempDir()
	for name, test := range map[string]struct {
		prepare func(t *testing.T, dir string) error
		want    string
	}{
		"writable by others": {func(_ *testing.T, dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777)) }, "chmod go-w"},
		"link":               {func(_ *testing.T, dir string) error { return os.Symlink(base, dir) }, "name the directory itself"},
		"file":               {func(_ *testing.T, dir string) error { return os.WriteFile(dir, nil, 0o600) }, "is not a directory"},
		"of another user": {func(t *testing.T, dir string) error {
			if os.Geteuid() != 0 {
				t.Skip("only root can make such a directory")
			}
			return errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, 4711, 4711))
		}, "belongs to another user"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(base, strings.ReplaceAll(name, " ", "-"))
			if err := test.prepare(t, dir); err != nil {
				t.Fatal(err)
			}
			if s, err := spool.Open(dir); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, %v, want an error with %q", s, err, test.want)
			}
		})
	}
	if _, err := spool.Open(filepath.Join(base, "no", "parent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want the missing parent", err)
	}
}

// The spool is bounded, and says what to do.
func TestFullSpoolSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	put(t, s, 1)
	truncate(t, only(t, dir), spool.MaxSize)
	err := s.Put(evidence(2))
	if !errors.Is(err, spool.ErrFull) || !strings.Contains(err.Error(), "semel op retry") {
		t.Errorf("got %v, want ErrFull with the next move", err)
	}
}

func only(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return strings.HasSuffix(e.Name(), ".set-aside") })
	if len(entries) != 1 {
		t.Fatalf("%d files, want one: %v", len(entries), entries)
	}
	return filepath.Join(dir, entries[0].Name())
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func truncate(t *testing.T, name string, size int64) {
	t.Helper()
	if err := os.Truncate(name, size); err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
}
