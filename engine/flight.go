package engine

import (
	"sync"

	"github.com/semel-dev/semel"
)

// flights tells waiting requests of this process when an attempt has landed.
type flights struct {
	mu  sync.Mutex
	all map[semel.ID]chan struct{}
}

// start notes an attempt; the returned function ends it.
func (f *flights) start(id semel.ID) (landed func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[semel.ID]chan struct{}{}
	}
	done := make(chan struct{})
	f.all[id] = done
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		close(done)
		if f.all[id] == done {
			delete(f.all, id)
		}
	}
}

// landed is closed when the attempt ends; nil if none runs in this process.
func (f *flights) landed(id semel.ID) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.all[id]
}
