package postgres

import (
	"sync/atomic"
	"time"
)

// pace learns how long the server takes to make a commit durable, and derives
// how many committers serve best. On a fast disk the processor is the limit,
// and two committers fill it. On a slow one the server joins the flushes of
// many sessions by itself, so more committers wait in parallel.
type pace struct {
	flush   atomic.Int64 // moving average of a commit without its rows, in ns
	resting atomic.Int64 // no new committer before, in Unix ns
}

const (
	rowTime   = 20 * time.Microsecond  // what one row adds to a commit
	fastFlush = 700 * time.Microsecond // up to here two committers are best
	flushPer  = 250 * time.Microsecond // above, one committer for each
)

func (p *pace) saw(took time.Duration, rows int) {
	flush := max(0, took-time.Duration(rows)*rowTime)
	old := p.flush.Load()
	p.flush.Store(old + (int64(flush)-old)/16)
}

func (p *pace) committers(most int) int {
	flush := time.Duration(p.flush.Load())
	if flush <= fastFlush {
		return min(2, most)
	}
	return min(max(4, int(flush/flushPer)), most)
}

// batch is the most rows that share one commit.
func (p *pace) batch() int {
	if time.Duration(p.flush.Load()) <= fastFlush {
		return 64
	}
	return 200
}

// rest keeps new committers away while the server takes no connection.
func (p *pace) rest() { p.resting.Store(time.Now().Add(time.Second).UnixNano()) }

func (p *pace) mayGrow() bool { return time.Now().UnixNano() >= p.resting.Load() }
