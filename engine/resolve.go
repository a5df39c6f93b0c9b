package engine

import (
	"fmt"

	"github.com/semel-dev/semel"
)

// Resolver finds the destination of a stored operation, and the contract it
// has today.
type Resolver func(*semel.Operation) (semel.Destination, semel.Contract, error)

// Actions is a Resolver for operations that the given actions started.
func Actions(definitions ...semel.Definition) Resolver {
	type name struct{ connection, action string }
	known := make(map[name]semel.Definition, len(definitions))
	for _, d := range definitions {
		known[name{d.Connection, d.Action}] = d
	}
	return func(o *semel.Operation) (semel.Destination, semel.Contract, error) {
		d, ok := known[name{o.Request.Connection, o.Request.Action}]
		if !ok {
			return nil, semel.Contract{}, fmt.Errorf("no action %q on connection %q is known to this program", o.Request.Action, o.Request.Connection)
		}
		return d.Destination, d.Contract, nil
	}
}
