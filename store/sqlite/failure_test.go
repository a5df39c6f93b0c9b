package sqlite_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/store/sqlite"
)

// TestPoisonRow: section 6, M5. A row that the database cannot take fails
// alone; those who shared its transaction commit.
func TestPoisonRow(t *testing.T) {
	path := newPath(t)
	s := create(t, path)
	for _, event := range []string{"before insert on operation", "before update on operation", "before insert on evidence"} {
		table := strings.Fields(event)[3]
		match := "new.key = 'poison'"
		if table == "evidence" {
			match = "new.operation in (select id from operation where key = 'poison')"
		}
		execRaw(t, raw(t, path), fmt.Sprintf("create trigger poison %s when %s begin select raise(abort, 'poison'); end", event, match))
		o := newOperation("poison")
		var sound []semel.Operation
		for i := range 64 {
			sound = append(sound, newOperation(fmt.Sprintf("%s-%d", event, i)))
		}
		bad := change(t, o, claimEvent())
		if event != "before insert on operation" {
			o = load(t, s, "poison")
			ev := semel.Event{Kind: semel.EvJoined}
			if table == "evidence" {
				o.Version = 2 // its row says 1 yet: the update comes first and must be undone
				execRaw(t, raw(t, path), "update operation set version = 2, second = '{\"kind\":\"joined\"}', second_at = updated_at, second_token = id where key = 'poison'")
			}
			bad = change(t, o, ev)
		}
		var wg sync.WaitGroup
		for i, o := range sound {
			wg.Go(func() {
				if _, err := s.Commit(t.Context(), change(t, o, claimEvent())); err != nil {
					t.Errorf("%s: a sound row failed: %v", event, err)
				}
			})
			if i == 30 {
				wg.Go(func() {
					_, err := s.Commit(t.Context(), bad)
					if err == nil || !strings.Contains(err.Error(), "poison") || errors.Is(err, semel.ErrUnconfirmed) {
						t.Errorf("%s: the poison row: %v", event, err)
					}
				})
			}
		}
		wg.Wait()
		execRaw(t, raw(t, path), "drop trigger poison")
		if event == "before insert on operation" {
			mustClaim(t, s, "poison")
		} else if got := load(t, s, "poison"); got.Version != o.Version {
			t.Errorf("%s: half of a change was written: version %d, want %d", event, got.Version, o.Version)
		}
	}
}

func load(t testing.TB, s *sqlite.Store, key semel.Key) semel.Operation {
	t.Helper()
	o, err := s.Load(t.Context(), "test", key)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestDiskFull: nothing was written, the error says what to do, and the store
// goes on when there is space again.
func TestDiskFull(t *testing.T) {
	s := create(t, newPath(t))
	mustClaim(t, s, "before")
	if err := s.Exec(t.Context(), "pragma max_page_count = 1"); err != nil {
		t.Fatal(err)
	}
	o := newOperation("big")
	o.Request.Body = make([]byte, 1<<20)
	_, err := s.Commit(t.Context(), change(t, o, claimEvent()))
	wantError(t, err, semel.ErrUnavailable, "disk is full", "free some space")
	if _, err := s.LoadID(t.Context(), o.ID); !errors.Is(err, semel.ErrNotFound) {
		t.Errorf("the claim is there: %v", err)
	}
	mustClaim(t, s, "after")
}

// shmSize is SQLITE_IOERR_SHMSIZE.
type shmSize struct{}

func (shmSize) Error() string { return "disk I/O error (4874)" }
func (shmSize) Code() int     { return 4874 }

// TestNoSpaceForSharedMemoryIsAFullDisk: SQLite calls it an I/O error.
func TestNoSpaceForSharedMemoryIsAFullDisk(t *testing.T) {
	if err := sqlite.Explain("/d/semel.db", shmSize{}); !strings.Contains(err.Error(), "the disk is full: free some space") {
		t.Errorf("it says: %v", err)
	}
}

// TestFileGone: a claim that nobody else can see is no claim.
func TestFileGone(t *testing.T) {
	for name, act := range map[string]func(path string) error{
		"deleted": os.Remove,
		"moved":   func(path string) error { return os.Rename(path, path+".old") },
		"replaced": func(path string) error {
			return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			s := create(t, path)
			mustClaim(t, s, "before")
			if err := act(path); err != nil {
				t.Fatal(err)
			}
			_, err := claim(t.Context(), s, "after")
			wantError(t, err, semel.ErrUnavailable, "moved, deleted or replaced", "restart")
		})
	}
}

