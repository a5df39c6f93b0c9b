package sqlite_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/store/sqlite"
)

// TestOpenRefuses: each refusal says what to do next, and leaves what is there
// alone.
func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("text", strings.Repeat("this is not a database\n", 100))
	write("empty", "")
	execRaw(t, raw(t, at("foreign")), "create table cookies (id integer)")
	create(t, at("newer"))
	execRaw(t, raw(t, at("newer")), "insert into goose_db_version (version_id, is_applied) values (7, 1)")
	for _, c := range []struct {
		path   string
		create bool
		says   []string
	}{
		{at("missing"), false, []string{"does not exist", "--create"}},
		{at("no/such/directory"), false, []string{"does not exist"}},
		{at("no/such/directory"), true, []string{"no directory " + at("no/such"), "mkdir"}},
		{dir, false, []string{"is a directory", "semel.db"}},
		{dir, true, []string{"is a directory"}},
		{at("text"), false, []string{"not an SQLite database", "check the path"}},
		{at("text"), true, []string{"not an SQLite database"}},
		{at("text/below"), true, []string{"not a directory"}},
		{at("empty"), false, []string{"semel migrate up"}},
		{at("foreign"), false, []string{"belongs to another program"}},
		{at("foreign"), true, []string{"belongs to another program"}},
		{at("newer"), false, []string{"schema 7 is newer than this binary (2): upgrade semel"}},
		{at("newer"), true, []string{"upgrade semel"}},
		{"/dev/null", true, []string{"not a regular file"}},
		{"/sys/semel.db", true, []string{"cannot be created", "permissions of /sys"}},
	} {
		s, err := sqlite.Open(t.Context(), c.path, sqlite.Options{Create: c.create})
		if err == nil {
			t.Errorf("%s: opened", c.path)
			_ = s.Close()
			continue
		}
		wantError(t, err, nil, c.says...)
	}
	for _, name := range []string{"missing", "no"} {
		if _, err := os.Stat(at(name)); err == nil {
			t.Errorf("%s was made", name)
		}
	}
}

// TestOddPaths: a path is taken literally.
func TestOddPaths(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a b.db", "50%.db", "what?.db", "a#b.db", "é.db", "a&b=c.db", "mode=memory"} {
		path := filepath.Join(dir, name)
		mustClaim(t, create(t, path), "k")
		info, err := os.Stat(path)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, want 0600: operations hold what was sent", name, info.Mode())
		}
	}
}

// TestMigrate: status, up and sql; each is safe to repeat.
func TestMigrate(t *testing.T) {
	path := newPath(t)
	wantError(t, sqlite.Migrate(t.Context(), path), os.ErrNotExist, "does not exist")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, want := range []sqlite.MigrationStatus{{Current: 0, Latest: 2, Pending: []string{"0001_operations.sql", "0002_runs.sql"}}, {Current: 2, Latest: 2}, {Current: 2, Latest: 2}} {
		got, err := sqlite.Status(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("status (-want +got):\n%s", diff)
		}
		if err := sqlite.Migrate(t.Context(), path); err != nil {
			t.Fatal(err)
		}
	}
	mustClaim(t, openStore(t, path, sqlite.Options{}), "k")
	execRaw(t, raw(t, newPath(t)), sqlite.SQL())
}

// TestReleasedSchema: released migrations never change, so that every database
// has one history. 0.2 is not released: until then update the sum of 0002.
func TestReleasedSchema(t *testing.T) {
	sums := map[string]string{
		"0001_operations.sql": "781c772ece22d5ea7e5bdf6bf3ea9f30289a8825e56f8e5619f05b062e08571f",
		"0002_runs.sql":       "4146e63aa4975adffa071843c4895f0598beb4a3d79d984685e8796f9c422e68",
	}
	files, err := filepath.Glob("schema/*")
	if err != nil || len(files) != len(sums) {
		t.Fatalf("%d files, %d sums, error %v", len(files), len(sums), err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(b)
		if got, want := hex.EncodeToString(sum[:]), sums[filepath.Base(file)]; got != want {
			t.Errorf("%s: SHA-256 is %s, want %s", file, got, want)
		}
	}
}

// TestUpgradedWhileOpen: a schema that a newer binary brought stops this one.
func TestUpgradedWhileOpen(t *testing.T) {
	path := newPath(t)
	s := create(t, path)
	mustClaim(t, s, "before")
	execRaw(t, raw(t, path), "insert into goose_db_version (version_id, is_applied) values (3, 1)")
	_, err := claim(t.Context(), s, "after")
	wantError(t, err, semel.ErrUnavailable, "schema 3 is newer than this binary (2): upgrade semel")
}

// TestCloseLetsGo: the last handle leaves nothing open and no log behind, so
// that the file alone is the database.
func TestCloseLetsGo(t *testing.T) {
	path := newPath(t)
	for range 2 {
		s := create(t, path)
		mustClaim(t, s, newOperation("").ID.String())
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		names, err := filepath.Glob(path + "*")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{path, path + "-mark"}, names); diff != "" {
			t.Errorf("files after close (-want +got):\n%s", diff)
		}
	}
}
