package engine

import (
	"sync"

	"github.com/semel-dev/semel"
)

// arrival is the end of an execution in this process, for those who wait for
// it.
type arrival struct {
	done chan struct{}
	run  *semel.Run // as it ended; nil where it did not, or nobody knows
}

type arrivals struct {
	mu  sync.Mutex
	all map[semel.ID]*arrival
}

// expect notes that a run is executed here.
func (a *arrivals) expect(id semel.ID) *arrival {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all == nil {
		a.all = map[semel.ID]*arrival{}
	}
	one := &arrival{done: make(chan struct{})}
	a.all[id] = one
	return one
}

// arrive tells those who wait.
func (a *arrivals) arrive(id semel.ID, one *arrival) {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(one.done)
	if a.all[id] == one {
		delete(a.all, id)
	}
}

// of is the execution of a run in this process; nil for none.
func (a *arrivals) of(id semel.ID) *arrival {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all[id]
}
