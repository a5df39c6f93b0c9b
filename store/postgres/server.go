package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// server is the database that the store connects to.
type server struct {
	config  *pgxpool.Config
	pooled  atomic.Bool           // a pooler in between takes no settings at start-up
	suspect atomic.Pointer[error] // why claims are refused
}

// session is what correctness asks of a session, by name of the setting.
var session = map[string]string{
	"synchronous_commit":            "on",
	"default_transaction_isolation": "read committed",
	"lock_timeout":                  "1500ms", // more than deadlock_timeout, 1s by default: one of two that wait for each other is told so
	"enable_seqscan":                "off",    // a plan made while a table was small must not walk it when it is large
	"plan_cache_mode":               "force_generic_plan",
	"jit":                           "off", // compiling a plan that enable_seqscan makes look costly takes 0.2 s
	"application_name":              "semel",
}

func newServer(ctx context.Context, url string) (*server, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("read the database URL: %w", err)
	}
	s := &server{config: config}
	given := config.ConnConfig.RuntimeParams
	for name, value := range session {
		if _, ok := given[name]; !ok || name == "synchronous_commit" && given[name] != "remote_apply" {
			given[name] = value
		}
	}
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", s, unavailable("connect", err))
	}
	return s, conn.Close(ctx)
}

func (s *server) String() string {
	c := s.config.ConnConfig
	return fmt.Sprintf("database %s at %s:%d", c.Database, c.Host, c.Port)
}

// connect opens a session. A pooler that refuses settings at start-up gets
// none; commits then set what they need by themselves.
func (s *server) connect(ctx context.Context) (*pgx.Conn, error) {
	conn, err := s.dial(ctx)
	if err == nil {
		nameTypes(conn)
	}
	return conn, err
}

// nameTypes lets a session without prepared statements know what an ID is.
func nameTypes(conn *pgx.Conn) {
	conn.TypeMap().RegisterDefaultPgType([16]byte{}, "uuid")
	conn.TypeMap().RegisterDefaultPgType([][16]byte{}, "_uuid")
}

func (s *server) dial(ctx context.Context) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, s.config.ConnConfig)
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && strings.Contains(pg.Message, "startup parameter") && !s.pooled.Load() {
		for name := range session {
			delete(s.config.ConnConfig.RuntimeParams, name)
		}
		s.pooled.Store(true)
		return pgx.ConnectConfig(ctx, s.config.ConnConfig)
	}
	return conn, err
}

// inspect looks for what weakens the guarantees, and whether this server is
// the one that holds the claims made so far.
func (s *server) inspect(ctx context.Context, pool *pgxpool.Pool) (warnings []string, err error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, unavailable("inspect "+s.String(), err)
	}
	defer conn.Release()
	const query = `
select current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on',
  current_setting('transaction_isolation')`
	var fsync, fullPages bool
	var isolation string
	if err := conn.QueryRow(ctx, query).Scan(&fsync, &fullPages, &isolation); err != nil {
		return nil, unavailable("inspect "+s.String(), err)
	}
	if !fsync {
		warnings = append(warnings, "fsync is off: a power loss can lose claims, and their effects then happen again: turn it on")
	}
	if !fullPages {
		warnings = append(warnings, "full_page_writes is off: a power loss can damage the database: turn it on")
	}
	if isolation != "read committed" {
		return nil, fmt.Errorf("%s: transactions are %s by default: alter role ... set default_transaction_isolation = 'read committed'", s, isolation)
	}
	err = s.enrol(ctx, conn.Conn())
	if err == nil {
		err = s.judge(ctx, conn.Conn())
	}
	switch {
	case stateOf(err) == stateDenied:
		warnings = append(warnings, "this role may not read pg_control_system: a restored backup or a failover goes unnoticed: grant it")
	case err != nil:
		return nil, unavailable("inspect "+s.String(), err)
	}
	return warnings, nil
}
