// Package storetest is the one conformance suite of every semel.Store that
// keeps runs. A backend adds a Harness, not tests:
//
//	func TestConformance(t *testing.T)     { storetest.Test(t, open) }
//	func TestConformanceRuns(t *testing.T) { storetest.TestRuns(t, open) }
//
// Subtests are named after what they show; comments cite the promises (M14) of
// the mission and the laws of the design.
package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

// Opener makes a fresh, empty database for one test, which is gone when the
// test ends.
type Opener func(t *testing.T) Harness

// Harness is one database.
type Harness struct {
	// Open returns one more handle on the database, independent of the others
	// like another process. It fails the test where it cannot, and the handle
	// is closed when the test ends, if the test has not closed it.
	Open func(t *testing.T) semel.Store
	// Shift moves the clock of every handle, open now or later, by d.
	Shift func(d time.Duration)
	// Transaction runs do inside a transaction of a caller's own, on a
	// connection of its own. It commits if do returns nil, else rolls back and
	// returns the error. Only TestRuns needs it.
	Transaction func(t *testing.T, do func(Outbox) error) error
}

// Expirer is the maintenance of a store: it makes tombstones of up to limit
// operations that were settled and last changed before then.
type Expirer interface {
	Expire(ctx context.Context, before time.Time, limit int) (int, error)
}

// Test runs the suite.
func Test(t *testing.T, open Opener) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Harness)
	}{
		{"FirstClaim", testFirstClaim},
		{"Outcome", testOutcome},
		{"TakenKey", testTakenKey},
		{"NotFound", testNotFound},
		{"Fence", testFence},
		{"LostAcknowledgement", testLostAcknowledgement},
		{"Neighbours", testNeighbours},
		{"CancelledCaller", testCancelledCaller},
		{"Closed", testClosed},
		{"Renew", testRenew},
		{"Lapsed", testLapsed},
		{"Bytewise", testBytewise},
		{"ExactBytes", testExactBytes},
		{"Events", testEvents},
		{"Clock", testClock},
		{"List", testList},
		{"ManyPages", testManyPages},
		{"Due", testDue},
		{"Expire", testExpire},
		{"Histories", testHistories},
		{"Linearizable", testLinearizable},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, open(t))
		})
	}
}
