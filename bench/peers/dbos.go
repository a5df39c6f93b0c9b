package main

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	_ "github.com/dbos-inc/dbos-transact-golang/dbos/driver/sqlite" // the driver
	"github.com/jackc/pgx/v5"
)

// dbosLoop calls DBOS Transact directly, with its defaults: twenty connections,
// and synchronous=NORMAL on SQLite. A step writes its outcome, and no claim.
type dbosLoop struct {
	d     dbos.Context
	steps int
}

func openDBOS(_ context.Context, o options) (workload, error) {
	at := "sqlite:" + o.at
	if o.store == onPostgres {
		var err error
		if at, err = urlOf(o.at); err != nil {
			return nil, err
		}
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	d, err := dbos.NewContext(context.Background(), dbos.Config{AppName: "bench", DatabaseURL: at, Logger: log})
	if err != nil {
		return nil, err
	}
	dbos.RegisterWorkflow(d, dbosWorkflow)
	return &dbosLoop{d, o.steps}, dbos.Launch(d)
}

func dbosWorkflow(ctx dbos.Context, steps int) (int, error) {
	for range steps {
		if _, err := dbos.RunAsStep(ctx, noEffect); err != nil {
			return 0, err
		}
	}
	return steps, nil
}

func noEffect(context.Context) (string, error) { return answer, nil }

func (w *dbosLoop) effect(int) error {
	h, err := dbos.RunWorkflow(w.d, dbosWorkflow, w.steps)
	if err != nil {
		return err
	}
	_, err = h.GetResult()
	return err
}

func (w *dbosLoop) close() error { return dbos.Shutdown(w.d, 2*time.Second) }

// urlOf is a connection string as a URL.
func urlOf(at string) (string, error) {
	c, err := pgx.ParseConfig(at)
	if err != nil {
		return "", err
	}
	if c.Host == "" || c.Database == "" {
		return "", errors.New("the address of the database names no host or no database")
	}
	u := url.URL{Scheme: "postgres", User: url.UserPassword(c.User, c.Password), Path: "/" + c.Database}
	u.RawQuery = url.Values{"host": {c.Host}, "port": {strconv.Itoa(int(c.Port))}, "sslmode": {"disable"}}.Encode()
	return u.String(), nil
}
