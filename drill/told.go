package drill

import (
	"errors"
	"slices"

	"github.com/semel-dev/semel"
)

// denial says that the workflow was told that a step failed, so that nothing
// happened.
type denial struct {
	by      *process
	attempt int // the last one then
}

// setDenied takes note that a step returned an error, which says that nothing
// happened. That the store did not answer says nothing of the kind.
func (t *trial) setDenied(i intention, by *process, rec *semel.StepRecord, err error) {
	if !by.dead.Load() && (errors.Is(err, semel.ErrUnavailable) || errors.Is(err, semel.ErrUnconfirmed)) {
		t.world.blame(fault{of: i, why: "the workflow was told that it failed, because the store did not answer", lost: true})
	}
	if rec.Effect == nil {
		return // nothing was ever claimed
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.denied[i] = denial{by, rec.Effect.Attempt}
}

// isDenied reports whether a worker that still lives told the workflow that an
// operation failed, and nobody has tried it since.
func (t *trial) isDenied(i intention, o *semel.Operation) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	d, ok := t.denied[i]
	return ok && !d.by.dead.Load() && d.attempt == o.Attempt
}

// list is a list of a run, or one item of it.
type list struct {
	run  semel.ID
	path string
}

// listed takes note of a list that the code asks for. A run that goes on has
// the items on record; where the code brings others, nothing can be said.
func (t *trial) listed(l list, keys []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if was, ok := t.lists[l]; ok && !slices.Equal(was, keys) {
		keys = []string{}
	}
	t.lists[l] = slices.Clone(keys)
}

// setItem takes note that the code of an item came to its end.
func (t *trial) setItem(run semel.ID, branch string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.items[list{run, branch}] = true
}

// listDone takes note that the workflow was told that all items of a list are
// done.
func (t *trial) listDone(l list) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, key := range t.lists[l] {
		item := l.path + "[" + key + "]"
		if !t.items[list{l.run, item}] && t.skipped[l.run] == "" {
			t.skipped[l.run] = item
		}
	}
}

// skippedIn is an item of a run that was left out; empty for none.
func (t *trial) skippedIn(run semel.ID) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.skipped[run]
}
