package semeltest

import (
	"fmt"
	"slices"

	"github.com/semel-dev/semel"
)

// through is an executor whose steps reach simulated destinations.
type through struct {
	semel.Executor
	world *World
}

// simulate makes a workflow reach simulated destinations only.
func (w *World) simulate(d semel.WorkflowDefinition) semel.WorkflowDefinition {
	if run := d.Run; run != nil {
		d.Run = func(ctx semel.Context) error { return run(ctx.Through(w.wrap)) }
	}
	d.Actions = slices.Clone(d.Actions)
	for i, a := range d.Actions {
		d.Actions[i] = w.know(a)
	}
	return d
}

func (w *World) wrap(e semel.Executor) semel.Executor { return through{e, w} }

// Step is the wrapped executor's, with another destination in s.
func (e through) Step(ctx semel.Context, path string, s semel.Step) (semel.StepRecord, error) {
	switch given := s.(type) {
	case *semel.DoStep:
		simulated := *given
		simulated.Call = e.world.reach(given.Call)
		s = &simulated
	case *semel.ApprovalStep:
		simulated := *given
		simulated.Call = e.world.reach(given.Call)
		s = &simulated
	case *semel.EachStep:
		simulated := *given
		simulated.Body = func(ctx semel.Context, item []byte) error { return given.Body(ctx.Through(e.world.wrap), item) }
		s = &simulated
	}
	return e.Executor.Step(ctx, path, s)
}

// reach makes a call reach the simulated destination of its action. A call
// without a destination stays one: that is a mistake to be found.
func (w *World) reach(c semel.Call) semel.Call {
	if c.Destination != nil {
		d := semel.Definition{Connection: c.Request.Connection, Action: c.Action, Contract: c.Contract, Destination: c.Destination}
		c.Destination = w.know(d).Destination
	}
	return c
}

// know makes recovery find the simulated destination of an action.
func (w *World) know(d semel.Definition) semel.Definition {
	d.Destination = destination{w, d.Action}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.actions[actionName{d.Connection, d.Action}] = d
	return d
}

// resolve is the engine's Resolver for actions that no workflow declares.
func (w *World) resolve(o *semel.Operation) (semel.Destination, semel.Contract, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d, ok := w.actions[actionName{o.Request.Connection, o.Request.Action}]
	if !ok {
		return nil, semel.Contract{}, fmt.Errorf("no step asked for action %q", o.Request.Action)
	}
	return d.Destination, d.Contract, nil
}
