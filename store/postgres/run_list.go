package postgres

import (
	"context"
	"iter"
	"time"

	"github.com/semel-dev/semel"
)

// ListRuns lists runs, newest first; see semel.Runs. What changes meanwhile may
// or may not be seen.
func (s *Store) ListRuns(ctx context.Context, f semel.RunFilter) iter.Seq2[semel.Run, error] {
	all := pages(func(before semel.ID) ([]semel.Run, error) {
		q := listing{query: selectRun, key: "r.id"}
		if f.Workflow != "" {
			q.where("r.workflow = %s::text", f.Workflow)
		}
		if f.State != "" {
			q.where("r.state = %s::text", string(f.State))
		}
		if f.Key != "" {
			q.where("r.key = %s::text", string(f.Key))
		}
		if f.Parent != (semel.ID{}) {
			q.where("r.parent = %s::uuid", [16]byte(f.Parent))
		}
		if f.Event != "" {
			q.where("r.id in (select run_id from semel.wait where kind = 'event' and event = %s::text and match = %s::text)", f.Event, f.Match)
			q.where("r.ended_at is null")
		}
		if f.WaitsFor != (semel.ID{}) {
			q.where("r.id in (select run_id from semel.wait where target = %s::uuid)", [16]byte(f.WaitsFor))
			q.where("r.ended_at is null")
		}
		if !f.Since.IsZero() {
			// No ID is minted long before its run is created.
			q.where("r.created_at >= %s::timestamptz", f.Since)
			q.where("r.id >= %s::uuid", firstID(f.Since.Add(-recheck)))
		}
		query, args := q.page(before)
		return collect(ctx, s, "list runs", runRow, query, args...)
	}, runID)
	return newest(all, f.Limit, runID, func(r semel.Run) time.Time { return r.CreatedAt })
}

func runID(r semel.Run) semel.ID { return r.ID }
