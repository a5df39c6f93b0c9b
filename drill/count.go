package drill

import (
	"fmt"
	"maps"
	"slices"

	"github.com/semel-dev/semel"
)

// commutes reports whether an intention needs no record: repeating it changes
// nothing.
func (w *world) commutes(i intention) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.effects, func(e *effect) bool { return e.intention == i && e.commutes })
}

// count is how often an intention happened, as people count: setting the same
// value twice is once.
func (w *world) count(i intention) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, e := range w.effects {
		if e.intention == i && (n == 0 || !e.repeats) {
			n++
		}
	}
	return n
}

// doubled reports steps of a run that happened under two keys.
func (w *world) doubled() (out []fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	type step struct {
		run  semel.ID
		path string
	}
	first := map[step]intention{}
	for _, e := range w.effects {
		at := step{e.run, e.step}
		if was, ok := first[at]; !ok {
			first[at] = e.intention
		} else if was != e.intention && e.run != (semel.ID{}) {
			out = append(out, fault{of: e.intention, why: fmt.Sprintf("its step happened before, under another key: %q, and now %q", was.key, e.intention.key)})
		}
	}
	return out
}

// overwritten reports the subjects whose last write is not the last one that
// was asked for.
func (w *world) overwritten() (out []fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked, set := map[string]intention{}, map[string]intention{}
	begun := map[intention]bool{}
	for _, e := range w.effects {
		if e.subject == "" {
			continue
		}
		set[e.subject] = e.intention
		if !begun[e.intention] {
			begun[e.intention] = true
			if order := w.t.order(e.intention); asked[e.subject] == (intention{}) || order > w.t.order(asked[e.subject]) {
				asked[e.subject] = e.intention
			}
		}
	}
	for _, subject := range slices.Sorted(maps.Keys(set)) {
		if want := asked[subject]; want != set[subject] {
			out = append(out, fault{want, fmt.Sprintf("an older write came late and replaced what it had set on %s", subject), true})
		}
	}
	return out
}
