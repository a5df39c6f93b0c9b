package storetest

import (
	"context"
	"testing"

	"github.com/semel-dev/semel"
)

// RunStore is what TestRuns needs of a handle.
type RunStore interface {
	semel.Store
	semel.Runs
}

// Outbox is a caller's own transaction, as the package functions of a store
// use it.
type Outbox struct {
	Start func(ctx context.Context, n semel.NewRun) (semel.Run, bool, error)
	Send  func(ctx context.Context, e semel.InboxEvent) error
}

// TestRuns runs the suite of semel.Runs. The handles of the Harness must be
// RunStores.
func TestRuns(t *testing.T, open Opener) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Harness)
	}{
		{"Start", testStart},
		{"StartRefused", testStartRefused},
		{"StartRace", testStartRace},
		{"StartLater", testStartLater},
		{"ClaimOrder", testClaimOrder},
		{"ClaimRace", testClaimRace},
		{"Crashes", testCrashes},
		{"RenewRuns", testRenewRuns},
		{"RunSteps", testRunSteps},
		{"RunFence", testRunFence},
		{"RunOutcome", testRunOutcome},
		{"RunRepeat", testRunRepeat},
		{"RunEnds", testRunEnds},
		{"RunPoison", testRunPoison},
		{"WaitOperation", testWaitOperation},
		{"WaitTime", testWaitTime},
		{"WaitChild", testWaitChild},
		{"ChildConflict", testChildConflict},
		{"WaitApproval", testWaitApproval},
		{"ApprovedClaim", testApprovedClaim},
		{"Decide", testDecide},
		{"ApprovalsClose", testApprovalsClose},
		{"Events", testRunEvents},
		{"EventLimit", testEventLimit},
		{"EventFence", testEventFence},
		{"EventStarts", testEventStarts},
		{"Inbox", testInbox},
		{"WakeRace", testWakeRace},
		{"Cancel", testCancel},
		{"CancelHeld", testCancelHeld},
		{"CancelRace", testCancelRace},
		{"Pause", testPause},
		{"Retry", testRetry},
		{"ListRuns", testListRuns},
		{"NextDue", testNextDue},
		{"Register", testRegister},
		{"Schedules", testSchedules},
		{"Fire", testFire},
		{"AtOnce", testAtOnce},
		{"Rate", testRate},
		{"Outbox", testOutbox},
		{"RunHistories", testRunHistories},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, open(t))
		})
	}
}
