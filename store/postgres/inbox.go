package postgres

import (
	"context"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel"
)

// Inbox lists events, newest first; see semel.Runs.
func (s *Store) Inbox(ctx context.Context, f semel.EventFilter) iter.Seq2[semel.InboxEntry, error] {
	all := pages(func(before semel.ID) ([]sent, error) {
		q := listing{query: selectEvent, key: "e.id"}
		if f.Name != "" {
			q.where("e.name = %s::text", f.Name)
		}
		if f.Match != "" {
			q.where("e.match = %s::text", f.Match)
		}
		if f.ID != "" {
			q.where("e.sent_id = %s::text", f.ID)
		}
		query, args := q.page(before)
		return collect(ctx, s, "list events", func(row pgx.CollectableRow) (sent, error) { return scanEvent(row) }, query, args...)
	}, sentID)
	return func(yield func(semel.InboxEntry, error) bool) {
		for e, err := range newest(all, f.Limit, sentID, func(e sent) time.Time { return e.At }) {
			entry := semel.InboxEntry{InboxEvent: e.InboxEvent, Delivered: e.delivered}
			if err == nil {
				err = s.fates(ctx, e.id, &entry)
			}
			if !yield(entry, err) {
				return
			}
		}
	}
}

func sentID(e sent) semel.ID { return e.id }

// fates reads which runs took an event, and which it started.
func (s *Store) fates(ctx context.Context, id semel.ID, entry *semel.InboxEntry) error {
	const query = `
select run_id, true, at
from semel.event_taken
where event_id = $1::uuid
union all
select run_id, false, null
from semel.event_started
where event_id = $1::uuid
order by 3, 1`
	_, err := collect(ctx, s, "read who took an event", func(row pgx.CollectableRow) (struct{}, error) {
		var run [16]byte
		var taken bool
		var at *time.Time
		err := row.Scan(&run, &taken, &at)
		if taken {
			entry.TakenBy = append(entry.TakenBy, run)
		} else {
			entry.Started = append(entry.Started, run)
		}
		return struct{}{}, err
	}, query, [16]byte(id))
	return err
}
