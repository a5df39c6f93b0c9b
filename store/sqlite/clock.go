package sqlite

import (
	"sync"
	"time"
)

// clock is the store's clock: the machine's wall clock, except that it never
// runs back. Where the wall clock is behind what was already stamped, it goes
// on from there at its own pace.
type clock struct {
	wall   func() time.Time
	mu     sync.Mutex
	read   time.Time // when at was computed, with its monotonic reading
	at     int64     // ns since 1970
	offset time.Duration
}

func (c *clock) now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.wall()
	next := t.Add(c.offset).UnixNano()
	if !c.read.IsZero() {
		next = max(next, c.at+int64(t.Sub(c.read)))
	}
	c.read, c.at = t, max(next, c.at)
	return c.at
}

// observe takes over a time that the database or another process stamped.
func (c *clock) observe(at int64) {
	c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = max(c.at, at)
}

func (c *clock) shift(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
}

func fromNano(ns int64) time.Time { return time.Unix(0, ns).UTC() }
