package sandbox

import (
	"fmt"
	"time"
)

// Options configures a [Server]. The zero Options is a provider in memory that
// behaves unless a request asks for a fault.
type Options struct {
	// LedgerPath is a file of JSON lines that is only ever appended to and is on
	// disk before any answer is sent. Effects, requests, keys, windows and late
	// effects still to come survive a restart, also after kill -9. One process at
	// a time may use it. Empty keeps the ledger in memory.
	LedgerPath string

	// Window is how long charges honour a key after they first saw it. Zero is 24
	// hours.
	Window time.Duration

	// VisibleAfter is how long a new transfer stays invisible to lookups. Zero is
	// 2 seconds; negative shows it at once.
	VisibleAfter time.Duration

	// Delay is how long [Late] and [Slow] take. Zero is 1 second; negative does
	// not wait.
	Delay time.Duration

	// Seed decides which references misbehave under a [Rate], and the ids.
	Seed uint64

	// Faults is the rate for every resource that FaultsOn does not name. Requests
	// that name their fault, and lookups, are not subject to rates.
	Faults Rate

	// FaultsOn gives resources a rate of their own in place of Faults. With Faults
	// left zero, only the resources named here misbehave.
	FaultsOn map[Resource]Rate

	// Now is the provider's clock for windows, visibility and the times in the
	// ledger; it must be safe for concurrent use. Nil is time.Now. Delays always
	// run on real timers.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	if o.Window == 0 {
		o.Window = 24 * time.Hour
	}
	if o.VisibleAfter == 0 {
		o.VisibleAfter = 2 * time.Second
	}
	if o.Delay == 0 {
		o.Delay = time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.VisibleAfter = max(o.VisibleAfter, 0)
	o.Delay = max(o.Delay, 0)
	return o
}

func (o Options) validate() error {
	if o.Window < 0 {
		return fmt.Errorf("window is %v: it cannot be negative", o.Window)
	}
	if err := o.Faults.validate(); err != nil {
		return fmt.Errorf("faults: %w", err)
	}
	for resource, rate := range o.FaultsOn {
		if _, ok := resource.trait(); !ok {
			return fmt.Errorf("faults on %q: use %s, %s or %s", resource, Charges, Transfers, Messages)
		}
		if err := rate.validate(); err != nil {
			return fmt.Errorf("faults on %s: %w", resource, err)
		}
	}
	return nil
}

func (o Options) rate(resource Resource) Rate {
	if rate, ok := o.FaultsOn[resource]; ok {
		return rate
	}
	return o.Faults
}
