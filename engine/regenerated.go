package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/semel-dev/semel"
)

// remembered is how many new operations a process compares a new one with,
// and suspicious how long it does.
const (
	remembered = 4096
	suspicious = 10 * time.Minute
)

// sighting is a request that was made under some key.
type sighting struct {
	scope       semel.Scope
	fingerprint semel.Fingerprint
}

// seen is the operation that made it.
type seen struct {
	id  semel.ID
	key semel.Key
	at  time.Time
	run semel.ID
}

// recent is the memory of a process for requests under fresh keys.
type recent struct {
	mu   sync.Mutex
	all  map[sighting]seen
	ring [remembered]sighting
	next int
}

// put remembers the operation and returns the one with the same request that
// was seen before.
func (r *recent) put(o *semel.Operation) (seen, bool) {
	s := sighting{o.Scope, o.Fingerprint}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = make(map[sighting]seen, remembered)
	}
	before, ok := r.all[s]
	if !ok {
		delete(r.all, r.ring[r.next])
		r.ring[r.next] = s
		r.next = (r.next + 1) % remembered
	}
	r.all[s] = seen{o.ID, o.Key, o.CreatedAt, o.Run}
	return before, ok && before.key != o.Key && !oneRun(before.run, o.Run) && o.CreatedAt.Sub(before.at) < suspicious
}

// oneRun reports whether two operations are steps of one run, whose keys are
// never made anew.
func oneRun(a, b semel.ID) bool { return a == b && a != (semel.ID{}) }

// regenerated warns when the same request was made under another key in the
// same scope a short time ago: two purchases that are both meant, or one
// purchase whose key was made anew.
func (e *Engine) regenerated(ctx context.Context, o *semel.Operation) []string {
	before, ok := e.recent.put(o)
	if !ok && e.opt.Regenerated > 0 {
		before, ok = e.stored(ctx, *o)
	}
	if !ok {
		return nil
	}
	return []string{fmt.Sprintf("the same request was made %v ago under key %q (operation %s); this is operation %s under key %q: two intentions, or one whose key was made anew?",
		o.CreatedAt.Sub(before.at).Round(time.Second), before.key, before.id, o.ID, o.Key)}
}

// stored looks in the store for another operation with the same request.
func (e *Engine) stored(ctx context.Context, o semel.Operation) (seen, bool) {
	for other, err := range e.store.List(ctx, semel.Filter{
		Scope: o.Scope, Fingerprint: o.Fingerprint,
		Since: o.CreatedAt.Add(-e.opt.Regenerated), Limit: 2,
	}) {
		if ctx.Err() != nil {
			break // nobody is there to be warned
		}
		if err != nil {
			e.log.Warn("look for regenerated keys", "operation", o.ID, "err", err)
			break
		}
		if other.ID != o.ID && other.Key != o.Key && other.CreatedAt.Before(o.CreatedAt) && !oneRun(other.Run, o.Run) {
			return seen{other.ID, other.Key, other.CreatedAt, other.Run}, true
		}
	}
	return seen{}, false
}
