package main

import (
	"context"
	"sync/atomic"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/destination/command"
)

// doProgram runs a program once.
func (sh *shell) doProgram(ctx context.Context, o *doOptions, call semel.Call, args []string) error {
	var stdin []byte
	var err error
	if o.stdin != "" {
		if stdin, err = sh.readFile("--stdin", o.stdin, semel.MaxBody); err != nil {
			return err
		}
	}
	if call.Request, err = command.NewRequest(args, stdin); err != nil {
		return err
	}
	switch c := &call.Contract; {
	case c.Protection == semel.Lookup && c.Check == "":
		return usagef("--check is missing: lookup protection needs a program that tells whether it happened, for example --check 'grep -q 4417 sent.log'")
	case c.AbsenceIsProof && c.Check == "":
		return usagef("--absence-is-proof has nothing to speak of: give the --check that finds nothing")
	case c.Window != 0 && c.Protection != semel.Keyed:
		return usagef("--window belongs to --protection keyed: it says how long what the program calls honours SEMEL_DESTINATION_KEY")
	}
	if err := call.Contract.Validate(); err != nil {
		return err
	}
	if o.stdin == "" {
		sh.noteStdin()
	}
	programs, err := sh.programs(&call.Contract)
	if err != nil {
		return err
	}
	ds := &destinations{sh: sh, opened: []func(context.Context) error{programs.Close}}
	defer ds.close(ctx)
	acting := new(atomic.Bool)
	call.Destination = &acts{programs, acting}
	return sh.perform(ctx, call, acting)
}

// acts notes that a program is running, which then gets the signals.
type acts struct {
	*command.Destination
	acting *atomic.Bool
}

// Send runs the program.
func (a *acts) Send(ctx context.Context, s *semel.Send) semel.Event {
	a.acting.Store(true)
	defer a.acting.Store(false)
	return a.Destination.Send(ctx, s)
}
