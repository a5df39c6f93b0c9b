package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
	"github.com/semel-dev/semel/workflowfile"
)

const runStartHelp = `Start a run of a workflow: any worker that has the workflow and version takes it.

--key names the intention, so that starting it twice is one run: the second start
finds the first run, and starts nothing. The same key with another input is
refused (exit 4), and the fields that differ are named. Where nothing names the
intention, --new mints a key and prints it: to ask again, for example after an
interrupted connection, use --key with that key, never --new again.

The input is JSON: --input '{"day":"2026-03-01"}', --input @FILE or --input - for
stdin; or one --field per member: name=text, name:=JSON for numbers and the rest.

Exit codes: 0 it is on record, or completed with --wait; with --wait also 1 it
failed or was cancelled, 3 it is held and needs a person, 5 it goes on, and the
time to wait is over. 4 the key belongs to another input.`

// runStart are the flags of run start.
type runStart struct {
	key, input, priority, at string
	mint                     bool
	version                  int
	fields                   []string
	wait                     time.Duration
	waits                    bool
}

func newRunStart(sh *shell) *cobra.Command {
	var o runStart
	cmd := &cobra.Command{
		Use: "start WORKFLOW (--key K | --new)", Short: "Start a run, or find the one that has the key", Long: runStartHelp,
		Example: `  semel run start billing --key 2026-03-01 --field day=2026-03-01
  semel run start refund --key order-4417-refund --input @refund.json --wait 5m
  semel run start import --new --field rows:=5000 --at 2h`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("%s needs the name of one workflow: for example semel run start billing --key 2026-03-01", cmd.CommandPath())
			}
			return nil
		},
		RunE: ours(func(cmd *cobra.Command, args []string) error {
			o.waits = cmd.Flags().Changed("wait")
			n, err := o.newRun(sh, args[0])
			if err != nil {
				return err
			}
			return sh.runStart(cmd.Context(), &o, n)
		}),
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(&onceText{to: &o.key}, "key", "name of this one intention, the same on every start")
	f.BoolVar(&o.mint, "new", false, "mint a key: every start is another run")
	f.IntVar(&o.version, "version", 0, "version of the workflow (default the newest that a worker registered)")
	f.Var(&onceText{to: &o.input}, "input", "input as JSON, @FILE, or - for stdin")
	f.StringArrayVar(&o.fields, "field", nil, "one member of the input, name=text or name:=JSON; may be repeated")
	f.Var(&onceText{to: &o.priority}, "priority", "high, normal or low (default normal)")
	f.Var(&onceText{to: &o.at}, "at", "when it may begin: a time such as 2026-03-01T02:00:00Z, or from now, such as 2h")
	f.Var(&span{to: &o.wait}, "wait", "wait so long until it has ended or needs a person, for example 5m")
	return cmd
}

// newRun reads the flags.
func (o *runStart) newRun(sh *shell, workflow string) (semel.NewRun, error) {
	n := semel.NewRun{Workflow: workflow, Version: o.version, Key: semel.Key(o.key), Trigger: semel.Trigger{Kind: semel.ByPerson, By: person()}}
	switch {
	case o.mint && o.key != "":
		return n, usagef("--new mints a key, and --key gives one: leave out one of them")
	case !o.mint && o.key == "":
		return n, usagef("--key is missing: name the intention, so that starting it twice is one run; where nothing names it, use --new")
	case o.input != "" && len(o.fields) > 0:
		return n, usagef("--input is the whole input, and --field a part of it: use one of them")
	case o.version < 0:
		return n, usagef("--version %d is none: versions count from 1", o.version)
	}
	switch o.priority {
	case "", "normal":
	case "high":
		n.Priority = semel.High
	case "low":
		n.Priority = semel.Low
	default:
		return n, usagef("--priority %q is unknown: use high, normal or low", o.priority)
	}
	if o.mint {
		n.Key = semel.Key(uuid.Must(uuid.NewV7()).String())
	}
	var err error
	if len(o.fields) > 0 {
		n.Input, err = jsonOfFields(o.fields)
	} else if o.input != "" {
		n.Input, err = sh.jsonOf("--input", o.input, semel.MaxInput)
	}
	if err != nil {
		return n, err
	}
	checked := n
	checked.Version = max(1, n.Version)
	if err := checked.Validate(); err != nil {
		return n, err
	}
	_, err = checked.Fingerprint()
	return n, aboutFlag(err, "--input")
}

