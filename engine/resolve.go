package engine

import (
	"fmt"
	"sync"

	"github.com/semel-dev/semel"
)

// Resolver finds the destination of a stored operation, and the contract it
// has today.
type Resolver func(*semel.Operation) (semel.Destination, semel.Contract, error)

// Actions is a Resolver for operations that the given actions started.
func Actions(definitions ...semel.Definition) Resolver {
	known := &actions{}
	known.add(definitions)
	return func(o *semel.Operation) (semel.Destination, semel.Contract, error) {
		d, ok := known.find(o)
		if !ok {
			return nil, semel.Contract{}, fmt.Errorf("no action %q on connection %q is known to this program", o.Request.Action, o.Request.Connection)
		}
		return d.Destination, d.Contract, nil
	}
}

// actions are those whose operations recovery can send and look up.
type actions struct {
	mu  sync.RWMutex
	all map[actionName]semel.Definition
}

type actionName struct{ connection, action string }

func (a *actions) add(definitions []semel.Definition) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all == nil {
		a.all = map[actionName]semel.Definition{}
	}
	for _, d := range definitions {
		a.all[actionName{d.Connection, d.Action}] = d
	}
}

func (a *actions) find(o *semel.Operation) (semel.Definition, bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	d, ok := a.all[actionName{o.Request.Connection, o.Request.Action}]
	return d, ok
}

// know makes the engine recover what these actions started.
func (e *Engine) know(definitions []semel.Definition) { e.actions.add(definitions) }

// resolver finds destinations: among the actions of workflows, and where the
// options say. Nil: there are none.
func (e *Engine) resolver() Resolver {
	e.actions.mu.RLock()
	none := len(e.actions.all) == 0
	e.actions.mu.RUnlock()
	if none {
		return e.opt.Resolve
	}
	return func(o *semel.Operation) (semel.Destination, semel.Contract, error) {
		if d, ok := e.actions.find(o); ok {
			return d.Destination, d.Contract, nil
		}
		if e.opt.Resolve == nil {
			return nil, semel.Contract{}, fmt.Errorf("no action %q on connection %q is known to this program", o.Request.Action, o.Request.Connection)
		}
		return e.opt.Resolve(o)
	}
}
