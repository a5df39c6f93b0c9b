package main

import (
	"context"
	"fmt"
	"os"
	"syscall"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/destination/command"
	httpdest "github.com/semel-dev/semel/destination/http"
)

const (
	commandKind = command.Kind
	httpKind    = httpdest.Kind
)

// programs is a destination that runs programs as part of this command: what
// they print passes through, and signals are theirs while they run.
func (sh *shell) programs(c *semel.Contract) (*command.Destination, error) {
	o := command.Options{
		Check: c.Check, NoEffectExit: c.NoEffectExit, Stderr: &tolerant{to: sh.err},
		Forward: []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT},
	}
	if !sh.json() {
		o.Stdout = &tolerant{to: sh.out}
	}
	return command.New(o)
}

// destinations finds the destination of stored operations, and closes what it
// opened.
type destinations struct {
	sh     *shell
	d      database
	opened []func(context.Context) error
}

// resolve finds how an operation is sent, and what its destination promises
// today.
func (ds *destinations) resolve(o *semel.Operation) (semel.Destination, semel.Contract, error) {
	switch {
	case o.Request.Kind == commandKind:
		programs, err := ds.sh.programs(&o.Contract)
		if err != nil {
			return nil, semel.Contract{}, err
		}
		ds.opened = append(ds.opened, programs.Close)
		return programs, o.Contract, nil
	case o.Request.Kind == httpKind && o.Request.Connection != "":
		return ds.connection(o.Request.Connection)
	case o.Request.Kind == httpKind:
		over, err := httpdest.New(httpdest.Options{})
		if err != nil {
			return nil, semel.Contract{}, err
		}
		ds.opened = append(ds.opened, over.Close)
		return over, o.Contract, nil
	}
	return nil, semel.Contract{}, fmt.Errorf("it was made by an Action of kind %q, and only the program that declares it can send it", o.Request.Kind)
}

// connection opens a named connection of the configuration file.
func (ds *destinations) connection(name string) (*httpdest.Destination, semel.Contract, error) {
	path, _ := ds.sh.configPath(ds.d)
	return nil, semel.Contract{}, usagef("connection %q is not known: there is no reader for %s yet", name, path)
}

func (ds *destinations) close(ctx context.Context) {
	for _, closeOne := range ds.opened {
		if err := closeOne(ctx); err != nil {
			ds.sh.say("close a destination: %v", err)
		}
	}
}