// newest completes n with what workers registered: the newest version unless
// one was asked for, and the definition that its runs begin with.
func (sh *shell) newest(ctx context.Context, k *keeper, n *semel.NewRun) error {
	all, err := k.Workflows(ctx)
	if err != nil {
		return err
	}
	var known []string
	for _, w := range all {
		known = append(known, w.String())
		if w.Name != n.Workflow {
			continue
		}
		n.Version = cmp.Or(n.Version, w.Version)
		switch {
		case n.Version == w.Version:
			n.Definition = w.Definition
			return sh.fits(ctx, k, n)
		case n.Version < w.Version && w.Definition != "":
			return usagef("--version %d is older than %s, which workers have: a new run begins with the newest definition. Leave out --version", n.Version, w)
		case n.Version < w.Version:
			return nil // only the worker knows whether it has the older one, too
		}
	}
	n.Version = cmp.Or(n.Version, 1)
	have := "none"
	if len(known) > 0 {
		have = strings.Join(known, ", ")
	}
	sh.say("warning: no worker has registered %s here (registered: %s): the run waits for one that has it", semel.WorkflowRef{Name: n.Workflow, Version: n.Version}, have)
	return nil
}

// fits refuses inputs that no run of the registered definition could begin
// with: the key would be used up.
func (sh *shell) fits(ctx context.Context, k *keeper, n *semel.NewRun) error {
	if n.Definition == "" {
		return nil // only its program knows
	}
	text, err := k.Registered(ctx, n.Definition)
	if err != nil {
		return err
	}
	d, _ := workflowfile.Restore(n.Workflow+".yaml", text, checksWith(nil))
	if d == nil {
		return nil // it was written for another semel
	}
	_, err = d.New(n.Key, n.Input)
	return err
}

// aboutFlag names the flag that gave the JSON which err is about.
func aboutFlag(err error, flag string) error {
	input, ok := errors.AsType[*semel.InputError](err)
	if !ok {
		return err
	}
	named := *input
	if rest, body := strings.CutPrefix(named.Field, "body"); body {
		named.Field = flag + rest
	}
	return &named
}

// jsonOfFields makes the object that fields such as name=text and name:=JSON
// describe, with numbers as they are written.
func jsonOfFields(fields []string) ([]byte, error) {
	members := make([]string, len(fields))
	for i, field := range fields {
		name, value, ok := strings.Cut(field, "=")
		name, raw := strings.CutSuffix(name, ":")
		switch {
		case !ok || name == "":
			return nil, usagef("--field %q has no name: write name=text, or name:=JSON for numbers, true, null, lists and objects", field)
		case raw && !json.Valid([]byte(value)):
			return nil, usagef("--field %s has a value that is no JSON: write %s=... for text", field, name)
		case !raw:
			value = string(encode(value))
		}
		members[i] = string(encode(name)) + ":" + value
	}
	return []byte("{" + strings.Join(members, ",") + "}"), nil
}

// jsonOf reads JSON from a flag: itself, a file (@FILE), or stdin (-).
func (sh *shell) jsonOf(flag, given string, limit int64) ([]byte, error) {
	data := []byte(given)
	if path, isFile := strings.CutPrefix(given, "@"); isFile || given == "-" {
		var err error
		if data, err = sh.readFile(flag, path, limit); err != nil {
			return nil, err
		}
	}
	if !json.Valid(data) {
		return nil, usagef("%s is no JSON: write it as '{\"name\":\"value\"}', @FILE, or - for stdin", flag)
	}
	return bytes.TrimSpace(data), nil
}

