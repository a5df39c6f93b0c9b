package postgres

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-dev/semel"
)

// insertStep writes the record of a step. The run is locked, so that no other
// worker has read the steps without this one, and computes another value. A
// record that is replaced keeps its place in the story.
const insertStep = `
insert into semel.step (run_id, path, kind, what, operation_id, outcome, result, failure, at)
select r.id, $3::text, $4::text, $5::text, $6::uuid, $7::text, $8::bytea, $9::text, clock_timestamp() + $10::interval
from (
  select r.id
  from semel.run as r
  where r.id = $1::uuid
    and r.attempt = $2::integer` + held + `
  for share
) as r
on conflict (run_id, path) do update
set kind = excluded.kind, what = excluded.what, operation_id = excluded.operation_id, outcome = excluded.outcome,
  result = excluded.result, failure = excluded.failure
returning at, false`

func (s *Store) recording(f semel.RunFence, rec semel.StepRecord) statement {
	return statement{sql: insertStep, args: []any{
		[16]byte(f.Run), f.Attempt, rec.Path, string(rec.Kind), rec.What, uuid(rec.Operation), string(rec.Outcome),
		rec.Result, rec.Failure, s.offset(),
	}}
}

const selectStep = `
select path, kind, what, operation_id, outcome, result, failure, at
from semel.step`

func scanStep(row pgx.CollectableRow) (semel.StepRecord, error) {
	var rec semel.StepRecord
	var operation pgtype.UUID
	err := row.Scan(&rec.Path, &rec.Kind, &rec.What, &operation, &rec.Outcome, &rec.Result, &rec.Failure, &rec.At)
	rec.Operation, rec.At = operation.Bytes, rec.At.UTC()
	return rec, err
}

// Steps reads the records of a run; see semel.Runs.
func (s *Store) Steps(ctx context.Context, run semel.ID) ([]semel.StepRecord, error) {
	h, err := s.History(ctx, run)
	return h.Steps, err
}

// History reads the steps and the waits of a run in one round trip, unless a
// step joined an operation of another run, or one has much evidence; see
// semel.Runs.
func (s *Store) History(ctx context.Context, run semel.ID) (h semel.RunHistory, err error) {
	const ofRun = selectStep + `
where run_id = $1::uuid`
	const claimed = selectOperation + `
where o.run_id = $1::uuid`
	var own []stored
	err = s.read(ctx, func(ctx context.Context) error {
		var batch pgx.Batch // a batch remembers statements of the connection that it was sent on
		read(&batch, &h.Steps, scanStep, ofRun, [16]byte(run))
		read(&batch, &own, scan, claimed, [16]byte(run))
		read(&batch, &h.Waits, scanWait, selectWaits, [16]byte(run))
		if err := s.pool.SendBatch(ctx, &batch).Close(); err != nil {
			return err
		}
		return s.evidence(ctx, own)
	})
	if err != nil {
		return semel.RunHistory{}, unavailable("read the history of a run", err)
	}
	h.Steps, err = s.withEffects(ctx, h.Steps, own)
	return h, err
}

// read queues a query, whose rows go into all.
func read[T any](batch *pgx.Batch, all *[]T, scan func(pgx.CollectableRow) (T, error), query string, args ...any) {
	batch.Queue(query, args...).Query(func(rows pgx.Rows) (err error) {
		*all, err = pgx.CollectRows(rows, scan)
		return err
	})
}

// withEffects completes records with their operations, and makes those of steps
// that wrote none.
func (s *Store) withEffects(ctx context.Context, steps []semel.StepRecord, claimed []stored) ([]semel.StepRecord, error) {
	const joined = selectOperation + `
where o.id = any($1::uuid[])`
	own, err := operationsOf(claimed)
	if err != nil {
		return nil, err
	}
	var others [][16]byte
	recorded := make(map[string]bool, len(steps))
	for _, rec := range steps {
		recorded[rec.Path] = true
		if _, ok := own[rec.Operation]; !ok && rec.Operation != (semel.ID{}) {
			others = append(others, rec.Operation)
		}
	}
	effects := maps.Clone(own)
	if len(others) > 0 {
		found, err := s.stored(ctx, joined, others)
		if err != nil {
			return nil, unavailable("read operations", err)
		}
		others, err := operationsOf(found)
		if err != nil {
			return nil, err
		}
		maps.Copy(effects, others)
	}
	for i := range steps {
		if o, ok := effects[steps[i].Operation]; ok {
			setEffect(&steps[i], o)
		}
	}
	for _, o := range own {
		if !recorded[o.Step] {
			rec := semel.StepRecord{Path: o.Step, Kind: semel.StepAction, What: o.Request.Action, Operation: o.ID, At: o.CreatedAt}
			setEffect(&rec, o)
			steps = append(steps, rec)
		}
	}
	slices.SortStableFunc(steps, func(a, b semel.StepRecord) int {
		if n := a.At.Compare(b.At); n != 0 {
			return n
		}
		return strings.Compare(a.Path, b.Path)
	})
	return steps, nil
}

// setEffect completes the record with its operation, whose outcome it is.
func setEffect(rec *semel.StepRecord, o *semel.Operation) {
	rec.Effect = o
	switch o.State {
	case semel.Completed:
		rec.Outcome = semel.StepCompleted
	case semel.Failed:
		rec.Outcome, rec.Failure = semel.StepFailed, o.Reason
	case semel.InProgress, semel.Unknown:
		rec.Outcome = ""
	}
}

func operationsOf(found []stored) (map[semel.ID]*semel.Operation, error) {
	all := make(map[semel.ID]*semel.Operation, len(found))
	for _, f := range found {
		o, err := f.operation()
		if err != nil {
			return nil, err
		}
		all[o.ID] = &o
	}
	return all, nil
}
