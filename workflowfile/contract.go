package workflowfile

import "github.com/semel-dev/semel"

// Contract is what the action of a step promises: that of its connection, which
// checks tell about, with what the file adds. A step without effect promises
// that it commutes. ok is false where nobody could tell, and for a step that
// performs no action.
func (d *Definition) Contract(s *Step, checks Checks) (c semel.Contract, ok bool) {
	u := s.Uses
	if u == nil || u.unknown || checks.Connection == nil {
		return c, false
	}
	name := u.Connection
	if _, isBuiltIn := builtIn(name); isBuiltIn {
		at, _ := u.With.Field("at").Literal()
		name, _ = at.(string)
	}
	info, ok := checks.Connection(name)
	if !ok {
		return c, false
	}
	if info.Contract != nil {
		c = *info.Contract
	}
	if a := info.Actions[u.Action]; a.Contract != nil {
		c = *a.Contract
	}
	if u.Read {
		c.Protection = semel.Commutes
	}
	u.extend(&c, d.Owner)
	return c, true
}
