package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
)

//go:embed schema/*.sql
var embedded embed.FS

// MigrationStatus says how far a database's schema is.
type MigrationStatus struct {
	Current int      // the schema of the database, 0 for an empty one
	Latest  int      // the newest schema that this binary knows
	Pending []string // the files that Migrate would apply, in order
}

// SQL returns all migrations as one script, for people who apply them by hand.
func SQL() string {
	var b strings.Builder
	for _, name := range migrations() {
		text, err := fs.ReadFile(embedded, "schema/"+name)
		if err != nil {
			panic(err) // it is compiled in
		}
		fmt.Fprintf(&b, "-- %s\n%s\n", name, strings.Replace(string(text), "-- +goose Up\n", "", 1))
	}
	return b.String()
}

// Migrate brings the schema of the existing database at path up to date. It
// refuses a schema newer than this binary. Several processes may call it at once.
func Migrate(ctx context.Context, path string) error {
	db, err := openExisting(ctx, path)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // nothing is left to lose
	return migrate(ctx, db, path)
}

// Status reads how far the schema of the existing database at path is; it
// changes nothing.
func Status(ctx context.Context, path string) (MigrationStatus, error) {
	db, err := openExisting(ctx, path)
	if err != nil {
		return MigrationStatus{}, err
	}
	defer func() { _ = db.Close() }() // nothing is left to lose
	current, _, err := schemaOf(ctx, db, path)
	if err != nil {
		return MigrationStatus{}, err
	}
	all := migrations()
	st := MigrationStatus{Current: current, Latest: len(all)}
	if current < len(all) {
		st.Pending = all[current:]
	}
	return st, nil
}

// migrations lists the migration files; number n is the n-th, counting from 1.
func migrations() []string {
	entries, err := fs.ReadDir(embedded, "schema")
	if err != nil {
		panic(err) // it is compiled in
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	return names
}

func migrate(ctx context.Context, db *sql.DB, path string) error {
	fsys, err := fs.Sub(embedded, "schema")
	if err != nil {
		return err
	}
	for until := time.Now().Add(busyLimit); ; {
		current, foreign, err := schemaOf(ctx, db, path)
		switch {
		case err != nil:
			return err
		case foreign:
			return foreignFile(path)
		case current > len(migrations()):
			return newerSchema(path, current)
		case current == len(migrations()):
			return nil
		}
		p, err := goose.NewProvider(goose.DialectSQLite3, db, fsys, goose.WithDisableGlobalRegistry(true))
		if err != nil {
			return fmt.Errorf("database %s: read migrations: %w", path, err)
		}
		if _, err = p.Up(ctx); err == nil {
			continue
		}
		// Each migration and its version are one transaction, so another
		// process that migrates at the same time can only have come first.
		after, _, readErr := schemaOf(ctx, db, path)
		if readErr == nil && after > current || isBusy(err) || strings.Contains(err.Error(), "already exists") {
			if time.Now().Before(until) && pause(ctx, 10*time.Millisecond) == nil {
				continue
			}
		}
		return fmt.Errorf("migrate: %w", explain(path, err))
	}
}

// schemaOf reads the schema version, 0 for an empty database. foreign: it
// holds tables, but not ours.
func schemaOf(ctx context.Context, db *sql.DB, path string) (current int, foreign bool, err error) {
	err = retryBusy(ctx, func() error {
		var tables, versions int
		const count = `
			select count(*), count(*) filter (where name = 'goose_db_version')
			from sqlite_master
			where type = 'table'`
		if err := db.QueryRowContext(ctx, count).Scan(&tables, &versions); err != nil {
			return err
		}
		current, foreign = 0, tables > 0 && versions == 0
		if versions == 0 {
			return nil
		}
		const version = `
			select coalesce(max(version_id), 0)
			from goose_db_version
			where is_applied`
		if err := db.QueryRowContext(ctx, version).Scan(&current); err != nil {
			return err
		}
		const ours = `
			select count(*) = 0
			from sqlite_master
			where type = 'table' and name = 'operation'`
		if current > 0 {
			return db.QueryRowContext(ctx, ours).Scan(&foreign)
		}
		return nil
	})
	if err != nil {
		return 0, false, unavailable(path, err)
	}
	return current, foreign, nil
}

func newerSchema(path string, current int) error {
	return fmt.Errorf("database %s: schema %d is newer than this binary (%d): upgrade semel", path, current, len(migrations()))
}

func foreignFile(path string) error {
	return fmt.Errorf("database %s belongs to another program: it has tables, but none of Semel's: give another path", path)
}

func openExisting(ctx context.Context, path string) (*sql.DB, error) {
	if err := checkPath(path); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, missing(path)
		}
		return nil, err
	}
	return connect(ctx, path, "&_txlock=immediate&_pragma=busy_timeout(10000)", 1)
}
