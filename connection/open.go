package connection

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
)

// Open returns the destination of a named connection and what it promises. The
// Config owns it.
func (c *Config) Open(name string) (semel.Destination, semel.Contract, error) {
	d, err := c.HTTP(name)
	if err != nil {
		return nil, semel.Contract{}, err
	}
	return d, d.Contract(), nil
}

// HTTP returns the destination of a connection of kind http, for example for
// httpdest.Post. The Config owns it.
func (c *Config) HTTP(name string) (*httpdest.Destination, error) {
	s, ok := c.connections[name]
	if !ok {
		hint := "add it to semel.yaml"
		if len(c.connections) > 0 {
			hint = suggest(name, c.Names())
		}
		return nil, &semel.InputError{Field: "connection", Problem: fmt.Sprintf("%s is unknown", shown(name)), Hint: hint}
	}
	return c.open(name, s.options())
}

// Resolve finds how a stored HTTP operation is sent, and what its destination
// promises today: its named connection, or the endpoint itself, read by the
// profile that the operation was claimed with. The Config owns it.
func (c *Config) Resolve(o *semel.Operation) (semel.Destination, semel.Contract, error) {
	if o.Request.Kind != httpdest.Kind {
		return nil, semel.Contract{}, &semel.InputError{
			Field: "operation", Problem: fmt.Sprintf("is of kind %s", shown(o.Request.Kind)),
			Hint: "only the program that declares its action can send it",
		}
	}
	if o.Request.Connection != "" {
		d, promised, err := c.Open(o.Request.Connection)
		if err != nil {
			return nil, semel.Contract{}, err
		}
		return d, current(o.Contract, promised), nil
	}
	d, err := c.open("", httpdest.Options{})
	if err != nil {
		return nil, semel.Contract{}, err
	}
	return d, o.Contract, nil
}

// current is the operation's own contract under what the connection promises
// now. What an action or a flag said beyond the connection stays; where the
// connection has become more cautious, Contract.Stricter takes its word.
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

func (c *Config) open(name string, o httpdest.Options) (*httpdest.Destination, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errors.New("the configuration is closed")
	}
	if d, ok := c.opened[name]; ok {
		return d, nil
	}
	d, err := httpdest.New(o)
	if err != nil {
		return nil, err
	}
	if c.opened == nil {
		c.opened = map[string]*httpdest.Destination{}
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
