package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/semel-dev/semel"
)

const (
	// dueRuns finds those of one workflow, version and priority: what other
	// workers execute, and what sleeps, is never looked at.
	dueRuns = `
		select id, due_at, attempt, by, lease_until is not null
		from run indexed by run_due
		where workflow = ?
			and version = ?
			and priority = ?
			and paused_by is null
			and due_at <= ?
		order by due_at
		limit ?`
	claimRun = `
		update run
		set state = 'running',
			reason = '',
			attempt = attempt + 1,
			crashes = crashes + ?2,
			by = ?3,
			lease_until = ?4,
			due_at = ?4,
			updated_at = ?5
		where id = ?1
		returning ` + runColumns
	renewRun = `
		update run
		set lease_until = max(lease_until, ?3),
			due_at = max(lease_until, ?3)
		where id = ?1
			and attempt = ?2
			and state = 'running'
			and lease_until > ?4
		returning ` + runColumns
	nextRun = `
		select due_at
		from run indexed by run_due
		where workflow = ?
			and version = ?
			and priority = ?
			and paused_by is null
			and due_at is not null
		order by due_at
		limit 1`
	nextSchedule = `
		select next_at
		from schedule
		where paused_by is null
		order by next_at
		limit 1`
)

var priorities = [...]semel.Priority{semel.High, semel.Normal, semel.Low}

// Claim takes up to limit runs that are due; see semel.Runs. Where there are
// none it writes nothing.
func (s *Store) Claim(ctx context.Context, c semel.RunClaim, workflows []semel.WorkflowRef, limit int) ([]semel.Run, error) {
	if limit <= 0 {
		return nil, nil
	}
	var due []dueRun
	err := s.read(ctx, func(tx *sql.Tx) (err error) {
		due, err = findDue(ctx, tx, workflows, s.clock.now(), 1)
		return err
	})
	if err != nil || len(due) == 0 {
		return nil, err
	}
	w := &runClaim{RunClaim: c, workflows: workflows, limit: limit}
	if err := s.submit(ctx, w, true); err != nil {
		return nil, err
	}
	return w.runs, nil
}

type dueRun struct {
	id      semel.ID
	at      int64
	attempt int
	by      string
	lapsed  bool // a worker held it and did not end its execution
}

// findDue finds up to limit due runs: high priority first, then the longest
// overdue.
func findDue(ctx context.Context, s session, workflows []semel.WorkflowRef, now int64, limit int) ([]dueRun, error) {
	var all []dueRun
	for _, p := range priorities {
		var due []dueRun
		read := func(sc scan) error {
			var d dueRun
			var id []byte
			err := sc(&id, &d.at, &d.attempt, &d.by, &d.lapsed)
			copy(d.id[:], id)
			due = append(due, d)
			return err
		}
		for _, ref := range workflows {
			if err := each(ctx, s, read, dueRuns, ref.Name, ref.Version, int(p), now, limit-len(all)); err != nil {
				return nil, err
			}
		}
		slices.SortStableFunc(due, func(a, b dueRun) int { return int(min(max(a.at-b.at, -1), 1)) })
		all = append(all, due[:min(len(due), limit-len(all))]...)
		if len(all) == limit {
			break
		}
	}
	return all, nil
}

// runClaim is the work of Claim.
type runClaim struct {
	semel.RunClaim
	workflows []semel.WorkflowRef
	limit     int
	runs      []semel.Run
}

func (c *runClaim) write(w *writer, at int64) error {
	ctx := context.Background()
	c.runs = nil
	due, err := findDue(ctx, w, c.workflows, at, c.limit)
	if err != nil {
		return err
	}
	for _, d := range due {
		if d.lapsed {
			text := fmt.Sprintf("attempt %d ended without a word", d.attempt)
			if err := note(ctx, w, d.id, at, semel.RunNote{Kind: "lapsed", By: d.by, Text: text}); err != nil {
				return err
			}
		}
		err := each(ctx, w, c.take, claimRun, d.id[:], d.lapsed, c.By, at+int64(c.Lease), at)
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *runClaim) take(sc scan) error {
	r, err := readRun(sc)
	c.runs = append(c.runs, r)
	return err
}

// RenewRuns extends the leases of runs that a worker holds; see semel.Runs.
func (s *Store) RenewRuns(ctx context.Context, held []semel.RunFence, lease time.Duration) ([]semel.Run, error) {
	if len(held) == 0 {
		return nil, nil
	}
	w := &runRenewal{held: held, lease: lease}
	if err := s.submit(ctx, w, false); err != nil {
		return nil, err
	}
	return w.runs, nil
}

type runRenewal struct {
	held  []semel.RunFence
	lease time.Duration
	runs  []semel.Run
}

func (r *runRenewal) write(w *writer, at int64) error {
	r.runs = nil
	for _, f := range r.held {
		err := each(context.Background(), w, func(sc scan) error {
			run, err := readRun(sc)
			r.runs = append(r.runs, run)
			return err
		}, renewRun, f.Run[:], f.Attempt, at+int64(r.lease), at)
		if err != nil {
			return err
		}
	}
	return nil
}

// NextDue is when the next run of the given workflows, or the next schedule,
// is due; zero for none.
func (s *Store) NextDue(ctx context.Context, workflows []semel.WorkflowRef) (time.Time, error) {
	var next time.Time
	err := s.read(ctx, func(tx *sql.Tx) error {
		next = time.Time{}
		earliest := func(sc scan) error {
			var at int64
			err := sc(&at)
			if t := fromNano(at); next.IsZero() || t.Before(next) {
				next = t
			}
			return err
		}
		for _, ref := range workflows {
			for _, p := range priorities {
				if err := each(ctx, tx, earliest, nextRun, ref.Name, ref.Version, int(p)); err != nil {
					return err
				}
			}
		}
		return each(ctx, tx, earliest, nextSchedule)
	})
	return next, err
}
