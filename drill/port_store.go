package drill

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/semel-dev/semel"
)

// portStore is the store as a process sees it. What only people read is passed
// through.
type portStore struct {
	Store
	p *process
}

// ask makes a call that reads, or that the trial need not tell apart.
func ask[T any](s *portStore, c call, work func() (T, error)) (T, error) {
	var out, none T
	var err error
	if lost := s.p.visit(c, func(Fault) { out, err = work() }); lost != nil {
		return none, lost
	}
	return out, err
}

func (s *portStore) Now(ctx context.Context) (time.Time, error) {
	if s.p.dead.Load() { // the clock is read very often, and changes nothing
		return time.Time{}, errDead
	}
	return s.Store.Now(ctx)
}

func (s *portStore) Commit(ctx context.Context, c semel.Change) (semel.Operation, error) {
	o, err := ask(s, call{
		port: "Commit", what: s.p.t.change(&c), writes: true, claims: c.Event.Kind == semel.EvClaimed,
		contract: c.Before.Contract, approved: c.Event.Approval != (semel.ID{}),
	}, func() (semel.Operation, error) { return s.Store.Commit(ctx, c) })
	if err == nil {
		s.p.t.recorded(s.p, &c)
	}
	return o, err
}

func (s *portStore) CommitRun(ctx context.Context, c semel.RunCommit) semel.RunCommitted {
	of := call{port: "CommitRun", what: s.p.t.commit(&c), writes: true, claims: c.Claim != nil}
	if c.Claim != nil {
		of.contract, of.approved = c.Claim.Before.Contract, c.Claim.Event.Approval != (semel.ID{})
	}
	var out semel.RunCommitted
	if lost := s.p.visit(of, func(Fault) {
		if out = s.Store.CommitRun(ctx, c); out.RunErr == nil {
			s.p.t.kept(c.Run, c.Steps)
		}
	}); lost != nil {
		out = semel.RunCommitted{RunErr: lost}
		if c.Claim != nil {
			out.ClaimErr = lost
		}
		if c.Outcome != nil {
			out.OutcomeErr = lost
		}
		return out
	}
	if c.Outcome != nil && out.OutcomeErr == nil {
		s.p.t.recorded(s.p, c.Outcome)
	}
	if c.Claim != nil && out.ClaimErr == nil && out.RunErr == nil {
		s.p.t.recorded(s.p, c.Claim)
	}
	if c.Next != nil && out.RunErr == nil {
		s.p.t.ended(s.p, c.Run, c.Next)
	}
	return out
}

func (s *portStore) Renew(ctx context.Context, id semel.ID, attempt int, until time.Duration) (semel.Renewal, error) {
	return ask(s, call{port: "Renew", what: "renewing the lease of an operation", writes: true}, func() (semel.Renewal, error) { return s.Store.Renew(ctx, id, attempt, until) })
}

func (s *portStore) Load(ctx context.Context, scope semel.Scope, key semel.Key) (semel.Operation, error) {
	return ask(s, call{port: "Load", what: "reading an operation"}, func() (semel.Operation, error) { return s.Store.Load(ctx, scope, key) })
}

func (s *portStore) LoadID(ctx context.Context, id semel.ID) (semel.Operation, error) {
	return ask(s, call{port: "LoadID", what: "reading an operation"}, func() (semel.Operation, error) { return s.Store.LoadID(ctx, id) })
}

// Due hands over one operation at a time, each in its turn: recovery has one
// order then.
func (s *portStore) Due(ctx context.Context, limit int) ([]semel.Operation, error) {
	due, err := ask(s, call{port: "Due", what: "looking for operations to recover"}, func() ([]semel.Operation, error) { return s.Store.Due(ctx, limit) })
	if len(due) < 2 {
		return due, err
	}
	slices.SortFunc(due, func(a, b semel.Operation) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Key, b.Key))
	})
	t := s.p.t
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn++
	return due[t.turn%len(due):][:1], err
}

