package semel

// Take performs a step that is given as a value and returns its record. It is
// for interpreters of workflow languages; workflows in Go use Do, Sleep and
// the like. The errors are those of an Executor. A name may begin with a path,
// as in "on_failure/tell": such a step belongs to a list of its own, and does
// not count as one that came after the steps outside.
func Take(ctx Context, name string, s Step) (StepRecord, error) { return ctx.step(name, s) }
