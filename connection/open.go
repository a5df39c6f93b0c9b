package connection

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
	sqldest "github.com/semel-dev/semel/destination/sql"
	"github.com/semel-dev/semel/workflowfile"
)

// Open returns the destination of a named connection and what it promises. The
// Config owns it.
func (c *Config) Open(name string) (semel.Destination, semel.Contract, error) {
	s, err := c.find(name)
	if err != nil {
		return nil, semel.Contract{}, err
	}
	d, err := c.openNamed(s)
	if err != nil {
		return nil, semel.Contract{}, err
	}
	return d, d.Contract(), nil
}

// HTTP returns the destination of a connection of kind http, for example for
// httpdest.Post. The Config owns it.
func (c *Config) HTTP(name string) (*httpdest.Destination, error) {
	return ofKind[*httpdest.Destination](c, name, httpdest.Kind)
}

// SQL returns the destination of a connection of kind sql, for example for
// sqldest.Exec. The Config owns it.
func (c *Config) SQL(name string) (*sqldest.Database, error) {
	return ofKind[*sqldest.Database](c, name, sqldest.Kind)
}

func ofKind[D destination](c *Config, name, kind string) (none D, _ error) {
	s, err := c.find(name)
	if err != nil {
		return none, err
	}
	if s.kindOf() != kind {
		return none, &semel.InputError{
			Field: "connection", Problem: fmt.Sprintf("%s is of kind %s, not %s", shown(name), s.kindOf(), kind),
			Hint: "name another connection, or use it as what it is",
		}
	}
	d, err := c.openNamed(s)
	if err != nil {
		return none, err
	}
	return d.(D), nil
}

func (c *Config) find(name string) (*settings, error) {
	if s, ok := c.connections[name]; ok {
		return s, nil
	}
	hint := "add it to semel.yaml"
	if len(c.connections) > 0 {
		hint = workflowfile.Suggest(name, c.Names())
	}
	return nil, &semel.InputError{Field: "connection", Problem: fmt.Sprintf("%s is unknown", shown(name)), Hint: hint}
}

func (c *Config) openNamed(s *settings) (destination, error) {
	return c.open(s.name, func() (destination, error) {
		if s.database != nil {
			return s.database.open(context.Background())
		}
		return httpdest.New(s.options())
	})
}

// Resolve finds how a stored operation is sent, and what its destination
// promises today: its named connection, by the contract of its action where the
// file has one of that name, or for HTTP the endpoint itself, read
// by the profile that the operation was claimed with. The Config owns it.
func (c *Config) Resolve(o *semel.Operation) (semel.Destination, semel.Contract, error) {
	kind := o.Request.Kind
	if kind != httpdest.Kind && (kind != sqldest.Kind || o.Request.Connection == "") {
		return nil, semel.Contract{}, &semel.InputError{
			Field: "operation", Problem: fmt.Sprintf("is of kind %s", shown(kind)),
			Hint: "only the program that declares its action can send it",
		}
	}
	if o.Request.Connection == "" {
		d, err := c.open("", func() (destination, error) { return httpdest.New(httpdest.Options{}) })
		if err != nil {
			return nil, semel.Contract{}, err
		}
		return d, o.Contract, nil
	}
	s, err := c.find(o.Request.Connection)
	if err != nil {
		return nil, semel.Contract{}, err
	}
	if s.kindOf() != kind {
		return nil, semel.Contract{}, &semel.InputError{
			Field: "connection", Problem: fmt.Sprintf("%s is of kind %s, and the operation of kind %s", shown(s.name), s.kindOf(), kind),
			Hint: "give the new connection a name of its own",
		}
	}
	d, err := c.openNamed(s)
	if err != nil {
		return nil, semel.Contract{}, err
	}
	if db, ok := d.(*sqldest.Database); ok && o.Contract.Protection == semel.Commutes {
		return d, current(o.Contract, db.QueryContract()), nil
	}
	if a, ok := s.actions[o.Request.Action]; ok {
		return d, a.current(o.Contract), nil
	}
	now := current(o.Contract, d.Contract())
	if s.database == nil && !s.inferred {
		now.Protection = s.contract.Protection // the file names it; where it does not, a flag may have said more
	}
	return d, now, nil
}

// current is the operation's own contract under what the connection promises
// now. What an action or a flag said beyond the connection stays, its protection
// too; where the connection has become more cautious, Contract.Stricter takes its
// word.
func current(own, promised semel.Contract) semel.Contract {
	now := own
	if promised.Protection == semel.Keyed && own.Protection == semel.Keyed {
		now.Window = promised.Window
	}
	if promised.LookupURL != "" && promised.LookupURL == own.LookupURL {
		now.AbsenceIsProof = own.AbsenceIsProof && promised.AbsenceIsProof
	}
	now.VisibleAfter = max(own.VisibleAfter, promised.VisibleAfter)
	now.MaxProcessing = max(own.MaxProcessing, promised.MaxProcessing)
	return now
}

func (c *Config) open(name string, begin func() (destination, error)) (destination, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errors.New("the configuration is closed")
	}
	if d, ok := c.opened[name]; ok {
		return d, nil
	}
	d, err := begin()
	if err != nil {
		return nil, err
	}
	if c.opened == nil {
		c.opened = map[string]destination{}
	}
	c.opened[name] = d
	return d, nil
}

// Close closes every destination that was opened; each waits for its attempts
// until ctx ends.
func (c *Config) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	all := c.opened
	c.opened = nil
	c.mu.Unlock()
	var errs []error
	for _, d := range all {
		errs = append(errs, d.Close(ctx))
	}
	return errors.Join(errs...)
}
