package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel/store/postgres/postgrestest"
)

// The stores, as flags name them.
const (
	onPostgres = "postgres"
	onSQLite   = "sqlite"
)

// place is where databases are made and measured.
type place interface {
	// facts are what a reader must know about it.
	facts(ctx context.Context) (string, error)
	// check fails where commits are not durable, so that no figure can be
	// trusted.
	check(ctx context.Context) error
	// fresh makes an empty database and returns its address.
	fresh(ctx context.Context) (at string, drop func() error, err error)
	// settle writes out what earlier runs left to be written.
	settle(ctx context.Context) error
	// count reads the counters; the client is process pid.
	count(ctx context.Context, pid int) (counters, error)
	close() error
}

// server is a PostgreSQL server.
type server struct {
	own        *postgrestest.Server // nil for one given by its URL
	admin      *pgx.Conn
	postmaster int // 0 if it is on another machine
	device     device
	made       int
}

// startServer starts a server of our own, or uses the one at url.
func startServer(ctx context.Context, url string) (*server, error) {
	s := &server{}
	if url == "" {
		own, err := postgrestest.Run(ctx, postgrestest.Options{Durable: true, MaxConnections: 400})
		if err != nil {
			return nil, err
		}
		s.own, url = own, own.URL("postgres")
	}
	admin, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.admin = admin
	var dir string
	if err := admin.QueryRow(ctx, "show data_directory").Scan(&dir); err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.postmaster = int(number(firstLine(filepath.Join(dir, "postmaster.pid"))))
	s.device = deviceOf(dir)
	return s, nil
}

func (s *server) facts(ctx context.Context) (string, error) {
	var version string
	if err := s.admin.QueryRow(ctx, "show server_version").Scan(&version); err != nil {
		return "", err
	}
	const query = `
select name || '=' || setting
from pg_settings
where name in ('fsync', 'full_page_writes', 'synchronous_commit', 'wal_sync_method', 'max_wal_size', 'shared_buffers')
  or source = 'configuration file' and name !~ '^(lc_|log_|listen|port|unix_|default_text|timezone|datestyle)'
order by name`
	rows, err := s.admin.Query(ctx, query)
	if err != nil {
		return "", err
	}
	settings, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return fmt.Sprintf("# PostgreSQL %s on %s (%s): %s\n", version, s.device.name, s.device.fileSystem, strings.Join(settings, " ")), err
}

func (s *server) check(ctx context.Context) error {
	for _, name := range []string{"fsync", "full_page_writes", "synchronous_commit"} {
		var value string
		if err := s.admin.QueryRow(ctx, "show "+name).Scan(&value); err != nil {
			return err
		}
		if value == "off" {
			return fmt.Errorf("%s is off: commits are not durable, so their speed means nothing; turn it on", name)
		}
	}
	if why := s.device.volatile(); why != "" {
		return errors.New(why)
	}
	return nil
}

func (s *server) fresh(ctx context.Context) (string, func() error, error) {
	s.made++
	name := "semel_bench_" + strconv.Itoa(s.made)
	if _, err := s.admin.Exec(ctx, "drop database if exists "+name+" with (force)"); err != nil {
		return "", nil, err
	}
	if _, err := s.admin.Exec(ctx, "create database "+name); err != nil {
		return "", nil, err
	}
	config := s.admin.Config().Copy()
	address := fmt.Sprintf("host=%s port=%d user=%s password='%s' dbname=%s sslmode=disable", config.Host, config.Port, config.User, config.Password, name)
	return address, func() error {
		_, err := s.admin.Exec(context.Background(), "drop database "+name+" with (force)")
		return err
	}, nil
}

func (s *server) settle(ctx context.Context) error {
	if _, err := s.admin.Exec(ctx, "checkpoint"); err != nil {
		return err
	}
	// A vacuum that an earlier run has caused must not run at the expense of
	// the next. It ends by itself.
	for until := time.Now().Add(5 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		const query = "select count(*) from pg_stat_activity where backend_type = 'autovacuum worker'"
		var vacuums int
		if err := s.admin.QueryRow(ctx, query).Scan(&vacuums); err != nil || vacuums == 0 || time.Now().After(until) {
			return err
		}
	}
}

func (s *server) count(ctx context.Context, pid int) (counters, error) {
	c := clientCounters(pid)
	c.server, c.flushes = processCPU(s.postmaster), s.device.flushes()
	const query = `
select pg_snapshot_xmax(pg_current_snapshot())::text::bigint, (pg_current_wal_insert_lsn() - '0/0')::bigint`
	err := s.admin.QueryRow(ctx, query).Scan(&c.commits, &c.bytes)
	return c, err
}

func (s *server) close() error {
	var err error
	if s.admin != nil {
		err = s.admin.Close(context.Background())
	}
	if s.own != nil {
		err = errors.Join(err, s.own.Close())
	}
	return err
}

// directory is where SQLite files are made.
type directory struct {
	path   string
	device device
	made   int
}

func newDirectory() (*directory, error) {
	path, err := os.MkdirTemp("", "semel-bench-")
	if err != nil {
		return nil, err
	}
	return &directory{path: path, device: deviceOf(path)}, nil
}

func (d *directory) facts(context.Context) (string, error) {
	return fmt.Sprintf("# SQLite on %s (%s), WAL, synchronous=FULL\n", d.device.name, d.device.fileSystem), nil
}

// check cannot ask another process's connection for its settings; what settles
// it is whether the disk is flushed, see (figures).durable.
func (d *directory) check(context.Context) error {
	if why := d.device.volatile(); why != "" {
		return errors.New(why)
	}
	return nil
}

func (d *directory) fresh(context.Context) (string, func() error, error) {
	d.made++
	path := filepath.Join(d.path, strconv.Itoa(d.made)+".db")
	return path, func() error {
		var errs []error
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if err := os.Remove(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	}, nil
}

func (d *directory) settle(context.Context) error { return nil }

// count takes each flush for a commit: SQLite makes one per commit in WAL mode,
// and two or three per checkpoint.
func (d *directory) count(_ context.Context, pid int) (counters, error) {
	c := clientCounters(pid)
	c.flushes, c.bytes = d.device.flushes(), written(pid)
	c.commits = c.flushes
	return c, nil
}

func (d *directory) close() error { return os.RemoveAll(d.path) }
