package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"math"
	"strings"

	"github.com/semel-dev/semel"
)

// page is how many operations one read transaction of a listing covers.
const page = 100

// dueOperations finds those whose due_at has come, longest overdue first.
const dueOperations = `
	select seq
	from operation indexed by operation_due_at
	where due_at <= ?
	order by due_at
	limit ?`

// Due lists up to limit operations that recovery should look at now. A row
// that cannot be read does not keep the others from recovery: Due fails only
// where none can be read. List shows it.
func (s *Store) Due(ctx context.Context, limit int) ([]semel.Operation, error) {
	var due []semel.Operation
	var unreadable error
	err := s.read(ctx, func(tx *sql.Tx) error {
		due, unreadable = nil, nil
		_, err := eachOf(ctx, tx, dueOperations, []any{s.clock.now(), limit}, func(o semel.Operation, err error) {
			if err != nil {
				unreadable = errors.Join(unreadable, err)
				return
			}
			due = append(due, o)
		})
		return err
	})
	if err == nil && len(due) == 0 && unreadable != nil {
		err = unavailable(s.path, unreadable)
	}
	return due, err
}

// List lists operations, newest first. It holds no lock and no connection
// while the caller works, so what changes meanwhile may or may not be seen. A
// row that cannot be read is yielded as an error, and the listing goes on.
func (s *Store) List(ctx context.Context, f semel.Filter) iter.Seq2[semel.Operation, error] {
	return func(yield func(semel.Operation, error) bool) {
		left := f.Limit
		if left <= 0 {
			left = math.MaxInt
		}
		for before, more := int64(math.MaxInt64), true; more; {
			var found []listed
			now := s.clock.now()
			query, args := listQuery(f, now, before)
			err := s.read(ctx, func(tx *sql.Tx) error {
				found = nil
				seqs, err := eachOf(ctx, tx, query, args, func(o semel.Operation, err error) {
					if err != nil {
						found = append(found, listed{err: unavailable(s.path, err)})
					} else if !f.Review || forPerson(o, now) {
						found = append(found, listed{operation: o})
					}
				})
				more = len(seqs) == page
				if more {
					before = seqs[page-1]
				}
				return err
			})
			if err != nil {
				yield(semel.Operation{}, err)
				return
			}
			for _, l := range found {
				if !yield(l.operation, l.err) {
					return
				}
				if left--; left == 0 {
					return
				}
			}
		}
	}
}

type listed struct {
	operation semel.Operation
	err       error
}

// forPerson: no automatic move settles it. A lapsed lease counts as lapsed
// whether or not somebody has written so.
func forPerson(o semel.Operation, now int64) bool {
	at := fromNano(now)
	if o.State == semel.InProgress && o.StateAt(at) == semel.Unknown {
		lapsed, err := o.Apply(semel.Event{Kind: semel.EvLapsed, At: at, Attempt: o.Attempt})
		if err == nil {
			o = lapsed
		}
	}
	return o.Incident != "" || o.State == semel.Unknown && o.CheckAt.IsZero()
}

// listQuery builds the statement that finds one page. What is not settled is
// found by the index on due_at, which is small; the rest by walking the table
// from its end, which is its order.
func listQuery(f semel.Filter, now, before int64) (string, []any) {
	var b strings.Builder
	from, where, args := "operation not indexed", []string{"seq < ?"}, []any{before}
	and := func(cond string, a ...any) {
		where = append(where, cond)
		args = append(args, a...)
	}
	const small = "operation indexed by operation_due_at"
	switch f.State {
	case semel.Unknown:
		from = small
		and("due_at is not null")
		and("(state = 'unknown' or state = 'in_progress' and lease_until <= ?)", now)
	case semel.InProgress:
		from = small
		and("due_at > ?", now)
		and("state = 'in_progress'")
	case semel.Completed, semel.Failed:
		and("state = ?", string(f.State))
	}
	if f.Review {
		from = small
		and("due_at is not null")
		and("(due_at = ? or incident or state = 'in_progress' and lease_until <= ?)", int64(never), now)
	}
	if f.Scope != "" {
		if from != small {
			from = "operation indexed by operation_scope_key"
		}
		and("scope = ?", string(f.Scope))
	}
	if f.Fingerprint != (semel.Fingerprint{}) {
		and("fingerprint = ?", f.Fingerprint[:])
	}
	if !f.Since.IsZero() {
		// The clock never runs back, so rows are in the order of created_at and
		// the walk can end at the first that is too old.
		and(`seq > coalesce((select seq from operation not indexed where created_at < ? order by seq desc limit 1), 0)`, f.Since.UnixNano())
	}
	b.WriteString("select seq from " + from + " where " + strings.Join(where, " and ") + " order by seq desc limit ?")
	return b.String(), append(args, page)
}

// eachOf runs query, which answers row numbers, and hands each operation to do.
func eachOf(ctx context.Context, tx *sql.Tx, query string, args []any, do func(semel.Operation, error)) ([]int64, error) {
	seqs, err := numbers(ctx, tx, query, args)
	if err != nil {
		return nil, err
	}
	const bySeq = selectRecord + `
		where seq = ?`
	for _, seq := range seqs {
		r, err := readRecord(ctx, tx, bySeq, seq)
		if code(err) != 0 || ctx.Err() != nil {
			return nil, err
		}
		if err != nil {
			do(semel.Operation{}, err)
			continue
		}
		do(r.Operation())
	}
	return seqs, nil
}

func numbers(ctx context.Context, tx *sql.Tx, query string, args []any) ([]int64, error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var seqs []int64
	for rows.Next() {
		var seq int64
		if err := rows.Scan(&seq); err != nil {
			return nil, err
		}
		seqs = append(seqs, seq)
	}
	return seqs, rows.Err()
}
