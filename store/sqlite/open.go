package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/semel-dev/semel"
)

// busyLimit is how long to wait for another process before giving up.
const busyLimit = time.Minute

// Options are the choices of Open. The zero value opens an existing, migrated
// database.
type Options struct {
	// Create makes the file where there is none, and the schema where the file
	// is empty. Without it a path that does not exist is an error: a mistyped
	// path must not mean "this never ran".
	Create bool
	// Clock is read in the place of the machine's; nil means time.Now. Only a
	// drill sets it.
	Clock func() time.Time
}

// Open opens the database at path. Many processes may open one at once, with
// Create too. It refuses a schema that is newer or older than this binary,
// files of other programs, and network file systems.
func Open(ctx context.Context, path string, opts Options) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", path, err)
	}
	if err := prepareFile(path, opts); err != nil {
		return nil, err
	}
	file, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("%w: database %s: %w", semel.ErrUnavailable, path, err)
	}
	if err := prepareSchema(ctx, path, opts); err != nil {
		return nil, err
	}
	readers, err := connect(ctx, path, "&_pragma=busy_timeout(1000)&_pragma=query_only(1)", 4)
	if err != nil {
		return nil, err
	}
	s := &Store{
		path: path, file: file, readers: readers, latest: len(migrations()), wake: make(chan struct{}, 1),
		closing: make(chan struct{}), closed: make(chan struct{}),
		clock: clock{wall: opts.Clock},
	}
	if opts.Clock == nil {
		s.clock.wall = time.Now
	}
	if err := s.begin(ctx); err != nil {
		return nil, errors.Join(err, readers.Close())
	}
	return s, nil
}

// prepareFile makes sure that there is a file at path that may be ours.
func prepareFile(path string, opts Options) error {
	err := checkPath(path)
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, os.ErrNotExist):
		return err
	case !opts.Create:
		return missing(path)
	}
	// Operations hold what was sent, so nobody else may read them. O_EXCL: this
	// process has no other handle on the file, whose locks closing would drop.
	dir := filepath.Dir(path)
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("database %s: there is no directory %s: make it first (mkdir -p %[2]s)", path, dir)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, os.ErrExist):
		return checkPath(path)
	case err != nil:
		return fmt.Errorf("database %s cannot be created: %w: check the permissions of %s", path, err, dir)
	}
	return f.Close()
}

// checkPath refuses what can never be a database. It must not open the file:
// closing it would drop the locks that SQLite holds in this process.
func checkPath(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return err
	case err != nil:
		return fmt.Errorf("database %s cannot be reached: %w", path, err)
	case info.IsDir():
		return fmt.Errorf("database %s is a directory: give the path of a file, for example %s", path, filepath.Join(path, "semel.db"))
	case !info.Mode().IsRegular():
		return fmt.Errorf("database %s is not a regular file (%s): give another path", path, info.Mode().Type())
	}
	if kind := networkFileSystem(path); kind != "" {
		return fmt.Errorf("database %s is on a network file system (%s), whose locks cannot be trusted: use a local disk, or PostgreSQL", path, kind)
	}
	return nil
}

func missing(path string) error {
	return fmt.Errorf("database %s does not exist: check the path, or add --create to begin a new one: %w", path, os.ErrNotExist)
}

// prepareSchema checks the schema and, with Create, makes it in an empty file.
func prepareSchema(ctx context.Context, path string, opts Options) error {
	db, err := connect(ctx, path, "&_txlock=immediate&_pragma=busy_timeout(10000)", 1)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // nothing is left to lose
	for until := time.Now().Add(busyLimit); ; {
		current, foreign, err := schemaOf(ctx, db, path)
		latest := len(migrations())
		switch {
		case err != nil:
			return err
		case foreign:
			return foreignFile(path)
		case current > latest:
			return newerSchema(path, current)
		case current == latest:
			return useWAL(ctx, db, path)
		case !opts.Create && current == 0:
			return fmt.Errorf("database %s is empty: run semel migrate up", path)
		case !opts.Create || current > 0 && time.Now().After(until):
			return fmt.Errorf("database %s: schema %d is older than this binary (%d): run semel migrate up", path, current, latest)
		case current > 0 && pause(ctx, 20*time.Millisecond) == nil:
			until = earlier(until, time.Now().Add(2*time.Second)) // somebody may be creating it just now
			continue
		}
		if err := migrate(ctx, db, path); err != nil {
			return err
		}
	}
}

// useWAL makes sure that the database is in WAL mode, which the file remembers.
func useWAL(ctx context.Context, db *sql.DB, path string) error {
	mode := ""
	err := retryBusy(ctx, func() error { return db.QueryRowContext(ctx, "pragma journal_mode = wal").Scan(&mode) })
	if err != nil {
		return unavailable(path, err)
	}
	if mode != "wal" {
		return fmt.Errorf("%w: database %s cannot use WAL (journal mode %q): use a local disk", semel.ErrUnavailable, path, mode)
	}
	return nil
}

// connect opens a pool of n connections to the existing file at path and
// checks that it works.
func connect(ctx context.Context, path, params string, n int) (*sql.DB, error) {
	dsn := "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath() + "?mode=rw" + params
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", path, err)
	}
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	var version int
	err = retryBusy(ctx, func() error { return db.QueryRowContext(ctx, "pragma schema_version").Scan(&version) })
	if err != nil {
		return nil, errors.Join(unavailable(path, err), db.Close())
	}
	return db, nil
}

// retryBusy repeats do while another process holds the database.
func retryBusy(ctx context.Context, do func() error) error {
	for until := time.Now().Add(busyLimit); ; {
		err := do()
		if !isBusy(err) || time.Now().After(until) {
			return err
		}
		if pause(ctx, 2*time.Millisecond) != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
