package postgres

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel"
)

// listing writes the query of a list, newest first, for its filter. It is
// planned with its values.
type listing struct {
	query string
	key   string // an ID, which ascends
	conds []string
	args  []any
}

// where adds a condition; each %s is the place of a value.
func (l *listing) where(cond string, values ...any) {
	places := make([]any, len(values))
	for i, value := range values {
		l.args = append(l.args, value)
		places[i] = fmt.Sprintf("$%d", len(l.args))
	}
	l.conds = append(l.conds, fmt.Sprintf(cond, places...))
}

// page is the query for the rows behind the given one.
func (l *listing) page(before semel.ID) (query string, args []any) {
	if before != (semel.ID{}) {
		l.where(l.key+" < %s::uuid", [16]byte(before))
	}
	query = l.query
	if len(l.conds) > 0 {
		query += "\nwhere " + strings.Join(l.conds, "\n  and ")
	}
	query += fmt.Sprintf("\norder by %s desc\nlimit %d", l.key, page)
	return query, append([]any{pgx.QueryExecModeDescribeExec}, l.args...)
}

// pages yields what read returns, page after page.
func pages[T any](read func(before semel.ID) ([]T, error), id func(T) semel.ID) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for before := (semel.ID{}); ; {
			found, err := read(before)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, v := range found {
				if !yield(v, nil) {
					return
				}
			}
			if len(found) < page {
				return
			}
			before = id(found[len(found)-1])
		}
	}
}

// newest puts what was minted in one millisecond, whose IDs are in no order,
// into that of its creation, and ends after limit; 0 for all.
func newest[T any](all iter.Seq2[T, error], limit int, id func(T) semel.ID, created func(T) time.Time) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var moment []T
		left := limit
		pass := func(v T, err error) bool {
			left--
			return yield(v, err) && left != 0 // never 0 where there was no limit
		}
		flush := func() bool {
			slices.SortStableFunc(moment, func(a, b T) int { return created(b).Compare(created(a)) })
			for _, v := range moment {
				if !pass(v, nil) {
					return false
				}
			}
			moment = moment[:0]
			return true
		}
		for v, err := range all {
			if err != nil {
				if !flush() || !pass(v, err) {
					return
				}
				continue
			}
			if len(moment) > 0 && !id(moment[0]).Time().Equal(id(v).Time()) && !flush() {
				return
			}
			moment = append(moment, v)
		}
		flush()
	}
}
