package schedule

import (
	"fmt"
	"time"

	"github.com/semel-dev/semel"
)

// Missed says what happens to ticks whose time passed while nobody could fire
// them, because everything was down or busy. The zero value is Once.
type Missed string

const (
	// Once fires the latest missed tick, under its own label; those before it
	// are skipped.
	Once Missed = "once"
	// Skip fires a tick only within its Grace; all others are skipped.
	Skip Missed = "skip"
	// All fires every missed tick, the oldest first.
	All Missed = "all"
)

// Grace is how late a tick may be and still count as on time: less than this.
const Grace = time.Minute

// MaxSkipped is as far as skipped ticks are counted.
const MaxSkipped = 10_000

// Validate reports what is wrong with m.
func (m Missed) Validate() error {
	switch m {
	case "", Once, Skip, All:
		return nil
	default:
		return &semel.InputError{Field: "missed", Problem: fmt.Sprintf("%q is unknown", string(m)), Hint: "use once, skip or all"}
	}
}

// Due is what to do about a schedule at one instant.
type Due struct {
	// Fire are the ticks to start now, the oldest first.
	Fire []Tick
	// Skipped counts the ticks that were missed and will not fire, up to
	// MaxSkipped.
	Skipped int
	// Last is the instant of the last tick that is now handled, fired or
	// skipped: persist it with the fired labels, and pass it to the next call.
	Last time.Time
	// Next is the first tick after Last. It may be due already if the limit cut
	// Fire short; then ask again at once. It is zero for the zero Spec.
	Next Tick
}

// Due decides what to fire at the instant now, when last is the instant of the
// last handled tick, or that from which a new schedule counts. It never returns
// a tick at or before last, so a clock that went back fires nothing again.
// Under All it fires at most limit ticks at once, at least one; the others at
// most one. An invalid m counts as Once.
func (s Spec) Due(last, now time.Time, m Missed, limit int) Due {
	due := Due{Last: last}
	first, ok := s.Next(last)
	if !ok || first.At.After(now) {
		due.Next = first
		return due
	}
	if m == All {
		due.Fire = s.oldest(first, now, limit)
		due.Last = due.Fire[len(due.Fire)-1].At
	} else {
		latest := s.latest(first, now)
		skippedBefore := latest.At
		if m != Skip || now.Sub(latest.At) < Grace {
			due.Fire = []Tick{latest}
		} else {
			skippedBefore = latest.At.Add(1)
		}
		due.Skipped = s.count(first, skippedBefore)
		due.Last = latest.At
	}
	due.Next, _ = s.Next(due.Last)
	return due
}

// oldest returns the ticks from first up to now, at most limit, at least first.
func (s Spec) oldest(first Tick, now time.Time, limit int) []Tick {
	ticks := []Tick{first}
	for len(ticks) < limit {
		tick, ok := s.Next(ticks[len(ticks)-1].At)
		if !ok || tick.At.After(now) {
			break
		}
		ticks = append(ticks, tick)
	}
	return ticks
}

// latest returns the last tick up to now, given one that is. It looks at longer
// and longer spans before now, so it is quick after a year of minutes.
func (s Spec) latest(given Tick, now time.Time) Tick {
	latest := given
	for span := time.Minute; given.At.Before(now.Add(-span)); span *= 2 {
		tick, ok := s.Next(now.Add(-span))
		if ok && !tick.At.After(now) {
			latest = tick
			break
		}
	}
	for {
		tick, ok := s.Next(latest.At)
		if !ok || tick.At.After(now) {
			return latest
		}
		latest = tick
	}
}

// count counts the ticks from first on that are before an instant.
func (s Spec) count(first Tick, before time.Time) int {
	n := 0
	for tick, ok := first, true; ok && tick.At.Before(before) && n < MaxSkipped; n++ {
		tick, ok = s.Next(tick.At)
	}
	return n
}
