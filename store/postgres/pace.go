package postgres

import (
	"sync"
	"sync/atomic"
	"time"
)

// pace learns how long the server takes to make a commit durable, and derives
// how many committers serve best. On a fast disk the processor is the limit,
// and two committers fill it. On a slow one the server joins the flushes of
// many sessions by itself, so more committers wait in parallel.
//
// A busy processor makes commits slow, too, but not each of them: what counts
// is the fastest of late. A short memory would take a busy moment for a slow
// disk, and each committer that comes and goes costs a connection.
type pace struct {
	resting atomic.Int64 // no new committer before, in Unix ns
	flush   atomic.Int64 // the fastest commit of late, without its rows, in ns

	mu       sync.Mutex
	seen     int
	now, was time.Duration // the fastest of this window and of the last
}

const (
	window    = 256                    // commits
	rowTime   = 30 * time.Microsecond  // what one row adds to a commit
	fastFlush = 700 * time.Microsecond // up to here two committers are best
)

func (p *pace) saw(took time.Duration, rows int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	took = max(0, took-time.Duration(rows)*rowTime)
	if p.seen%window == 0 {
		p.now, p.was = took, p.now
	}
	p.seen++
	p.now = min(p.now, took)
	fastest := p.now
	if p.seen > window {
		fastest = min(p.now, p.was)
	}
	p.flush.Store(int64(fastest))
}

func (p *pace) committers(most int) int {
	if time.Duration(p.flush.Load()) <= fastFlush {
		return min(2, most)
	}
	return most
}

// batch is the most rows that share one commit.
func (p *pace) batch() int {
	if time.Duration(p.flush.Load()) <= fastFlush {
		return 128
	}
	return 200
}

// rest keeps new committers away while the server takes no connection.
func (p *pace) rest() { p.resting.Store(time.Now().Add(time.Second).UnixNano()) }

func (p *pace) mayGrow() bool { return time.Now().UnixNano() >= p.resting.Load() }
