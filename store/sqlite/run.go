package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/semel-dev/semel"
)

var _ semel.Runs = (*Store)(nil)

const (
	runColumns = `id, workflow, version, definition, key, input, fingerprint, trigger, priority, parent, parent_step,
			state, reason, attempt, crashes, by, lease_until, due_at, cancel_asked, paused_by, retried_at,
			done, total, result, created_at, updated_at, ended_at`
	insertRun = `
		insert into run (id, workflow, version, definition, key, input, fingerprint, trigger, priority, parent, parent_step,
			state, attempt, by, lease_until, due_at, created_at, updated_at)
		values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?17)
		on conflict do nothing`
	runOfID = `
		select ` + runColumns + `
		from run
		where id = ?`
	runOfKey = `
		select ` + runColumns + `
		from run
		where workflow = ? and key = ?`
)

// Start makes the run durable, or finds the one that has its workflow and key;
// see semel.Runs. A run that may not begin yet is claimed by nobody.
func (s *Store) Start(ctx context.Context, n semel.NewRun, claim *semel.RunClaim) (semel.Run, bool, error) {
	b, err := newBirth(n, s.clock.now())
	if err != nil {
		return semel.Run{}, false, err
	}
	b.claim = claim
	if err := s.submit(ctx, b, claim != nil); err != nil {
		return semel.Run{}, false, err
	}
	return b.run, b.existing, nil
}

// birth is the work of Start.
type birth struct {
	semel.NewRun
	claim       *semel.RunClaim
	fingerprint semel.Fingerprint
	trigger     string

	run      semel.Run
	existing bool
	inserted bool // by this transaction
}

// newBirth checks and encodes n, outside the transaction.
func newBirth(n semel.NewRun, now int64) (*birth, error) {
	if err := n.Validate(); err != nil {
		return nil, err
	}
	if n.Priority < semel.Low || n.Priority > semel.High {
		return nil, &semel.InputError{Field: "priority", Problem: fmt.Sprintf("is %d", n.Priority), Hint: "give -1, 0 or 1"}
	}
	fingerprint, err := n.Fingerprint()
	if err != nil {
		return nil, err
	}
	trigger, err := json.Marshal(n.Trigger)
	if err != nil {
		return nil, fmt.Errorf("encode trigger: %w", err)
	}
	if n.ID == (semel.ID{}) {
		n.ID = mintID(now)
	}
	return &birth{NewRun: n, fingerprint: fingerprint, trigger: string(trigger)}, nil
}

func mintID(now int64) semel.ID {
	var random [10]byte
	_, _ = rand.Read(random[:]) // never fails
	return semel.NewID(fromNano(now), random)
}

func (b *birth) write(w *writer, at int64) error { return b.insert(context.Background(), w, at) }

// insert writes the run, or reads the one that has its key.
func (b *birth) insert(ctx context.Context, s session, at int64) error {
	state, attempt, by, lease, due := semel.RunRunning, 0, "", any(nil), at
	switch {
	case b.At.After(fromNano(at)):
		state, due = semel.RunWaiting, nano(b.At).(int64)
	case b.claim != nil:
		due = at + int64(b.claim.Lease)
		attempt, by, lease = 1, b.claim.By, due
	}
	n, err := exec(ctx, s, insertRun, b.ID[:], b.Workflow, b.Version, b.Definition, string(b.Key), string(b.Input), b.fingerprint[:], b.trigger,
		int(b.Priority), blob(b.Parent), nonEmpty(b.ParentStep), string(state), attempt, by, lease, due, at)
	if err != nil {
		return err
	}
	b.inserted = n > 0
	found, err := one(ctx, s, b.read, runOfKey, b.Workflow, string(b.Key))
	if err != nil {
		return err
	}
	if !found {
		return &semel.InputError{Field: "run id", Problem: b.ID.String() + " belongs to another key", Hint: "mint a new one"}
	}
	b.existing = !b.inserted && !b.repeated()
	return nil
}

func (b *birth) read(sc scan) (err error) {
	b.run, err = readRun(sc)
	return err
}

// repeated: the run that was found is the one that an earlier call with this
// ID made, and still as that call made it.
func (b *birth) repeated() bool {
	r := &b.run
	if r.ID != b.ID {
		return false
	}
	return b.claim == nil || r.Attempt == 1 && r.By == b.claim.By && r.State == semel.RunRunning && !r.LeaseUntil.IsZero()
}

// LoadRun reads one run.
func (s *Store) LoadRun(ctx context.Context, id semel.ID) (semel.Run, error) {
	return s.run1(ctx, noRun(id), runOfID, id[:])
}

// FindRun finds a run by its key.
func (s *Store) FindRun(ctx context.Context, workflow string, key semel.Key) (semel.Run, error) {
	none := &answer{fmt.Sprintf("there is no run %q of %s", key, workflow), semel.ErrNotFound}
	return s.run1(ctx, none, runOfKey, workflow, string(key))
}

func (s *Store) run1(ctx context.Context, none error, query string, args ...any) (semel.Run, error) {
	var r semel.Run
	err := s.read(ctx, func(tx *sql.Tx) error {
		found, err := one(ctx, tx, func(sc scan) (err error) {
			r, err = readRun(sc)
			return err
		}, query, args...)
		if err == nil && !found {
			err = none
		}
		return err
	})
	return r, err
}

// lockedRun reads a run in the committer's transaction.
func lockedRun(ctx context.Context, s session, id semel.ID) (semel.Run, error) {
	var r semel.Run
	found, err := one(ctx, s, func(sc scan) (err error) {
		r, err = readRun(sc)
		return err
	}, runOfID, id[:])
	if err == nil && !found {
		err = noRun(id)
	}
	return r, err
}

// readRun reads the columns runColumns.
func readRun(sc scan) (semel.Run, error) {
	var r semel.Run
	var id, fingerprint, parent []byte
	var key, input, trigger, state string
	var parentStep, paused, result sql.NullString
	var cancel, lease, due, retried, ended sql.NullInt64
	var created, updated int64
	err := sc(&id, &r.Workflow, &r.Version, &r.Definition, &key, &input, &fingerprint, &trigger, &r.Priority, &parent, &parentStep,
		&state, &r.Reason, &r.Attempt, &r.Crashes, &r.By, &lease, &due, &cancel, &paused, &retried,
		&r.Done, &r.Total, &result, &created, &updated, &ended)
	if err != nil {
		return r, err
	}
	copy(r.ID[:], id)
	copy(r.Fingerprint[:], fingerprint)
	copy(r.Parent[:], parent)
	if err := json.Unmarshal([]byte(trigger), &r.Trigger); err != nil {
		return r, fmt.Errorf("run %s: read trigger: %w", r.ID, err)
	}
	r.Key, r.Input, r.State, r.ParentStep = semel.Key(key), []byte(input), semel.RunState(state), parentStep.String
	r.LeaseUntil, r.DueAt, r.RetriedAt, r.EndedAt = timeOf(lease), timeOf(due), timeOf(retried), timeOf(ended)
	r.Cancel, r.Paused, r.Result = cancel.Valid, paused.Valid, bytesOf(result)
	r.CreatedAt, r.UpdatedAt = fromNano(created), fromNano(updated)
	return r, nil
}

// held reports whether a worker holds the run at a time.
func held(r *semel.Run, at time.Time) bool { return r.LeaseUntil.After(at) }
