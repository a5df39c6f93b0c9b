package semel

import (
	"encoding/json"
	"fmt"
	"time"
)

// Workflow is a definition: an ordinary Go function whose steps are recorded.
// It is a value; declare it once, as a variable. Raise Version when a change
// must not meet runs that have begun.
type Workflow[In any] struct {
	Name    string
	Version int // 0 means 1
	// Owner is told about what only a person can settle.
	Owner string
	// Key names the intention that the input describes. Nil: whoever starts a
	// run gives its key.
	Key func(In) string
	// Func is called from its beginning whenever the run goes on; steps that
	// have a record return it. A nil error completes the run, an error fails
	// it. It must not depend on anything but its input and its steps.
	Func func(ctx Context, in In) error
	// Schedules and Events start runs.
	Schedules []Schedule
	Events    []string
	// Actions are those that its steps perform: recovery needs their
	// destinations.
	Actions []Definition
}

// Schedule starts a run at every tick of a cron expression.
type Schedule struct {
	Name string // tells it from others of the workflow; may be empty
	Cron string // five fields, or @daily and the like
	Zone string // of the IANA database, for example "Europe/Berlin"
	// Missed is what to do about ticks that nobody was there for: "skip",
	// "once" (the latest) or "all"; empty means "once".
	Missed string
	// Input of the runs, JSON; empty means {}.
	Input []byte
}

// WorkflowDefinition is what a worker needs to execute a workflow, whatever it
// is written in.
type WorkflowDefinition struct {
	Name    string
	Version int
	Owner   string
	// Digest identifies the exact definition, Text holds it; empty for Go.
	Digest    string
	Text      []byte
	Schedules []Schedule
	Events    []string
	Actions   []Definition
	// Run executes it; an error is a known failure.
	Run func(ctx Context) error
	// Diff says in words how the definition that a run began with, given by its
	// text, differs from this one. Nil for Go.
	Diff func(text []byte) []string
}

// Ref names a workflow and its version.
func (d *WorkflowDefinition) Ref() WorkflowRef { return WorkflowRef{d.Name, d.Version} }

// WorkflowRef is a workflow and its version.
type WorkflowRef struct {
	Name    string
	Version int
}

func (r WorkflowRef) String() string { return fmt.Sprintf("%s@%d", r.Name, r.Version) }

// Definition is the untyped form of the workflow, for a worker.
func (w Workflow[In]) Definition() WorkflowDefinition {
	actions := make([]Definition, len(w.Actions))
	for i, d := range w.Actions {
		if d.Contract.Owner == "" {
			d.Contract.Owner = w.Owner
		}
		actions[i] = d
	}
	d := WorkflowDefinition{Name: w.Name, Version: w.version(), Owner: w.Owner, Schedules: w.Schedules, Events: w.Events, Actions: actions}
	if w.Func == nil {
		return d // which a worker refuses
	}
	d.Run = func(ctx Context) error {
		var in In
		if err := ctx.executor.Run().DecodeInput(&in); err != nil {
			return err
		}
		return w.Func(ctx, in)
	}
	return d
}

func (w Workflow[In]) version() int {
	if w.Version == 0 {
		return 1
	}
	return w.Version
}

// New asks for a run of the workflow. An empty key is made by the workflow's
// Key; it is an error if that is missing, too.
func (w Workflow[In]) New(key Key, in In) (NewRun, error) {
	input, err := json.Marshal(in)
	if err != nil {
		return NewRun{}, fmt.Errorf("encode input: %w", err)
	}
	if key == "" {
		if w.Key == nil {
			return NewRun{}, &InputError{Field: "run key", Problem: "is missing", Hint: "name the intention, so that starting it twice is one run; mint a key once and keep it where nothing names it"}
		}
		key = Key(w.Key(in))
		if again := Key(w.Key(in)); again != key {
			return NewRun{}, &InputError{Field: "run key", Problem: fmt.Sprintf("is %q and then %q for one input", key, again), Hint: "make it from the input alone"}
		}
	}
	n := NewRun{Workflow: w.Name, Version: w.version(), Key: key, Input: input}
	return n, n.Validate()
}

// MaxSleep is the longest time a step may wait.
const MaxSleep = 100 * 365 * 24 * time.Hour
