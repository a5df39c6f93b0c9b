package engine

import (
	"sync/atomic"
	"time"
)

// deadline is a moment of this machine's clocks after which nothing may be
// begun. It is over when either clock says so: the monotonic one does not stop
// with a wall clock that is set back, and the wall clock goes on while a machine
// is suspended.
type deadline struct{ at atomic.Pointer[time.Time] }

// set moves the deadline; t has the monotonic reading of time.Now.
func (d *deadline) set(t time.Time) { d.at.Store(&t) }

func (d *deadline) over(now time.Time) bool { return over(*d.at.Load(), now) }

// left is how much time there is by the clock that gives less.
func (d *deadline) left(now time.Time) time.Duration {
	at := *d.at.Load()
	return min(at.Sub(now), at.Round(0).Sub(now.Round(0)))
}

func over(at, now time.Time) bool {
	return !now.Before(at) || !now.Round(0).Before(at.Round(0))
}
