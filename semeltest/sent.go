package semeltest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-dev/semel"
)

// Sent is a request that left a worker.
type Sent struct {
	Action string
	// Scope and Key are those of the operation, DestinationKey is what a
	// destination that honours keys sees of them.
	Scope          semel.Scope
	Key            semel.Key
	DestinationKey string
	Attempt        int
	Request        semel.Request
	At             time.Time
	// Happened: it had an effect, which its destination had not had before.
	Happened bool

	result semel.Result
}

// Requests are all requests that left for the destination of an action, oldest
// first.
func (w *World) Requests(action string) []Sent {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.sent), func(s Sent) bool { return s.Action != action })
}

// Effects are the requests that had an effect, oldest first: what an action
// really did.
func (w *World) Effects(action string) []Sent {
	return slices.DeleteFunc(w.Requests(action), func(s Sent) bool { return !s.Happened })
}

// checkEffects reports operations that happened more than once.
func (w *World) checkEffects() {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	type identity struct {
		scope semel.Scope
		key   semel.Key
	}
	attempts := map[identity][]string{}
	for _, s := range w.sent {
		if !s.Happened {
			continue
		}
		id := identity{s.Scope, s.Key}
		attempts[id] = append(attempts[id], fmt.Sprintf("attempt %d at %s", s.Attempt, s.At.Format(time.RFC3339)))
		if n := len(attempts[id]); n > 1 {
			w.t.Errorf("semeltest: %s happened %d times under key %q: %s", s.Action, n, s.Key, strings.Join(attempts[id], ", "))
		}
	}
}
