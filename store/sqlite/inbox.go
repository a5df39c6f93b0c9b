package sqlite

import (
	"context"
	"database/sql"
	"iter"
	"math"
	"strings"

	"github.com/semel-dev/semel"
)

const (
	takersOfEvent = `
		select run
		from taken
		where event = ?
		order by run`
	runsOfEvent = `
		select run
		from started
		where event = ?
		order by run`
)

// inboxRow is an event with its number.
type inboxRow struct {
	semel.InboxEvent
	seq       int64
	delivered bool
}

func readEvent(sc scan) (inboxRow, error) {
	var e inboxRow
	var data sql.NullString
	var at int64
	err := sc(&e.seq, &e.ID, &e.Name, &e.Match, &data, &e.By, &at, &e.delivered)
	e.Data, e.At = bytesOf(data), fromNano(at)
	return e, err
}

func readInbox(ctx context.Context, s session, query string, args ...any) ([]inboxRow, error) {
	var all []inboxRow
	err := each(ctx, s, func(sc scan) error {
		e, err := readEvent(sc)
		all = append(all, e)
		return err
	}, query, args...)
	return all, err
}

// Inbox lists events, newest first, with the runs that took them. Like List it
// holds nothing while the caller works.
func (s *Store) Inbox(ctx context.Context, f semel.EventFilter) iter.Seq2[semel.InboxEntry, error] {
	return paged(f.Limit, func(before int64) ([]semel.InboxEntry, int64, error) {
		query, args := inboxQuery(f, before)
		var found []semel.InboxEntry
		var last int64
		err := s.read(ctx, func(tx *sql.Tx) error {
			rows, err := readInbox(ctx, tx, query, args...)
			found = nil
			for _, e := range rows {
				entry := semel.InboxEntry{InboxEvent: e.InboxEvent, Delivered: e.delivered}
				for _, r := range []struct {
					query string
					ids   *[]semel.ID
				}{{takersOfEvent, &entry.TakenBy}, {runsOfEvent, &entry.Started}} {
					if err := each(ctx, tx, func(sc scan) error {
						var id []byte
						err := sc(&id)
						*r.ids = append(*r.ids, semel.ID(id))
						return err
					}, r.query, e.seq); err != nil {
						return err
					}
				}
				found, last = append(found, entry), e.seq
			}
			return err
		})
		return found, last, err
	})
}

func inboxQuery(f semel.EventFilter, before int64) (string, []any) {
	where, args := []string{"seq < ?"}, []any{before}
	for _, c := range []struct{ column, value string }{{"name", f.Name}, {"match", f.Match}, {"id", f.ID}} {
		if c.value != "" {
			where, args = append(where, c.column+" = ?"), append(args, c.value)
		}
	}
	return "select " + eventColumns + " from event where " + strings.Join(where, " and ") + " order by seq desc limit ?", append(args, page)
}

// paged yields up to limit values, 0 for all, page by page: read returns those
// before a row number and the number of its last.
func paged[T any](limit int, read func(before int64) ([]T, int64, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if limit <= 0 {
			limit = math.MaxInt
		}
		for before, left := int64(math.MaxInt64), limit; ; {
			found, last, err := read(before)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, v := range found {
				if !yield(v, nil) {
					return
				}
				if left--; left == 0 {
					return
				}
			}
			if len(found) < page {
				return
			}
			before = last
		}
	}
}
