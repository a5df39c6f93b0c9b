package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/semel-dev/semel/store/postgres"
	"github.com/semel-dev/semel/store/sqlite"
)

const (
	rootStateDir        = "/var/lib/semel"
	defaultDatabaseHelp = "/var/lib/semel/semel.db for root, else $XDG_STATE_HOME/semel/semel.db"
)

// database says where operations are remembered. Exactly one of path and url
// is set.
type database struct {
	path     string // of an SQLite file, absolute
	url      string // of a PostgreSQL database
	implicit bool   // the default, not named by anybody
	stateDir string // of this user or, for root, of this machine
}

// database finds the database that this invocation means.
func (sh *shell) database() (database, error) {
	named, by := sh.db, "--db"
	if named == "" {
		named, by = sh.getenv("SEMEL_DB"), "SEMEL_DB"
	}
	stateDir, err := sh.stateDir()
	if err != nil && (named == "" || !strings.HasPrefix(named, "sqlite:")) {
		return database{}, err
	}
	if named == "" {
		return database{path: filepath.Join(stateDir, "semel.db"), implicit: true, stateDir: stateDir}, nil
	}
	d, err := parseDatabase(named, by)
	d.stateDir = stateDir
	return d, err
}

func parseDatabase(named, by string) (database, error) {
	if path, ok := strings.CutPrefix(named, "sqlite:"); ok {
		switch {
		case path == "" || strings.HasSuffix(path, "/"):
			return database{}, usagef("%s %q names no file: write sqlite:PATH, for example sqlite:/var/lib/semel/semel.db", by, named)
		case strings.HasPrefix(path, "//") && !strings.HasPrefix(path, "///"):
			return database{}, usagef("%s %q looks like a URL with a host: write sqlite:PATH, for example sqlite:%s", by, named, strings.TrimPrefix(path, "//"))
		case strings.Contains(path, ":memory:"):
			return database{}, usagef("%s %q forgets everything when the command ends: give a file", by, named)
		}
		abs, err := filepath.Abs(path)
		return database{path: abs}, err
	}
	if strings.HasPrefix(named, "postgres://") || strings.HasPrefix(named, "postgresql://") {
		if _, err := url.Parse(named); err != nil {
			return database{}, usagef("%s is no URL: write postgres://user@host/database", by) // err would repeat the password
		}
		return database{url: named}, nil
	}
	hint := ""
	if !strings.Contains(named, ":") {
		hint = "; for a file: sqlite:" + named
	}
	return database{}, usagef("%s %q is unknown: write sqlite:PATH or postgres://user@host/database%s", by, redacted(named), hint)
}

// stateDir is where what must outlive this command is kept by default.
func (sh *shell) stateDir() (string, error) {
	if sh.uid == 0 {
		return rootStateDir, nil
	}
	if dir := sh.getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "semel"), nil
	}
	home := sh.getenv("HOME")
	if !filepath.IsAbs(home) {
		return "", usagef("there is no home directory to keep the database in: set HOME or XDG_STATE_HOME, or name a database with --db sqlite:PATH")
	}
	return filepath.Join(home, ".local", "state", "semel"), nil
}

// String names the database without its password.
func (d database) String() string {
	if d.path != "" {
		return d.path
	}
	return redacted(d.url)
}

// missing reports whether there is no SQLite file.
func (d database) missing() bool {
	if d.path == "" {
		return false
	}
	_, err := os.Stat(d.path)
	return errors.Is(err, fs.ErrNotExist)
}

// open opens the database. Where it does not exist, it is made if it is the
// default or if the caller said --create.
func (sh *shell) open(ctx context.Context) (*patientStore, database, error) {
	d, err := sh.database()
	if err != nil {
		return nil, d, err
	}
	if d.url != "" {
		store, err := sh.openPostgres(ctx, d)
		return store, d, err
	}
	create := sh.create
	if d.missing() {
		if !d.implicit && !create {
			return nil, d, usagef("the database %s does not exist, so nobody can tell what ran before: check the path, or add --create to begin a new one", d.path)
		}
		create = true
		if err := os.MkdirAll(filepath.Dir(d.path), 0o700); err != nil {
			return nil, d, fmt.Errorf("make the directory of the database: %w", err)
		}
		fmt.Fprintf(sh.err, "semel: new database %s: from now on this is what remembers what was done\n", d.path)
	}
	store, err := sqlite.Open(ctx, d.path, sqlite.Options{Create: create})
	if err != nil {
		return nil, d, err
	}
	return &patientStore{Store: store}, d, nil
}

func (sh *shell) openPostgres(ctx context.Context, d database) (*patientStore, error) {
	ctx, cancel := context.WithTimeout(ctx, opening)
	defer cancel()
	target := impatient(d.url, sh.getenv)
	if sh.create {
		if st, err := postgres.Status(ctx, target); err == nil && st.Current == 0 {
			sh.say("new schema semel in %s: from now on this is what remembers what was done", d)
		}
	}
	store, err := postgres.Open(ctx, target, postgres.Options{Create: sh.create})
	if err != nil {
		return nil, err
	}
	return &patientStore{Store: store}, nil
}

// errNothingYet: the default database was never made.
var errNothingYet = errors.New("nothing was ever recorded here")

// openToLook opens the database and never makes one: looking changes nothing.
func (sh *shell) openToLook(ctx context.Context) (*patientStore, database, error) {
	d, err := sh.database()
	if err != nil {
		return nil, d, err
	}
	if d.implicit && d.missing() && !sh.create {
		return nil, d, errNothingYet
	}
	return sh.open(ctx)
}

// spoolDir is where evidence waits that cannot reach this database: each
// database has its own, since evidence fits no other.
func (d database) spoolDir() string {
	if d.path != "" {
		return d.path + ".spool"
	}
	name := d.url
	if u, err := url.Parse(d.url); err == nil {
		name = cmp.Or(u.Hostname(), u.Query().Get("host")) + " " + cmp.Or(u.Port(), u.Query().Get("port"), "5432") + " " + u.Path
	}
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(d.stateDir, "postgres-"+hex.EncodeToString(sum[:6])+".spool")
}

// configPath is the file with named connections; named tells whether somebody
// named it, so that it must exist.
func (sh *shell) configPath(d database) (path string, named bool) {
	if path := cmp.Or(sh.config, sh.getenv("SEMEL_CONFIG")); path != "" {
		return path, true
	}
	if d.path != "" {
		return filepath.Join(filepath.Dir(d.path), "semel.yaml"), false
	}
	return filepath.Join(d.stateDir, "semel.yaml"), false
}

// redacted is a database name without a password.
func redacted(name string) string {
	u, err := url.Parse(name)
	if err != nil {
		return strings.SplitN(name, ":", 2)[0] + ":..."
	}
	if u.User == nil && u.RawQuery == "" {
		return name
	}
	if q := u.Query(); q.Has("password") {
		q.Del("password")
		u.RawQuery = q.Encode()
	}
	if u.User != nil {
		if _, has := u.User.Password(); has {
			u.User = url.User(u.User.Username())
		}
	}
	return u.String()
}