func (sh *shell) runStart(ctx context.Context, o *runStart, n semel.NewRun) error {
	k, err := sh.openKeeper(ctx)
	if err != nil {
		return err
	}
	defer sh.shut("the database", k.Close)
	now, err := k.Now(ctx)
	if err != nil {
		return err
	}
	if n.At, err = atOrAfter("--at", o.at, now); err != nil {
		return err
	}
	if err := sh.newest(ctx, k, &n); err != nil {
		return err
	}
	if o.mint {
		sh.say("the key of this run is %s: to ask again for this run, use --key %s, never --new again", n.Key, n.Key)
	}
	e, err := sh.engine(ctx, k, engine.Options{})
	if err != nil {
		return err
	}
	defer sh.shut("the engine", func() error { return e.Close(ctx) })
	r, existing, err := e.Start(ctx, n)
	if err != nil {
		return sh.startError(err, &n)
	}
	if o.waits {
		if sh.terminal {
			sh.say("run %s is on record; waiting up to %s until it has ended or needs a person", r.ID, duration(o.wait))
		}
		r, err = await(ctx, e, r.ID, o.wait)
		if err != nil {
			return err
		}
	}
	return sh.showStart(ctx, k, &r, existing, o.waits)
}

// startError says what a start that was not confirmed leaves open.
func (sh *shell) startError(err error, n *semel.NewRun) error {
	if conflict, ok := errors.AsType[*semel.RunConflictError](err); ok {
		return &refusedError{exitRefused, fmt.Sprintf("Refused: %v.\n  the first run:                   %s\n  if this is the same intention:   start it with the input of the first run\n  if this is another one:          give it a key of its own",
			conflict, sh.command("run show "+conflict.Run.ID.String()))}
	}
	if errors.Is(err, semel.ErrUnconfirmed) {
		return fmt.Errorf("%w\nThe run may have been started. Ask again under its key: --key %s", err, quoteForShell(string(n.Key)))
	}
	return err
}

// await waits until the run has ended or needs a person, or the time is over.
func await(ctx context.Context, e *engine.Engine, id semel.ID, limit time.Duration) (semel.Run, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err := e.Await(limited, id)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = nil
	}
	return r, err
}

// startJSON is a run with what this start did.
type startJSON struct {
	runJSON
	Existing bool `json:"existing"` // a run had the key, nothing new was started
}

func (sh *shell) showStart(ctx context.Context, k *keeper, r *semel.Run, existing, waited bool) error {
	waits, err := k.Waits(ctx, r.ID)
	if err != nil {
		return err
	}
	now, err := k.Now(ctx)
	if err != nil {
		return err
	}
	if sh.json() {
		err = sh.print(startJSON{sh.describeRun(r, waits, now), existing})
	} else {
		err = sh.runTable(r, now)
	}
	if err != nil {
		sh.say("the run is on record, but could not be shown: %v", err)
	}
	a := sh.adviseRun(r, waits, now)
	if existing {
		sh.say("this key started run %s before, at %s; nothing new was started", r.ID, moment(r.CreatedAt))
	} else {
		sh.say("started")
	}
	fmt.Fprintf(sh.err, "  %s\n", sh.paintedRun(r, visible(a.headline)))
	for _, line := range a.why {
		fmt.Fprintf(sh.err, "  %s\n", visible(line))
	}
	fmt.Fprintf(sh.err, "  what it does:                    %s\n", sh.command("run show "+r.ID.String()))
	if code := codeOfRun(r); waited && code != exitCompleted {
		return &outcomeError{code}
	}
	return nil
}

// runTable writes what identifies a run.
func (sh *shell) runTable(r *semel.Run, now time.Time) error {
	out := &tolerant{to: sh.out}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "run\t%s\nworkflow\t%s\nkey\t%s\nstate\t%s\n", r.ID, oneLine(refOf(r)), oneLine(string(r.Key)), sh.paintedRun(r, runWord(r, now)))
	if len(r.Result) > 0 {
		fmt.Fprintf(table, "result\t%s\n", cut(oneLine(string(r.Result)), 200))
	}
	_ = table.Flush() // the writer keeps its error
	if out.err != nil {
		return fmt.Errorf("write to stdout: %w", out.err)
	}
	return nil
}

// atOrAfter reads a time, or a duration from now; zero where nothing is given.
func atOrAfter(flag, given string, now time.Time) (time.Time, error) {
	if given == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, given); err == nil {
		return t.UTC(), nil
	}
	var d time.Duration
	if err := (&span{to: &d}).Set(given); err != nil {
		return time.Time{}, usagef("%s %q is neither a time nor a duration: write it as 2026-03-01T02:00:00Z, or as 2h", flag, given)
	}
	return now.Add(d), nil
}
