package sqlite

import (
	"context"
	"database/sql"
	"iter"
	"strings"

	"github.com/semel-dev/semel"
)

// ListRuns lists runs, newest first. Like List it holds nothing while the
// caller works.
func (s *Store) ListRuns(ctx context.Context, f semel.RunFilter) iter.Seq2[semel.Run, error] {
	return paged(f.Limit, func(before int64) ([]semel.Run, int64, error) {
		query, args := runQuery(f, before)
		var found []semel.Run
		var last int64
		err := s.read(ctx, func(tx *sql.Tx) error {
			found = nil
			return each(ctx, tx, func(sc scan) error {
				r, err := readRun(func(dest ...any) error { return sc(append(dest, &last)...) })
				found = append(found, r)
				return err
			}, query, args...)
		})
		return found, last, err
	})
}

// runsBy is the table with the index that finds the fewest: the planner would take
// that of workflow and key, and sort all of a workflow for each page.
func runsBy(f semel.RunFilter) string {
	switch {
	case f.Key != "" || f.Parent != (semel.ID{}) || f.Event != "" || f.WaitsFor != (semel.ID{}):
	case f.State == semel.RunHeld:
		return "run indexed by run_held"
	case !f.Since.IsZero():
		return "run not indexed"
	}
	return "run"
}

// runQuery builds the statement that finds one page. Runs are in the order in
// which they were created, so newest first is a walk from the end of the table,
// or of a small index.
func runQuery(f semel.RunFilter, before int64) (string, []any) {
	where, args := []string{"seq < ?"}, []any{before}
	and := func(cond string, values ...any) { where, args = append(where, cond), append(args, values...) }
	if f.Workflow != "" {
		and("workflow = ?", f.Workflow)
	}
	if f.Key != "" {
		and("key = ?", string(f.Key))
	}
	switch {
	case f.State == semel.RunHeld:
		where = append(where, "state = 'held'")
	case f.State != "":
		and("state = ?", string(f.State))
	}
	if f.Parent != (semel.ID{}) {
		and("parent = ?", f.Parent[:])
	}
	if f.Event != "" {
		and("id in (select run from wait where event = ? and match = ?)", f.Event, f.Match)
		and("ended_at is null")
	}
	if f.WaitsFor != (semel.ID{}) {
		and("id in (select run from wait where target = ?)", f.WaitsFor[:])
		and("ended_at is null")
	}
	if !f.Since.IsZero() {
		and("seq > coalesce((select seq from run where created_at < ? order by seq desc limit 1), 0)", nano(f.Since))
	}
	return "select " + runColumns + ", seq from " + runsBy(f) + " where " + strings.Join(where, " and ") + " order by seq desc limit ?", append(args, page)
}
