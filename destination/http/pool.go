package httpdest

import (
	"slices"
	"sync"
	"time"
)

// maxIdle is the most links that wait for one destination.
const maxIdle = 16

// pool keeps links for a moment, so that a batch does not pay a handshake for
// each request.
type pool struct {
	mu     sync.Mutex
	closed bool
	idle   map[string][]*rest
}

// rest is a link that waits.
type rest struct {
	link  *link
	timer *time.Timer
}

// take returns a usable link for the route, or nil.
func (p *pool) take(route string) *link {
	for {
		p.mu.Lock()
		waiting := p.idle[route]
		if len(waiting) == 0 {
			p.mu.Unlock()
			return nil
		}
		r := waiting[len(waiting)-1]
		p.idle[route] = waiting[:len(waiting)-1]
		p.mu.Unlock()
		r.timer.Stop()
		if r.link.client.Err() == nil && r.link.client.Available() > 0 {
			return r.link
		}
		r.link.close()
	}
}

// put keeps a link that has nothing more to do.
func (p *pool) put(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle[l.route]) >= maxIdle {
		l.close()
		return
	}
	if p.idle == nil {
		p.idle = map[string][]*rest{}
	}
	r := &rest{link: l}
	r.timer = time.AfterFunc(idleFor, func() { p.drop(r) })
	p.idle[l.route] = append(p.idle[l.route], r)
}

func (p *pool) drop(r *rest) {
	p.mu.Lock()
	i := slices.Index(p.idle[r.link.route], r)
	if i >= 0 {
		p.idle[r.link.route] = slices.Delete(p.idle[r.link.route], i, i+1)
		if len(p.idle[r.link.route]) == 0 {
			delete(p.idle, r.link.route)
		}
	}
	p.mu.Unlock()
	if i >= 0 {
		r.link.close()
	}
}

func (p *pool) close() {
	p.mu.Lock()
	all := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, waiting := range all {
		for _, r := range waiting {
			r.timer.Stop()
			r.link.close()
		}
	}
}
