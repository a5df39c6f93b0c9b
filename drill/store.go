package drill

import (
	"context"
	"time"

	"github.com/semel-dev/semel"
)

// Store is what a drill works with: a store that keeps runs, and whose clock
// it may move.
type Store interface {
	semel.Store
	semel.Runs
	Shift(time.Duration)
}

// mortalStore is a store as a process that may die sees it. Reads for people
// are passed through.
type mortalStore struct {
	Store
	d *death
}

func (s *mortalStore) Now(ctx context.Context) (time.Time, error) {
	if s.d.isDead() { // the clock is read very often, and changes nothing
		return time.Time{}, errDead
	}
	return s.Store.Now(ctx)
}

func (s *mortalStore) Commit(ctx context.Context, c semel.Change) (semel.Operation, error) {
	return through(s.d, "Commit "+string(c.Event.Kind), func() (semel.Operation, error) { return s.Store.Commit(ctx, c) })
}

func (s *mortalStore) Renew(ctx context.Context, id semel.ID, attempt int, lease time.Duration) (semel.Renewal, error) {
	return through(s.d, "Renew", func() (semel.Renewal, error) { return s.Store.Renew(ctx, id, attempt, lease) })
}

func (s *mortalStore) Load(ctx context.Context, scope semel.Scope, key semel.Key) (semel.Operation, error) {
	return through(s.d, "Load", func() (semel.Operation, error) { return s.Store.Load(ctx, scope, key) })
}

func (s *mortalStore) LoadID(ctx context.Context, id semel.ID) (semel.Operation, error) {
	return through(s.d, "LoadID", func() (semel.Operation, error) { return s.Store.LoadID(ctx, id) })
}

func (s *mortalStore) Due(ctx context.Context, limit int) ([]semel.Operation, error) {
	return through(s.d, "Due", func() ([]semel.Operation, error) { return s.Store.Due(ctx, limit) })
}

func (s *mortalStore) Start(ctx context.Context, n semel.NewRun, claim *semel.RunClaim) (semel.Run, bool, error) {
	existing := false
	r, err := through(s.d, "Start", func() (r semel.Run, err error) {
		r, existing, err = s.Store.Start(ctx, n, claim)
		return r, err
	})
	return r, existing, err
}

func (s *mortalStore) Claim(ctx context.Context, c semel.RunClaim, workflows []semel.WorkflowRef, limit int) ([]semel.Run, error) {
	return through(s.d, "Claim", func() ([]semel.Run, error) { return s.Store.Claim(ctx, c, workflows, limit) })
}

func (s *mortalStore) RenewRuns(ctx context.Context, held []semel.RunFence, lease time.Duration) ([]semel.Run, error) {
	return through(s.d, "RenewRuns", func() ([]semel.Run, error) { return s.Store.RenewRuns(ctx, held, lease) })
}

func (s *mortalStore) CommitRun(ctx context.Context, c semel.RunCommit) semel.RunCommitted {
	answer, err := through(s.d, "CommitRun"+parts(c), func() (semel.RunCommitted, error) { return s.Store.CommitRun(ctx, c), nil })
	if err != nil {
		return semel.RunCommitted{OutcomeErr: err, ClaimErr: err, RunErr: err}
	}
	return answer
}

// parts names what a commit is made of.
func parts(c semel.RunCommit) string {
	name := ""
	if c.Outcome != nil {
		name += " outcome"
	}
	if len(c.Steps) > 0 {
		name += " steps"
	}
	if c.Claim != nil {
		name += " claim"
	}
	if c.Next != nil {
		name += " " + string(c.Next.State)
	}
	return name
}

func (s *mortalStore) TakeEvent(ctx context.Context, c semel.EventClaim) (semel.StepRecord, error) {
	return through(s.d, "TakeEvent", func() (semel.StepRecord, error) { return s.Store.TakeEvent(ctx, c) })
}

func (s *mortalStore) FindRun(ctx context.Context, workflow string, key semel.Key) (semel.Run, error) {
	return through(s.d, "FindRun", func() (semel.Run, error) { return s.Store.FindRun(ctx, workflow, key) })
}

func (s *mortalStore) LoadRun(ctx context.Context, id semel.ID) (semel.Run, error) {
	return through(s.d, "LoadRun", func() (semel.Run, error) { return s.Store.LoadRun(ctx, id) })
}

func (s *mortalStore) History(ctx context.Context, run semel.ID) (semel.RunHistory, error) {
	return through(s.d, "History", func() (semel.RunHistory, error) { return s.Store.History(ctx, run) })
}

func (s *mortalStore) ChangeRun(ctx context.Context, id semel.ID, c semel.RunCommand) (semel.Run, error) {
	return through(s.d, "ChangeRun", func() (semel.Run, error) { return s.Store.ChangeRun(ctx, id, c) })
}

func (s *mortalStore) Deliver(ctx context.Context, limit int) (int, error) {
	return through(s.d, "Deliver", func() (int, error) { return s.Store.Deliver(ctx, limit) })
}

func (s *mortalStore) Approval(ctx context.Context, id semel.ID) (semel.Approval, error) {
	return through(s.d, "Approval", func() (semel.Approval, error) { return s.Store.Approval(ctx, id) })
}

func (s *mortalStore) Decide(ctx context.Context, id semel.ID, d semel.Decision) (semel.Approval, error) {
	return through(s.d, "Decide", func() (semel.Approval, error) { return s.Store.Decide(ctx, id, d) })
}

func (s *mortalStore) Register(ctx context.Context, definitions []semel.WorkflowDefinition) error {
	return throughOnly(s.d, "Register", func() error { return s.Store.Register(ctx, definitions) })
}

func (s *mortalStore) Schedules(ctx context.Context) ([]semel.ScheduleState, error) {
	return through(s.d, "Schedules", func() ([]semel.ScheduleState, error) { return s.Store.Schedules(ctx) })
}

func (s *mortalStore) Fire(ctx context.Context, f semel.Firing) error {
	return throughOnly(s.d, "Fire", func() error { return s.Store.Fire(ctx, f) })
}

func (s *mortalStore) Acquire(ctx context.Context, l semel.Limit, holder semel.ID, lease time.Duration) (semel.Place, error) {
	return through(s.d, "Acquire", func() (semel.Place, error) { return s.Store.Acquire(ctx, l, holder, lease) })
}

func (s *mortalStore) Release(ctx context.Context, l semel.Limit, holder semel.ID) error {
	return throughOnly(s.d, "Release", func() error { return s.Store.Release(ctx, l, holder) })
}
