package connection

import (
	"context"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/workflowfile"
)

// Simulated makes the calls of the same connections where nothing is to be sent,
// as in a drill: no secret is read, no database is opened, and a destination
// that is asked all the same refuses. It needs no environment.
func (c *Config) Simulated() workflowfile.Actions {
	s := &Config{Tenant: c.Tenant, connections: make(map[string]*settings, len(c.connections))}
	for name, given := range c.connections {
		own := *given
		if own.database != nil {
			db := *own.database
			db.url, db.from, db.password = "sqlite:///simulated/"+name, nil, nil
			own.database = &db
		}
		s.connections[name] = &own
	}
	return simulated{s}
}

type simulated struct{ config *Config }

func (s simulated) Call(connection, action string, with map[string]any) (semel.Call, error) {
	call, err := s.config.Call(connection, action, with)
	if err == nil {
		call.Destination = nowhere{}
	}
	return call, err
}

// nowhere is a destination that nothing reaches.
type nowhere struct{}

func (nowhere) Send(context.Context, *semel.Send) semel.Event {
	return semel.Event{Kind: semel.EvRefused, Reason: "this connection is simulated, and nothing is sent"}
}