// TestReadOnly: a connection that cannot write says so and wrote nothing.
func TestReadOnly(t *testing.T) {
	s := create(t, newPath(t))
	if err := s.Exec(t.Context(), "pragma query_only = 1"); err != nil {
		t.Fatal(err)
	}
	_, err := claim(t.Context(), s, "k")
	wantError(t, err, semel.ErrUnavailable, "cannot be written", "mode of the file")
}

// TestDamaged: damage is named as such, by Open or by the first use.
func TestDamaged(t *testing.T) {
	path := newPath(t)
	s := create(t, path)
	for i := range 200 {
		mustClaim(t, s, fmt.Sprint("k", i))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 4096; i < len(b); i++ {
		b[i] = 0xa5
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err = sqlite.Open(t.Context(), path, sqlite.Options{})
	if err == nil {
		defer s.Close()
		_, err = claim(t.Context(), s, "k")
	}
	wantError(t, err, semel.ErrUnavailable, "damaged", "backup")
}

// TestUnreadableRow: one row that cannot be read hides no other from a listing
// or from recovery.
func TestUnreadableRow(t *testing.T) {
	path := newPath(t)
	s := create(t, path)
	for _, key := range []string{"a", "bad", "c"} {
		mustClaim(t, s, key)
	}
	execRaw(t, raw(t, path), "update operation set first = 'nonsense' where key = 'bad'")
	s.Shift(time.Hour)
	due, err := s.Due(t.Context(), 10)
	if err != nil || len(due) != 2 {
		t.Errorf("due: %d operations, error %v, want 2", len(due), err)
	}
	var sound, bad int
	for _, err := range s.List(t.Context(), semel.Filter{}) {
		if err != nil {
			bad++
			wantError(t, err, semel.ErrUnavailable)
		} else {
			sound++
		}
	}
	if sound != 2 || bad != 1 {
		t.Errorf("listed %d sound and %d bad rows, want 2 and 1", sound, bad)
	}
	_, err = s.Load(t.Context(), "test", "bad")
	wantError(t, err, semel.ErrUnavailable, "event 1")
}

// TestRestoredBackup: section 6. An older copy in the database's place stops
// claims, but no outcomes, until a person accepts it.
func TestRestoredBackup(t *testing.T) {
	path := newPath(t)
	backup := filepath.Join(t.TempDir(), "backup.db")
	s := create(t, path)
	old := mustClaim(t, s, "old")
	other := raw(t, path)
	execRaw(t, other, "vacuum into '"+backup+"'")
	if err := other.Close(); err != nil { // with its log, which belongs to the file that is lost
		t.Fatal(err)
	}
	mustClaim(t, s, "lost with the disk")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, path, sqlite.Options{}) // an ordinary restart
	mustClaim(t, s, "also lost")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(backup)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // it stays so
		s = openStore(t, path, sqlite.Options{})
		_, err = claim(t.Context(), s, "new")
		wantError(t, err, semel.ErrUnavailable, "older copy", "--whole-until")
		if r, err := s.Restoration(t.Context()); err != nil || !r.Suspect || !r.WholeUntil.Equal(old.CreatedAt) {
			t.Fatalf("restoration %+v, error %v, want whole until %v", r, err, old.CreatedAt)
		}
	}
	if _, err := s.Commit(t.Context(), change(t, old, semel.Event{Kind: semel.EvConfirmed, Attempt: 1})); err != nil {
		t.Errorf("an outcome: %v", err)
	}
	if err := s.Accept(t.Context(), old.CreatedAt); err != nil {
		t.Fatal(err)
	}
	mustClaim(t, s, "new")
	r, err := s.Restoration(t.Context())
	if err != nil || r.Suspect || !r.WholeUntil.Equal(old.CreatedAt) || r.AcceptedAt.IsZero() {
		t.Fatalf("restoration %+v, error %v", r, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	mustClaim(t, openStore(t, path, sqlite.Options{}), "after a restart")
}

// TestVirtualTime: the store works inside a bubble of virtual time.
func TestVirtualTime(t *testing.T) {
	path := newPath(t)
	synctest.Test(t, func(t *testing.T) {
		s := create(t, path)
		other := create(t, path)
		o := mustClaim(t, s, "k")
		time.Sleep(59 * time.Second)
		if due, err := s.Due(t.Context(), 10); err != nil || len(due) != 0 {
			t.Fatalf("%d are due, error %v", len(due), err)
		}
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				if _, err := claim(t.Context(), []*sqlite.Store{s, other}[i%2], fmt.Sprint("k", i)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		time.Sleep(time.Hour)
		due, err := s.Due(t.Context(), 1)
		if err != nil || len(due) != 1 || due[0].ID != o.ID {
			t.Fatalf("due %v, error %v", due, err)
		}
	})
}
