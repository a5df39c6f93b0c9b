package semel

import "context"

// Destination performs effects. Implementations must be safe for concurrent
// use, must call Send.Begin immediately before the first byte can leave, and
// must never send a second time within one call.
type Destination interface {
	// Send performs one attempt and returns its evidence: EvConfirmed,
	// EvRefused (this attempt had no effect), EvRetained (the destination's
	// error for this key), or EvLost for everything that does not tell. Any
	// other kind counts as lost. When ctx ends, Send stops waiting and returns
	// EvLost, unless it knows better.
	Send(ctx context.Context, s *Send) Event
}

// Looker is a Destination that can be asked what became of an operation.
type Looker interface {
	// Look returns EvFound, EvAbsent, or EvNoAnswer for everything else. It
	// never changes anything at the destination.
	Look(ctx context.Context, s *Send) Event
}

// Send is one attempt as a Destination sees it. It is read-only, and valid
// only during the call.
type Send struct {
	Operation      *Operation
	Attempt        int
	DestinationKey string
	// Withheld holds the values of headers that are never stored, given by
	// this caller.
	Withheld map[string]string
	// Begin checks the claim, its deadline and a cancel request. The
	// destination calls it once, immediately before the first byte; on an
	// error nothing may be sent and the evidence is EvRefused.
	Begin func() error
	// Late, if not nil, takes evidence that arrives after Send has returned
	// EvLost because it stopped waiting. The destination calls it at most
	// once, and only if Send returned EvLost with Closed false.
	Late func(Event)
}
