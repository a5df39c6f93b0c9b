package drill

import (
	"context"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

// mortalDestination is a destination as a process that may die sees it.
type mortalDestination struct {
	semel.Destination
	d *death
}

func (m *mortalDestination) Send(ctx context.Context, s *semel.Send) semel.Event {
	n, alive := m.d.enter("Send " + s.Operation.Request.Action)
	if !alive {
		return semel.Event{Kind: semel.EvLost, Reason: "the process is dead"}
	}
	ev := m.Destination.Send(ctx, s)
	if !m.d.leave(n) {
		return semel.Event{Kind: semel.EvLost, Reason: "the process is dead"}
	}
	return ev
}

func (m *mortalDestination) Look(ctx context.Context, s *semel.Send) semel.Event {
	l, ok := m.Destination.(semel.Looker)
	if !ok {
		return semel.Event{Kind: semel.EvNoAnswer, Reason: "this destination cannot be asked"}
	}
	n, alive := m.d.enter("Look " + s.Operation.Request.Action)
	if !alive {
		return semel.Event{Kind: semel.EvNoAnswer, Reason: "the process is dead"}
	}
	ev := l.Look(ctx, s)
	if !m.d.leave(n) {
		return semel.Event{Kind: semel.EvNoAnswer, Reason: "the process is dead"}
	}
	return ev
}

// mortal makes every destination of a workflow that of a process that may die.
func mortal(def semel.WorkflowDefinition, d *death) semel.WorkflowDefinition {
	run := def.Run
	def.Run = func(ctx semel.Context) error { return run(ctx.Through(d.executor)) }
	actions := make([]semel.Definition, len(def.Actions))
	for i, a := range def.Actions {
		a.Destination = d.wrap(a.Destination)
		actions[i] = a
	}
	def.Actions = actions
	return def
}

// resolver finds destinations as a process that may die sees them.
func (d *death) resolver(find engine.Resolver) engine.Resolver {
	if find == nil {
		return nil
	}
	return func(o *semel.Operation) (semel.Destination, semel.Contract, error) {
		to, c, err := find(o)
		if err != nil {
			return nil, c, err
		}
		return d.wrap(to), c, nil
	}
}

func (d *death) wrap(to semel.Destination) semel.Destination { return &mortalDestination{to, d} }

func (d *death) executor(e semel.Executor) semel.Executor { return &mortalExecutor{e, d} }

// mortalExecutor hands on steps whose destinations may be cut off.
type mortalExecutor struct {
	semel.Executor
	d *death
}

func (m *mortalExecutor) Step(ctx semel.Context, path string, s semel.Step) (semel.StepRecord, error) {
	switch s := s.(type) {
	case *semel.DoStep:
		s.Call.Destination = m.d.wrap(s.Call.Destination)
	case *semel.ApprovalStep:
		s.Call.Destination = m.d.wrap(s.Call.Destination)
	case *semel.EachStep:
		body := s.Body
		s.Body = func(ctx semel.Context, item []byte) error { return body(ctx.Through(m.d.executor), item) }
	}
	return m.Executor.Step(ctx, path, s)
}
