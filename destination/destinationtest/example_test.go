package destinationtest_test

import (
	"context"
	"sync"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/destination/destinationtest"
)

// ledger is a destination that adds names to a list.
type ledger struct {
	mu   sync.Mutex
	done map[string]int
}

func (l *ledger) Send(_ context.Context, s *semel.Send) semel.Event {
	if err := s.Begin(); err != nil {
		return semel.Event{Kind: semel.EvRefused, Attempt: s.Attempt, Reason: err.Error()}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done[string(s.Operation.Key)]++
	return semel.Event{Kind: semel.EvConfirmed, Attempt: s.Attempt}
}

// A new destination adds a harness, not tests.
func TestLedger(t *testing.T) {
	destinationtest.Test(t, func(*testing.T) destinationtest.World {
		l := &ledger{done: map[string]int{}}
		return destinationtest.World{
			Destination: l,
			Effects: func(name string) int {
				l.mu.Lock()
				defer l.mu.Unlock()
				return l.done[name]
			},
			Request: func(_ string, m destinationtest.Manner) (semel.Request, semel.Contract, bool) {
				return semel.Request{Kind: "ledger"}, semel.Contract{Protection: semel.Unprotected}, m == destinationtest.Succeeds
			},
		}
	})
}
