package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/connection"
	"github.com/semel-dev/semel/destination/command"
)

const commandKind = command.Kind

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
	config connection.Config // without connections until a file is read
	file   *connection.Config
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
	case o.Request.Connection != "":
		file, err := ds.read()
		if err != nil {
			return nil, semel.Contract{}, err
		}
		return file.Resolve(o)
	}
	return ds.config.Resolve(o)
}

// read reads the file with named connections, once.
func (ds *destinations) read() (*connection.Config, error) {
	if ds.file != nil {
		return ds.file, nil
	}
	path, named := ds.sh.configPath(ds.d)
	file, err := connection.Load(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return nil, usagef("named connections are kept in %s, which does not exist: write it, or name another file with --config", path)
	}
	if err != nil {
		return nil, err
	}
	ds.file = file
	return file, nil
}

// close waits for what is under way, but not for ever.
func (ds *destinations) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaving)
	defer cancel()
	ds.opened = append(ds.opened, ds.config.Close)
	if ds.file != nil {
		ds.opened = append(ds.opened, ds.file.Close)
	}
	for _, closeOne := range ds.opened {
		ds.sh.shut("a destination", func() error { return closeOne(ctx) })
	}
}
