package sandbox

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"
)

// entry is one line of the ledger. What belongs together stands in one line, so
// that no crash can part an effect from the key it was done under.
type entry struct {
	Request *Request `json:"request,omitempty"`
	Effect  *Effect  `json:"effect,omitempty"`
	Key     *binding `json:"key,omitempty"`
	// Due marks an effect that is still to come, at this time.
	Due *time.Time `json:"due,omitempty"`
}

// ledger is everything the provider remembers. It changes through apply alone,
// whether a line is written now or read again after a restart; only keys of
// running requests and arrivals are held before they are written.
type ledger struct {
	journal *journal

	mu       sync.Mutex
	requests map[int]Request
	effects  []Effect
	keys     keyring
	arrived  int            // requests so far
	counts   map[string]int // requests so far by subject
	late     map[int]entry  // effects still to come by request number
}

func openLedger(path string) (*ledger, error) {
	l := &ledger{
		requests: map[int]Request{},
		keys:     keyring{},
		counts:   map[string]int{},
		late:     map[int]entry{},
	}
	var err error
	l.journal, err = open(path, l.apply)
	return l, err
}

// record returns once e is on disk. After an error nothing of e has happened.
func (l *ledger) record(e entry) error { return l.journal.append(e, l.apply) }

func (l *ledger) apply(e entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := e.Request; r != nil {
		l.requests[r.Number] = *r
		l.arrived = max(l.arrived, r.Number)
		subject := (&call{Request: *r}).subject()
		l.counts[subject] = max(l.counts[subject], r.Nth)
	}
	if e.Key != nil {
		l.keys[e.Key.Key] = *e.Key
	}
	if e.Due != nil {
		l.late[e.Effect.Number] = e
		return
	}
	if e.Effect != nil {
		l.effects = append(l.effects, *e.Effect)
		delete(l.late, e.Effect.Number)
		r := l.requests[e.Effect.Number]
		r.Effect = e.Effect.ID
		l.requests[r.Number] = r
	}
}

// arrive numbers the call.
func (l *ledger) arrive(c *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.arrived++
	c.Number = l.arrived
	subject := c.subject()
	l.counts[subject]++
	c.Nth = l.counts[subject]
}

func (l *ledger) claim(want binding, window time.Duration) *answer {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.keys.claim(want, window)
}

// release gives back a key under which nothing was retained.
func (l *ledger) release(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keys[key].Answer == nil {
		delete(l.keys, key)
	}
}

func (l *ledger) allEffects() []Effect {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.effects)
}

func (l *ledger) allRequests() []Request {
	l.mu.Lock()
	all := slices.Collect(maps.Values(l.requests))
	l.mu.Unlock()
	slices.SortFunc(all, func(a, b Request) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

func (l *ledger) unfinished() []entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.late))
}
