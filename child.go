package semel

import (
	"encoding/json"
	"fmt"
)

// Child starts a run of another workflow and waits until it has ended. Its key
// names it as for any run, so two parents that ask for one intention share it.
// The error is a *ChildError when it failed or was cancelled.
func Child[In any](ctx Context, w Workflow[In], key Key, in In) (Ended, error) {
	run, err := w.New(key, in)
	if err != nil {
		return Ended{}, err
	}
	rec, err := ctx.step(w.Name, &ChildStep{Run: run})
	return Ended{Result: rec.Result}, err
}

// Ended is a child run that completed.
type Ended struct{ Result []byte }

// Into reads what the run returned; without a result, into is left alone.
func (e Ended) Into(into any) error {
	if len(e.Result) == 0 {
		return nil
	}
	return json.Unmarshal(e.Result, into)
}

// ChildError says that a child run did not complete.
type ChildError struct {
	Path   string
	Run    ID
	State  RunState // failed or cancelled
	Reason string
}

func (e *ChildError) Error() string {
	s := fmt.Sprintf("run %s of step %s is %s", e.Run, e.Path, e.State)
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	return s
}
