package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/semel-dev/semel/drill"
)

const drillHelp = `Break workflows on purpose, and count what happens in the world.

The workflow runs in a world of its own: a real database, a clock that the drill
moves, and destinations that are simulated from the contracts in semel.yaml. Nothing
is sent, no secret is read, and no database of yours is opened. The run is executed
again and again, each time with one thing broken at one place, and then with two: a
worker dies before or after any call; requests and answers are lost, late, or errors;
leases lapse, the store goes away, keys are forgotten, people cancel. Each effect is
then counted in the world and compared with the record.

  once     it happened once, and the record says so
  never    it did not happen, and the record says so
  unknown  nobody can know: nothing is sent again, and a person is asked
  TWICE    it happened more often than it was asked for, or than was allowed
  LOST     the record says something else than the world, or nobody goes on

For each TWICE and LOST a story tells line by line how it came about, and how to have
it told again. Without options nothing should be TWICE or LOST: it is a bug in Semel
or in the workflow. --naive shows what plain at-least-once would have done. --adverse
breaks the contracts' promises too, which shows what you depend on.

What the run gets - inputs, answers, events - is inferred from what expressions read
and compare; drill/NAME.yaml beside the workflow file gives values of your own. Of a
DIR every workflow is drilled that semel check would check there.

Simulated destinations keep the contract that is declared. That it is a wrong one
does not show here: that is what semel probe is for.

Exit codes: 0 nothing is twice or lost, though effects may wait for a person;
1 something is; 2 something cannot be read, or there is nothing to break; 6 the drill
could not work.`

const drillExamples = `  # Break it everywhere. The same command prints the same, to the byte.
  semel drill billing.yaml

  # What would an engine have done that repeats a step until it answers?
  semel drill billing.yaml --naive

  # Tell one story again.
  semel drill billing.yaml --replay answer-lost@17

  # In CI: every workflow here, more pairs of faults, and a report.
  semel drill . --pairs 1000 --junit drill.xml`

// drillOptions are the flags of drill.
type drillOptions struct {
	seed           uint64
	pairs          int
	adverse, naive bool
	replay, junit  string
}

func newDrill(sh *shell) *cobra.Command {
	var o drillOptions
	cmd := &cobra.Command{
		Use: "drill WORKFLOW|DIR", Short: "Break workflows on purpose, and count what happens", Long: drillHelp, Example: drillExamples,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("%s needs one workflow file, or a directory of them, for example semel drill billing.yaml", cmd.CommandPath())
			}
			return nil
		},
		RunE: ours(func(cmd *cobra.Command, args []string) error {
			d := &drilling{sh: sh, options: o, Workflows: []*drilled{}}
			if err := d.check(cmd.Flags().Changed); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return d.drill(ctx, args[0])
		}),
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.IntVar(&o.pairs, "pairs", drill.DefaultPairs, "how many executions with two faults to try; 0 for none")
	f.Uint64Var(&o.seed, "seed", 0, "chooses these pairs, and what the workflow sees as random")
	f.BoolVar(&o.adverse, "adverse", false, "let destinations break the promises of their contracts too, one at a time")
	f.BoolVar(&o.naive, "naive", false, "execute as an engine without operations would, at least once")
	f.Var(&onceText{to: &o.replay}, "replay", "try one execution alone and tell its story, for example answer-lost@17")
	f.Var(&onceText{to: &o.junit}, "junit", "also write the verdict to this file, for CI")
	return cmd
}

// drilling is one call of drill; its exported fields are what a program reads.
type drilling struct {
	sh       *shell
	options  drillOptions
	schedule drill.Schedule // to replay
	verdicts []*drill.Verdict
	all      []*drillTarget
	idle     int // workflows with nothing to break

	Workflows []*drilled `json:"workflows"`
	Schedules int        `json:"schedules"`
	Twice     int        `json:"twice"`
	Lost      int        `json:"lost"`
	Unknown   int        `json:"unknown"`
}

// check refuses flags that do not go together.
func (d *drilling) check(given func(flag string) bool) (err error) {
	if d.options.pairs < 0 {
		return usagef("--pairs %d is negative: 0 tries none", d.options.pairs)
	}
	if d.options.replay == "" {
		return nil
	}
	for _, flag := range []string{"pairs", "adverse"} {
		if given(flag) {
			return usagef("--replay tries one execution alone, which its seed describes: leave out --%s", flag)
		}
	}
	if d.schedule, err = drill.ParseSchedule(d.options.replay); err != nil {
		return usagef("--replay: %v", err)
	}
	return nil
}

