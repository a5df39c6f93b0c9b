package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-dev/semel"
)

// A backup restored to a point in time, and a standby that took over, go on in
// a new timeline; a dump goes to a server with another identifier. Either may
// lack claims that were acknowledged.

// identify reads which server this is. It needs no privilege.
const identify = `
with server as (
  select
    (select system_identifier from pg_control_system()) as system_identifier,
    case when not pg_is_in_recovery()
      then ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::integer end as timeline
)`

// Restoration says whether the database may lack claims that were made.
type Restoration struct {
	// Suspect: the server is another one, or went on after a restore or a
	// failover, and no claim is made until Accept. Claims up to WholeUntil are
	// there.
	Suspect bool
	// WholeUntil is the time up to which claims are there, AcceptedAt when a
	// person vouched for it: claims made between the two may be missing. Both
	// are zero for a database that was never restored.
	WholeUntil, AcceptedAt time.Time
}

// Restoration reads whether the database was restored.
func (s *Store) Restoration(ctx context.Context) (Restoration, error) {
	var r Restoration
	err := s.read(ctx, func(ctx context.Context) error {
		conn, err := s.pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release()
		r, err = restoration(ctx, conn.Conn())
		return err
	})
	if err != nil {
		return Restoration{}, unavailable("read whether the database was restored", err)
	}
	return r, nil
}

// Accept lets claims be made again on a server that was restored or took over,
// and that holds all claims up to wholeUntil: a person vouches for it.
func (s *Store) Accept(ctx context.Context, wholeUntil time.Time) error {
	const update = identify + `
update semel.store
set
  system_identifier = server.system_identifier,
  timeline = server.timeline,
  whole_until = $1::timestamptz,
  accepted_at = clock_timestamp() + $2::interval
from server`
	if _, err := s.pool.Exec(ctx, update, wholeUntil, s.offset()); err != nil {
		return unavailable("accept the restored database", err)
	}
	s.group.server.suspect.Store(nil)
	return nil
}

func restoration(ctx context.Context, conn *pgx.Conn) (Restoration, error) {
	const query = identify + `
select
  store.system_identifier <> server.system_identifier or store.timeline <> server.timeline,
  store.whole_until, store.accepted_at,
  (select created_at from semel.operation order by id desc limit 1)
from semel.store, server`
	var suspect pgtype.Bool
	var whole, accepted, last pgtype.Timestamptz
	if err := conn.QueryRow(ctx, query).Scan(&suspect, &whole, &accepted, &last); err != nil {
		return Restoration{}, err
	}
	r := Restoration{Suspect: suspect.Bool, WholeUntil: whole.Time.UTC(), AcceptedAt: accepted.Time.UTC()}
	if r.Suspect {
		r.WholeUntil = last.Time.UTC()
	}
	return r, nil
}

// judge compares the server with the one that the claims so far were made on.
func (s *server) judge(ctx context.Context, conn *pgx.Conn) error {
	r, err := restoration(ctx, conn)
	switch {
	case err != nil:
		return err
	case !r.Suspect:
		s.suspect.Store(nil)
		return nil
	}
	until := r.WholeUntil.Format(time.RFC3339)
	suspicion := fmt.Errorf("%w, or a standby took over: claims made in %s after %s may be missing, so nothing is sent: "+
		"find out what was sent since, then run semel store accept --whole-until %s", semel.ErrRestored, s, until, until)
	s.suspect.Store(&suspicion)
	return nil
}

// enrol remembers the server that the first store opened.
func (s *server) enrol(ctx context.Context, conn *pgx.Conn) error {
	const update = identify + `
update semel.store
set
  system_identifier = server.system_identifier,
  timeline = server.timeline
from server
where store.system_identifier is null`
	const known = `select system_identifier is not null from semel.store`
	var already bool
	if err := conn.QueryRow(ctx, known).Scan(&already); err != nil || already {
		return err
	}
	_, err := conn.Exec(ctx, update)
	if stateOf(err) == stateReadOnly {
		return nil
	}
	return err
}
