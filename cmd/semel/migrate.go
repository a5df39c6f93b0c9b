package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/semel-dev/semel/store/postgres"
	"github.com/semel-dev/semel/store/sqlite"
)

func newMigrate(sh *shell) *cobra.Command {
	status := &cobra.Command{
		Use: "status", Short: "Say how far the database's schema is",
		Long:    "Say how far the database's schema is. It changes nothing, and the exit code is 0 also when migrations are pending.",
		Example: "  semel migrate status --output json", Args: noArguments,
		RunE: ours(func(cmd *cobra.Command, _ []string) error { return sh.migrateStatus(cmd.Context()) }),
	}
	up := &cobra.Command{
		Use: "up", Short: "Bring the schema up to date",
		Long: `Bring the schema of an existing database up to date. Migrations only go forward;
make a backup first. With --create an SQLite file that is not there is made.`,
		Example: "  semel migrate up --db postgres://semel@db.example.com/semel", Args: noArguments,
		RunE: ours(func(cmd *cobra.Command, _ []string) error { return sh.migrateUp(cmd.Context()) }),
	}
	script := &cobra.Command{
		Use: "sql", Short: "Print the whole schema as SQL, for people who apply it by hand",
		Long:    "Print the whole schema as SQL for the kind of database that --db names. It connects to nothing.",
		Example: "  semel migrate sql --db postgres://", Args: noArguments,
		RunE: ours(func(*cobra.Command, []string) error { return sh.migrateSQL() }),
	}
	return group("migrate", "Look after the database's schema",
		"Look after the database's schema. A schema newer than this binary is refused\neverywhere; an older one is brought up to date only here.",
		"  semel migrate status\n  semel migrate up", status, up, script)
}

// schema is how far a database is.
type schema struct {
	Database string   `json:"database"`
	Current  int      `json:"current"`
	Latest   int      `json:"latest"`
	Pending  []string `json:"pending"`
}

func (sh *shell) readSchema(ctx context.Context, d database) (schema, error) {
	s := schema{Database: d.String()}
	if d.path != "" {
		st, err := sqlite.Status(ctx, d.path)
		return s.at(st.Current, st.Latest, st.Pending), err
	}
	ctx, cancel := context.WithTimeout(ctx, opening)
	defer cancel()
	st, err := postgres.Status(ctx, impatient(d.url, sh.getenv))
	return s.at(st.Current, st.Latest, st.Pending), err
}

func (s schema) at(current, latest int, pending []string) schema {
	s.Current, s.Latest, s.Pending = current, latest, append([]string{}, pending...)
	return s
}

func (sh *shell) migrateStatus(ctx context.Context) error {
	d, err := sh.database()
	if err != nil {
		return err
	}
	if d.missing() {
		return usagef("the database %s does not exist: check the path, or make it with semel migrate up --create", d)
	}
	s, err := sh.readSchema(ctx, d)
	if err != nil {
		return err
	}
	if sh.json() {
		return sh.print(s)
	}
	text := fmt.Appendf(nil, "database  %s\nschema    %d of %d\n", oneLine(s.Database), s.Current, s.Latest)
	for _, name := range s.Pending {
		text = fmt.Appendf(text, "pending   %s\n", oneLine(name))
	}
	if err := sh.write(text); err != nil {
		return err
	}
	switch {
	case s.Current > s.Latest:
		sh.say("the schema is newer than this binary: upgrade semel")
	case len(s.Pending) > 0:
		sh.say("bring it up to date: %s", sh.command("migrate up"))
	}
	return nil
}

func (sh *shell) migrateUp(ctx context.Context) error {
	d, err := sh.database()
	if err != nil {
		return err
	}
	switch {
	case d.missing() && !sh.create:
		return usagef("the database %s does not exist: check the path, or add --create to begin a new one", d)
	case d.missing():
		if err := os.MkdirAll(filepath.Dir(d.path), 0o700); err != nil {
			return fmt.Errorf("make the directory of the database: %w", err)
		}
		fallthrough
	case d.path != "" && sh.create:
		store, err := sqlite.Open(ctx, d.path, sqlite.Options{Create: true})
		if err != nil {
			return err
		}
		if err := store.Close(); err != nil {
			return err
		}
	case d.path != "":
		err = sqlite.Migrate(ctx, d.path)
	default:
		err = postgres.Migrate(ctx, impatient(d.url, sh.getenv))
	}
	if err != nil {
		return err
	}
	s, err := sh.readSchema(ctx, d)
	if err != nil {
		return err
	}
	if sh.json() {
		return sh.print(s)
	}
	sh.say("%s has schema %d", s.Database, s.Current)
	return nil
}

func (sh *shell) migrateSQL() error {
	text := sqlite.SQL()
	if named := sh.db; strings.HasPrefix(named, "postgres") || named == "" && strings.HasPrefix(sh.getenv("SEMEL_DB"), "postgres") {
		text = postgres.SQL()
	}
	return sh.write([]byte(text))
}

func newStore(sh *shell) *cobra.Command {
	var until string
	accept := &cobra.Command{
		Use: "accept --whole-until TIME", Short: "Vouch for a database that was restored from a backup",
		Long: `A restored backup has forgotten what was claimed after it was made, so Semel
makes no claim in it. Find out what was sent since then, and vouch for the time
up to which the database is whole.`,
		Example: "  semel store accept --whole-until 2026-03-01T02:00:00Z", Args: noArguments,
		RunE: ours(func(cmd *cobra.Command, _ []string) error {
			at, err := time.Parse(time.RFC3339, until)
			if err != nil {
				return usagef("--whole-until %q is no time: write it as 2026-03-01T02:00:00Z", until)
			}
			if at.After(time.Now()) {
				return usagef("--whole-until %s is in the future: give the time of the backup", moment(at))
			}
			return sh.accept(cmd.Context(), at)
		}),
	}
	accept.Flags().StringVar(&until, "whole-until", "", "time up to which all claims are there")
	return group("store", "Look after a restored database", "Look after a database that was restored from a backup.",
		"  semel store accept --whole-until 2026-03-01T02:00:00Z", accept)
}

// accepted is what a program reads of a database that somebody vouched for.
type accepted struct {
	Database   string     `json:"database"`
	WholeUntil *time.Time `json:"whole_until"`
}

func (sh *shell) accept(ctx context.Context, until time.Time) error {
	store, d, err := sh.open(ctx)
	if err != nil {
		return err
	}
	defer sh.shut("the database", store.Close)
	keeper, ok := store.Store.(interface {
		Accept(context.Context, time.Time) error
	})
	if !ok {
		return usagef("%s does not notice restored backups, so there is nothing to accept", d)
	}
	ctx, cancel := context.WithTimeout(ctx, opening)
	defer cancel()
	if err := keeper.Accept(ctx, until); err != nil {
		return err
	}
	if sh.json() {
		return sh.print(accepted{d.String(), instant(until)})
	}
	sh.say("%s is accepted as whole until %s; claims are made again", d, moment(until))
	return nil
}
