package connection

import (
	"slices"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/workflowfile"
)

// Checks tell a workflow's file what it may use. Their Cron is left to the
// caller.
func (c *Config) Checks() workflowfile.Checks {
	return workflowfile.Checks{Connection: func(name string) (workflowfile.ConnectionInfo, bool) {
		s, ok := c.connections[name]
		if !ok {
			return workflowfile.ConnectionInfo{}, false
		}
		return s.info(), true
	}}
}

// info is what a check knows about the connection. A database has no actions of
// its own: sql and claim work on it.
func (s *settings) info() workflowfile.ConnectionInfo {
	i := workflowfile.ConnectionInfo{Actions: map[string]workflowfile.ActionInfo{}}
	if s.database != nil {
		contract := s.database.options.Contract
		contract.Protection = semel.Transactional
		i.Contract = &contract
		return i
	}
	if !s.inferred || s.contract.Protection != semel.Unprotected || s.contract.Effect != "" {
		i.Contract = &s.contract
	}
	for name, a := range s.actions {
		i.Actions[name] = a.info()
	}
	return i
}

var _ workflowfile.Actions = (*Config)(nil)

func (a *action) info() workflowfile.ActionInfo {
	i := workflowfile.ActionInfo{Read: a.reads()}
	if a.inherits {
		i.Contract = &a.contract
	}
	for _, name := range slices.Concat(a.required, a.inPath) {
		if name != a.template && !slices.Contains(i.Required, name) {
			i.Required = append(i.Required, name) // a template may give the other
		}
	}
	if a.bare() {
		i.Optional = []string{}
	}
	return i
}
