package httpdest

import (
	"context"
	"sync"
	"time"
)

// limit bounds how many attempts run at once and how many begin per second.
type limit struct {
	slots chan struct{} // nil for no bound
	pause time.Duration // between two beginnings

	mu   sync.Mutex
	next time.Time
}

func newLimit(atOnce int, perSecond float64) *limit {
	l := &limit{}
	if atOnce > 0 {
		l.slots = make(chan struct{}, atOnce)
	}
	if perSecond > 0 {
		l.pause = time.Duration(float64(time.Second) / perSecond)
	}
	return l
}

// take waits for a place, and returns what gives it back.
func (l *limit) take(ctx context.Context) (release func(), err error) {
	release = func() {}
	if l.slots != nil {
		select {
		case l.slots <- struct{}{}:
			release = func() { <-l.slots }
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if l.pause == 0 {
		return release, nil
	}
	timer := time.NewTimer(l.turn(time.Now()))
	defer timer.Stop()
	select {
	case <-timer.C:
		return release, nil
	case <-ctx.Done():
		release()
		return nil, context.Cause(ctx)
	}
}

// turn reserves the next beginning and says how far off it is.
func (l *limit) turn(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next.Before(now) {
		l.next = now
	}
	wait := l.next.Sub(now)
	l.next = l.next.Add(l.pause)
	return wait
}