func (s *portStore) Start(ctx context.Context, n semel.NewRun, claim *semel.RunClaim) (semel.Run, bool, error) {
	existing := false
	r, err := ask(s, call{port: "Start", what: "starting the run of " + n.Workflow, writes: true}, func() (r semel.Run, err error) {
		r, existing, err = s.Store.Start(ctx, n, claim)
		return r, err
	})
	return r, existing, err
}

func (s *portStore) Claim(ctx context.Context, c semel.RunClaim, workflows []semel.WorkflowRef, limit int) ([]semel.Run, error) {
	return ask(s, call{port: "Claim", what: "claiming runs", writes: true}, func() ([]semel.Run, error) { return s.Store.Claim(ctx, c, workflows, limit) })
}

func (s *portStore) RenewRuns(ctx context.Context, held []semel.RunFence, until time.Duration) ([]semel.Run, error) {
	return ask(s, call{port: "RenewRuns", what: "renewing the leases of runs", writes: true}, func() ([]semel.Run, error) { return s.Store.RenewRuns(ctx, held, until) })
}

func (s *portStore) TakeEvent(ctx context.Context, c semel.EventClaim) (semel.StepRecord, error) {
	return ask(s, call{port: "TakeEvent", what: "taking event " + c.Name, writes: true}, func() (semel.StepRecord, error) { return s.Store.TakeEvent(ctx, c) })
}

func (s *portStore) FindRun(ctx context.Context, workflow string, key semel.Key) (semel.Run, error) {
	return ask(s, call{port: "FindRun", what: "looking for a run"}, func() (semel.Run, error) { return s.Store.FindRun(ctx, workflow, key) })
}

func (s *portStore) LoadRun(ctx context.Context, id semel.ID) (semel.Run, error) {
	return ask(s, call{port: "LoadRun", what: "reading a run"}, func() (semel.Run, error) { return s.Store.LoadRun(ctx, id) })
}

func (s *portStore) History(ctx context.Context, run semel.ID) (semel.RunHistory, error) {
	return ask(s, call{port: "History", what: "reading what the run has recorded"}, func() (semel.RunHistory, error) { return s.Store.History(ctx, run) })
}

func (s *portStore) ChangeRun(ctx context.Context, id semel.ID, c semel.RunCommand) (semel.Run, error) {
	return ask(s, call{port: "ChangeRun", what: "asking a run to " + string(c.Verb), writes: true}, func() (semel.Run, error) { return s.Store.ChangeRun(ctx, id, c) })
}

func (s *portStore) Deliver(ctx context.Context, limit int) (int, error) {
	return ask(s, call{port: "Deliver", what: "delivering events", writes: true}, func() (int, error) { return s.Store.Deliver(ctx, limit) })
}

func (s *portStore) Approval(ctx context.Context, id semel.ID) (semel.Approval, error) {
	return ask(s, call{port: "Approval", what: "reading an approval"}, func() (semel.Approval, error) { return s.Store.Approval(ctx, id) })
}

func (s *portStore) Decide(ctx context.Context, id semel.ID, d semel.Decision) (semel.Approval, error) {
	return ask(s, call{port: "Decide", what: "closing an approval", writes: true}, func() (semel.Approval, error) { return s.Store.Decide(ctx, id, d) })
}

func (s *portStore) Register(ctx context.Context, definitions []semel.WorkflowDefinition) error {
	_, err := ask(s, call{port: "Register", what: "registering the workflows", writes: true}, func() (struct{}, error) { return struct{}{}, s.Store.Register(ctx, definitions) })
	return err
}

func (s *portStore) Schedules(context.Context) ([]semel.ScheduleState, error) {
	return nil, nil // runs are started by the trial alone
}

// expirer is a store that lets old records expire.
type expirer interface {
	Expire(ctx context.Context, before time.Time, limit int) (int, error)
}
