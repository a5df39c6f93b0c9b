package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
)

// migrations are applied in the order of their numbers, and never changed once
// released.
//
//go:embed schema/*.sql
var migrations embed.FS

// versionTable holds the versions of the schema that were applied.
const versionTable = "semel.schema_version"

// migrationLock serialises processes that create or migrate.
const migrationLock = 0x53656d656c // "Semel"

// MigrationStatus says where a schema stands.
type MigrationStatus struct {
	Current int      // what the database has; 0 for none
	Latest  int      // what this binary knows
	Pending []string // migrations to apply, in order
}

// SQL is the schema of this binary as one script, for people who apply it by
// hand or review it.
func SQL() string {
	var b strings.Builder
	for _, name := range files() {
		text, err := migrations.ReadFile(path.Join("schema", name))
		if err != nil {
			panic(err) // it is embedded
		}
		fmt.Fprintf(&b, "-- %s\n%s\n", name, strings.TrimPrefix(string(text), "-- +goose Up\n"))
	}
	return b.String()
}

// Status reads where the schema of the database stands. It changes nothing.
func Status(ctx context.Context, url string) (MigrationStatus, error) {
	conn, err := dial(ctx, url)
	if err != nil {
		return MigrationStatus{}, err
	}
	defer conn.Close(ctx) //nolint:errcheck // nothing was written
	return status(ctx, conn)
}

// Migrate creates the schema, or brings it to the version of this binary.
// Processes that migrate at once wait for one another.
func Migrate(ctx context.Context, url string) error {
	return migrate(ctx, url, func(MigrationStatus) error { return nil })
}

// ready makes sure that the schema is the one this binary knows.
func ready(ctx context.Context, url string, create bool) error {
	st, err := Status(ctx, url)
	if err != nil {
		return err
	}
	if create && st.Current < st.Latest { // maybe somebody is creating it now
		return migrate(ctx, url, func(now MigrationStatus) error {
			if now.Current == 0 {
				return nil
			}
			return now.check()
		})
	}
	return st.check()
}

func (st MigrationStatus) check() error {
	switch {
	case st.Current == 0:
		return errors.New("the database has no schema semel: run semel migrate up, or open it with --create")
	case st.Current > st.Latest:
		return fmt.Errorf("schema %d is newer than this binary (%d): upgrade semel", st.Current, st.Latest)
	case st.Current < st.Latest:
		return fmt.Errorf("schema %d is older than this binary (%d): run semel migrate up", st.Current, st.Latest)
	}
	return nil
}

func dial(ctx context.Context, url string) (*pgx.Conn, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, unavailable("connect", err)
	}
	return conn, nil
}

func status(ctx context.Context, conn *pgx.Conn) (MigrationStatus, error) {
	st := MigrationStatus{Latest: len(files())}
	// One statement, one snapshot: others may be creating it. The version table
	// comes first.
	const relations = `
select count(*), count(*) filter (where c.relname = 'schema_version')
from pg_class as c
join pg_namespace as n on n.oid = c.relnamespace
where n.nspname = 'semel'`
	const version = `
select coalesce(max(version_id), 0)
from ` + versionTable
	var all, ours int
	if err := conn.QueryRow(ctx, relations).Scan(&all, &ours); err != nil {
		return st, unavailable("look for schema semel", err)
	}
	switch {
	case all > 0 && ours == 0:
		return st, errors.New("schema semel holds something that is not ours: move it away, or use another database")
	case ours > 0:
		if err := conn.QueryRow(ctx, version).Scan(&st.Current); err != nil {
			return st, unavailable("read the schema version", err)
		}
	}
	st.Pending = files()[min(st.Current, st.Latest):]
	return st, nil
}

// migrate applies what is pending, unless the check of what it finds fails. The
// lock belongs to an open transaction, not to a session, so a transaction
// pooler does not lose it.
func migrate(ctx context.Context, url string, check func(MigrationStatus) error) (err error) {
	conn, err := dial(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // ends the transaction, which only holds the lock
	tx, err := conn.Begin(ctx)
	if err != nil {
		return unavailable("migrate", err)
	}
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, int64(migrationLock)); err != nil {
		return unavailable("wait for others to migrate", err)
	}
	st, err := status(ctx, conn)
	if err != nil {
		return err
	}
	if st.Current > st.Latest {
		return st.check()
	}
	if err := check(st); err != nil || len(st.Pending) == 0 {
		return err
	}
	return apply(ctx, url)
}

func apply(ctx context.Context, url string) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("read the database URL: %w", err)
	}
	db := stdlib.OpenDB(*config)
	defer db.Close() //nolint:errcheck // nothing is under way
	if _, err := db.ExecContext(ctx, `create schema if not exists semel`); err != nil {
		return unavailable("create schema semel", err)
	}
	store, err := database.NewStore(database.DialectPostgres, versionTable)
	if err != nil {
		return err
	}
	sub, err := fs.Sub(migrations, "schema")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider("", db, sub, goose.WithStore(store), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	if _, err := provider.Up(ctx); err != nil {
		return unavailable("migrate", err)
	}
	return nil
}

// files are the names of the migrations in order; the first is version 1.
func files() []string {
	entries, err := migrations.ReadDir("schema")
	if err != nil {
		panic(err) // it is embedded
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}
