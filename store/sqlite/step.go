package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/semel-dev/semel"
)

const (
	// replaceStep keeps the place of a record in the story.
	replaceStep = `
		insert into step (run, path, kind, what, operation, outcome, result, failure, at)
		values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
		on conflict (run, path) do update
		set kind = ?3,
			what = ?4,
			operation = ?5,
			outcome = ?6,
			result = ?7,
			failure = ?8`
	stepColumns = `path, kind, what, operation, outcome, result, failure, at`
	selectSteps = `
		select ` + stepColumns + `
		from step
		where run = ?
		order by at, seq`
	stepOfPath = `
		select ` + stepColumns + `
		from step
		where run = ? and path = ?`
	operationsOfRun = `
		select seq
		from operation indexed by operation_run_id
		where run_id = ?
		order by seq`
)

func writeStep(ctx context.Context, s session, run semel.ID, r *semel.StepRecord, at int64) error {
	_, err := exec(ctx, s, replaceStep, run[:], r.Path, string(r.Kind), r.What, blob(r.Operation), string(r.Outcome), text(r.Result), r.Failure, at)
	return err
}

func readStep(sc scan) (semel.StepRecord, error) {
	var r semel.StepRecord
	var kind, outcome string
	var operation []byte
	var result sql.NullString
	var at int64
	err := sc(&r.Path, &kind, &r.What, &operation, &outcome, &result, &r.Failure, &at)
	copy(r.Operation[:], operation)
	r.Kind, r.Outcome, r.Result, r.At = semel.StepKind(kind), semel.StepOutcome(outcome), bytesOf(result), fromNano(at)
	return r, err
}

// History reads the steps and the waits of a run; see semel.Runs.
func (s *Store) History(ctx context.Context, run semel.ID) (h semel.RunHistory, err error) {
	err = s.read(ctx, func(tx *sql.Tx) (err error) {
		if h.Steps, err = stepsOf(ctx, tx, run); err != nil {
			return err
		}
		h.Waits, err = waitsOf(ctx, tx, run)
		return err
	})
	return h, err
}

// Steps reads the records of a run, oldest first, with their operations; see
// semel.Runs.
func (s *Store) Steps(ctx context.Context, run semel.ID) ([]semel.StepRecord, error) {
	var steps []semel.StepRecord
	err := s.read(ctx, func(tx *sql.Tx) (err error) {
		steps, err = stepsOf(ctx, tx, run)
		return err
	})
	return steps, err
}

func stepsOf(ctx context.Context, tx *sql.Tx, run semel.ID) ([]semel.StepRecord, error) {
	var steps []semel.StepRecord
	err := each(ctx, tx, func(sc scan) error {
		r, err := readStep(sc)
		steps = append(steps, r)
		return err
	}, selectSteps, run[:])
	if err != nil {
		return nil, err
	}
	written := map[string]bool{}
	for i := range steps {
		r := &steps[i]
		written[r.Path] = true
		if r.Operation == (semel.ID{}) {
			continue
		}
		record, err := readRecord(ctx, tx, recordOfID, r.Operation[:])
		if errors.Is(err, semel.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		o, err := record.Operation()
		if err != nil {
			return nil, err
		}
		setEffect(r, o)
	}
	var unreadable error
	_, err = eachOf(ctx, tx, operationsOfRun, []any{run[:]}, func(o semel.Operation, err error) {
		if err != nil {
			unreadable = errors.Join(unreadable, err)
			return
		}
		if !written[o.Step] {
			r := semel.StepRecord{Path: o.Step, Kind: semel.StepAction, What: o.Request.Action, Operation: o.ID, At: o.CreatedAt}
			setEffect(&r, o)
			steps = append(steps, r)
		}
	})
	slices.SortStableFunc(steps, func(a, b semel.StepRecord) int { return a.At.Compare(b.At) })
	return steps, errors.Join(err, unreadable)
}

// setEffect completes the record with its operation, whose outcome it is.
func setEffect(r *semel.StepRecord, o semel.Operation) {
	r.Effect = &o
	switch o.State {
	case semel.Completed:
		r.Outcome = semel.StepCompleted
	case semel.Failed:
		r.Outcome, r.Failure = semel.StepFailed, o.Reason
	case semel.InProgress, semel.Unknown:
		r.Outcome = ""
	}
}
