package postgres

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel"
)

// page is how many operations List reads at a time.
const page = 200

// List lists operations, newest first. It holds no lock and no connection
// while the caller works, so what changes meanwhile may or may not be seen. A
// row that cannot be read is yielded as an error, and the listing goes on.
func (s *Store) List(ctx context.Context, f semel.Filter) iter.Seq2[semel.Operation, error] {
	return func(yield func(semel.Operation, error) bool) {
		now, swept, err := s.state(ctx)
		if err != nil {
			yield(semel.Operation{}, unavailable("list operations", err))
			return
		}
		left := f.Limit
		for o, err := range s.walk(ctx, f, now, swept) {
			if err == nil && f.Review && !forPerson(o, now) {
				continue
			}
			if !yield(o, err) {
				return
			}
			if left--; left == 0 {
				return
			}
		}
	}
}

// walk reads page after page in the order of IDs, from the newest.
func (s *Store) walk(ctx context.Context, f semel.Filter, now, swept time.Time) iter.Seq2[semel.Operation, error] {
	all := pages(func(before semel.ID) ([]stored, error) {
		query, args := listQuery(f, now, swept, before)
		found, err := s.stored(ctx, query, args...)
		if err != nil {
			return nil, unavailable("list operations", err)
		}
		return found, nil
	}, func(f stored) semel.ID { return f.record.ID })
	operations := func(yield func(semel.Operation, error) bool) {
		for f, err := range all {
			var o semel.Operation
			if err == nil {
				o, err = f.operation()
			}
			if !yield(o, err) {
				return
			}
		}
	}
	return newest(operations, 0, func(o semel.Operation) semel.ID { return o.ID }, func(o semel.Operation) time.Time { return o.CreatedAt })
}

// forPerson: no automatic move settles it. A lapsed lease counts as lapsed
// whether or not somebody has written so.
func forPerson(o semel.Operation, now time.Time) bool {
	if o.StateAt(now) != o.State {
		if lapsed, err := o.Apply(semel.Event{Kind: semel.EvLapsed, At: now, Attempt: o.Attempt}); err == nil {
			o = lapsed
		}
	}
	return o.Incident != "" || o.State == semel.Unknown && o.CheckAt.IsZero()
}

// unsettled is every operation that is not settled, or has an incident: those
// with a due_at, and first claims that the sweep has not come to. It is small,
// and found without a walk through the table.
const unsettled = `
with unsettled as materialized (
  select id from semel.operation where due_at is not null
  union all
  select id from semel.operation where id >= $1::uuid and state = 'in_progress' and due_at is null
)`

// listQuery is written for each filter and planned with its values.
func listQuery(f semel.Filter, now, swept time.Time, before semel.ID) (string, []any) {
	var where []string
	args := []any{pgx.QueryExecModeDescribeExec}
	arg := func(v any, kind string) string {
		args = append(args, v)
		return fmt.Sprintf("$%d::%s", len(args)-1, kind)
	}
	head := selectOperation
	if f.Review || f.State == semel.Unknown || f.State == semel.InProgress {
		arg(firstID(swept), "uuid")
		head = unsettled + selectOperation + "\njoin unsettled on unsettled.id = o.id"
	}
	lapsed := func() string { return "o.state = 'in_progress' and o.lease_until <= " + arg(now, "timestamptz") }
	switch f.State {
	case "":
	case semel.Unknown:
		where = append(where, "(o.state = 'unknown' or "+lapsed()+")")
	case semel.InProgress:
		where = append(where, "o.state = 'in_progress' and o.lease_until > "+arg(now, "timestamptz"))
	case semel.Completed, semel.Failed:
		where = append(where, "o.state = "+arg(string(f.State), "text"))
	}
	if f.Review {
		where = append(where, "(o.due_at = 'infinity' or o.incident or "+lapsed()+")")
	}
	if f.Scope != "" {
		where = append(where, "o.scope = "+arg(string(f.Scope), "text"))
	}
	if f.Fingerprint != (semel.Fingerprint{}) {
		where = append(where, "o.fingerprint = "+arg(f.Fingerprint[:], "bytea"))
	}
	if !f.Since.IsZero() {
		// No ID is minted long before its operation is created.
		where = append(where, "o.created_at >= "+arg(f.Since, "timestamptz"), "o.id >= "+arg(firstID(f.Since.Add(-recheck)), "uuid"))
	}
	if before != (semel.ID{}) {
		where = append(where, "o.id < "+arg([16]byte(before), "uuid"))
	}
	query := head
	if len(where) > 0 {
		query += "\nwhere " + strings.Join(where, "\n  and ")
	}
	return query + fmt.Sprintf("\norder by o.id desc\nlimit %d", page), args
}