// drill drills what is at a path, and ends with the code that says what was
// found.
func (d *drilling) drill(ctx context.Context, path string) error {
	targets, err := d.targets(path)
	if err != nil {
		return err
	}
	if len(targets) > 1 && d.schedule != nil {
		return usagef("--replay is about one workflow, and %s holds %d: name its file", path, len(targets))
	}
	report, err := d.report()
	if err != nil {
		return err
	}
	d.all = targets
	for _, t := range targets {
		if err := d.one(ctx, t); err != nil {
			return err
		}
	}
	return d.end(report)
}

// report makes the file for CI before the work begins.
func (d *drilling) report() (*os.File, error) {
	if d.options.junit == "" {
		return nil, nil //nolint:nilnil // nobody wants one
	}
	f, err := os.Create(d.options.junit)
	if err != nil {
		return nil, usagef("%s cannot be written: %v", d.options.junit, errors.Unwrap(err))
	}
	return f, nil
}

// one drills one workflow and shows what was found.
func (d *drilling) one(ctx context.Context, t *drillTarget) error {
	for _, unsure := range t.Unsure {
		d.sh.say("warning: %s", unsure)
	}
	o := t.options()
	o.Seed, o.Adverse, o.Naive, o.Replay = d.options.seed, d.options.adverse, d.options.naive, d.schedule
	o.Pairs = d.options.pairs
	if o.Pairs == 0 {
		o.Pairs = -1
	}
	progress := d.sh.progressLine("drilling "+t.definition.Name, "schedules")
	o.Progress = progress.show
	v, err := drill.Run(ctx, t.definition.Workflow(t.actions), o)
	progress.end()
	if err != nil {
		return d.idled(ctx, t, err)
	}
	v.Command = d.again(t)
	t.Verdict = v
	d.verdicts = append(d.verdicts, v)
	d.Workflows = append(d.Workflows, &t.drilled)
	d.Schedules, d.Twice, d.Lost, d.Unknown = d.Schedules+v.Schedules, d.Twice+v.Twice, d.Lost+v.Lost, d.Unknown+v.Unknown
	for _, step := range t.missed() {
		d.sh.say("warning: step %s is not drilled: the run does not come to it with this sample", step)
	}
	if d.sh.json() {
		return nil
	}
	return d.show(t)
}

// idled says why there is nothing to break; other errors are the drill's own.
func (d *drilling) idled(ctx context.Context, t *drillTarget, err error) error {
	var story []string
	if nothing, ok := errors.AsType[*drill.NothingError](err); ok {
		if story = nothing.Story; len(d.all) > 1 {
			d.sh.say("%s: nothing to drill: it has no effect with this sample", t.File)
			return nil
		}
	} else if unbroken, ok := errors.AsType[*drill.UnbrokenError](err); ok {
		story = unbroken.Story
	} else if ctx.Err() != nil {
		return errors.New("the drill was interrupted")
	} else if d.schedule != nil && errors.As(err, new(*drill.ScheduleError)) {
		return usagef("--replay %v", err)
	} else {
		return fmt.Errorf("drill %s: %w", t.File, err)
	}
	d.idle++
	for _, line := range story {
		fmt.Fprintln(d.sh.err, visible(line))
	}
	d.sh.say("%s cannot be drilled: %v. Give values of your own in %s", t.File, err, filepath.Join(filepath.Dir(t.File), t.definition.SampleFile()))
	return nil
}

// again is the command, up to its seed, that tells a story of a workflow again.
func (d *drilling) again(t *drillTarget) string {
	text := "semel drill " + quoteForShell(t.File)
	if d.sh.config != "" {
		text += " --config " + quoteForShell(d.sh.config)
	}
	if d.options.naive {
		text += " --naive"
	}
	if d.options.seed != 0 {
		text += fmt.Sprintf(" --seed %d", d.options.seed)
	}
	return text + " --replay"
}

// end writes what is for programs, and ends with the code that says what was
// found.
func (d *drilling) end(report *os.File) error {
	if d.sh.json() {
		if err := d.sh.print(d); err != nil {
			return err
		}
	}
	if report != nil {
		if err := errors.Join(drill.WriteJUnit(report, d.verdicts...), report.Close()); err != nil {
			return fmt.Errorf("write %s: %w", d.options.junit, err)
		}
	}
	if len(d.Workflows) > 1 && !d.sh.json() {
		d.sh.say("%d workflows drilled: %d schedules, %d twice, %d lost", len(d.Workflows), d.Schedules, d.Twice, d.Lost)
	}
	switch {
	case d.Twice+d.Lost > 0:
		return &outcomeError{exitFailed}
	case d.idle > 0:
		return &outcomeError{exitUsage}
	}
	return nil
}
