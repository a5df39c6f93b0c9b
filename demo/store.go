package demo

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/store/postgres"
	"github.com/semel-dev/semel/store/sqlite"
)

// database is the URL of the night's database; none named means a file in its
// directory.
func (n *night) database(named string) (string, error) {
	if named == "" {
		return "sqlite:" + n.path(databaseFile), nil
	}
	path, ok := strings.CutPrefix(named, "sqlite:")
	switch {
	case ok && path != "":
		abs, err := filepath.Abs(path)
		return "sqlite:" + abs, err
	case strings.HasPrefix(named, "postgres://"), strings.HasPrefix(named, "postgresql://"):
		return named, nil
	}
	return "", &SettingsError{"--db is unknown: write sqlite:PATH or postgres://user@host/database"}
}

// keeper is a store that keeps runs.
type keeper interface {
	semel.Store
	semel.Runs
}

// openStore opens a database, and makes it where there is none: the demo does
// not mistake an empty database for one that remembers.
func openStore(ctx context.Context, named string) (keeper, error) {
	var store keeper
	var err error
	if path, ok := strings.CutPrefix(named, "sqlite:"); ok {
		store, err = sqlite.Open(ctx, path, sqlite.Options{Create: true})
	} else {
		store, err = postgres.Open(ctx, named, postgres.Options{Create: true, Committers: 2, Readers: 2})
	}
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	return store, nil
}

// shown is a database URL without its password.
func shown(named string) string {
	u, err := url.Parse(named)
	if err != nil || u.User == nil {
		return named
	}
	if _, has := u.User.Password(); has {
		u.User = url.User(u.User.Username())
	}
	return u.String()
}
