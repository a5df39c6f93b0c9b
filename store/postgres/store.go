package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-dev/semel"
)

// Options configure a Store. The zero value is right for most.
type Options struct {
	// Create makes the schema where there is none. It never changes one that
	// exists: that is what Migrate is for.
	Create bool
	// Committers is the most connections that commit at a time; 0 means 8. The
	// store uses two of them unless commits are slow.
	Committers int
	// Readers is the most connections that read at a time; 0 means 4. Lists take
	// up to two more while they are read.
	Readers int
	// Patience is how long a commit whose acknowledgement was lost is repeated
	// before it is given back as unconfirmed; 0 means 10 s.
	Patience time.Duration
}

// Store is a semel.Store in PostgreSQL.
type Store struct {
	pool     *pgxpool.Pool // reads by identity and short transactions, planned once
	lists    *pgxpool.Pool // lists, planned with the values of their filters
	group    *group
	clock    clock
	sweep    sweep
	expired  expired
	warnings []string
}

var (
	_ semel.Store = (*Store)(nil)
	_ semel.Runs  = (*Store)(nil)
)

// Open connects to the database that url names. The schema must be there and
// be the one this binary knows, or, with Options.Create, not be there at all.
func Open(ctx context.Context, url string, opts Options) (*Store, error) {
	opts.Committers = cmp.Or(opts.Committers, 8)
	opts.Readers = cmp.Or(opts.Readers, 4)
	opts.Patience = cmp.Or(opts.Patience, 10*time.Second)
	if err := ready(ctx, url, opts.Create); err != nil {
		return nil, err
	}
	server, err := newServer(ctx, url)
	if err != nil {
		return nil, err
	}
	s := &Store{}
	config := server.config.Copy()
	config.MaxConns = int32(opts.Readers) //nolint:gosec // a small number
	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		nameTypes(conn)
		return nil
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, fmt.Errorf("open %s: %w", server, err)
	}
	config = config.Copy()
	config.MaxConns, config.MinConns, config.MinIdleConns, config.MaxConnIdleTime = 2, 0, 0, time.Minute
	if !server.pooled.Load() {
		config.ConnConfig.RuntimeParams["plan_cache_mode"] = "force_custom_plan"
	}
	if s.lists, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		s.pool.Close()
		return nil, fmt.Errorf("open %s: %w", server, err)
	}
	if s.warnings, err = server.inspect(ctx, s.pool); err != nil {
		s.disconnect()
		return nil, err
	}
	if err := s.startClock(ctx); err != nil {
		s.disconnect()
		return nil, unavailable("read the clock", err)
	}
	s.group = newGroup(server, opts.Committers, opts.Patience, s.offset)
	return s, nil
}

// Warnings says what about the server weakens the guarantees, in words for
// people; empty on a well-kept one.
func (s *Store) Warnings() []string { return slices.Clone(s.warnings) }

// Close waits for commits under way and closes all connections.
func (s *Store) Close() error {
	s.group.close()
	s.disconnect()
	return nil
}

func (s *Store) disconnect() {
	s.pool.Close()
	s.lists.Close()
}

var errClosed = errors.New("the store is closed")
