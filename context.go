package semel

import (
	"context"
	"fmt"
	"strings"
)

// Context is what a workflow function works with. Every step goes through it,
// one at a time: parallel work is for Each and Parallel, which hand each branch
// a Context of its own. It ends when the worker has lost the run, or is closed;
// a worker that drains stops a workflow at its next step.
type Context struct {
	context.Context
	executor Executor
	branch   string // path of the branch, with a trailing slash, or empty
	name     string // of the next step, where the caller gave one
}

// NewContext makes the Context of one branch of a run, for an Executor. The
// branch is a step path, empty for the run itself.
func NewContext(ctx context.Context, e Executor, branch string) Context {
	if branch != "" {
		branch += "/"
	}
	return Context{Context: ctx, executor: e, branch: branch}
}

// Named gives the next step a name of its own, which its path ends with. A step
// without one is named after its action: two steps of one name in one run are
// the same step.
func (c Context) Named(name string) Context {
	c.name = name
	return c
}

// Branch is the path of the branch that c belongs to; empty for the run itself.
func (c Context) Branch() string { return strings.TrimSuffix(c.branch, "/") }

// Run is the run as it was when this worker claimed it.
func (c Context) Run() Run { return *c.executor.Run() }

// Return sets the result of the run, encoded as JSON when it completes. The
// last value counts.
func (c Context) Return(value any) error { return c.executor.Return(value) }

// Through returns c with its Executor wrapped: a test or a drill sees every
// step, and may answer in its place. Branches of lists get the Context of the
// wrapped Executor unless wrap wraps the Body of their EachStep, too.
func (c Context) Through(wrap func(Executor) Executor) Context {
	c.executor = wrap(c.executor)
	return c
}

// Executor performs the steps of one run. Package engine implements it;
// workflow code never calls it.
type Executor interface {
	// Run is the run that is executed.
	Run() *Run
	// Step performs the step at path and returns its record. It does not return
	// where the run is suspended: the calling goroutine ends instead, with its
	// deferred functions run. The error says that the step failed, and that
	// nothing happened.
	Step(ctx Context, path string, s Step) (StepRecord, error)
	// Return sets the result of the run.
	Return(value any) error
}

// step performs s under the name that c gives, or else fallback.
func (c Context) step(fallback string, s Step) (StepRecord, error) {
	if c.executor == nil {
		panic("semel: this Context belongs to no run: a workflow function is called by a worker, or by semeltest")
	}
	name := c.name
	if name == "" {
		name = fallback
	}
	c.name = ""
	return c.executor.Step(c, c.branch+name, s)
}

// ValidateStepName reports what is wrong with the name of a step or a workflow: it
// has 1 to 200 bytes of UTF-8, without NUL, "/", "[" or "]".
func ValidateStepName(name string) error {
	if err := validName("step name", name); err != nil {
		return err
	}
	if i := strings.IndexAny(name, "/[]"); i >= 0 {
		return &InputError{Field: "step name", Problem: fmt.Sprintf("%q contains %q", name, name[i:i+1]), Hint: "use letters, digits, dots and dashes"}
	}
	if len(name) > 200 {
		return &InputError{Field: "step name", Problem: fmt.Sprintf("has %d bytes, the limit is 200", len(name)), Hint: "use a shorter name"}
	}
	return nil
}
