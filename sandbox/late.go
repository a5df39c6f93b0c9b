package sandbox

import (
	"errors"
	"time"
)

// lateness is an effect on its way.
type lateness struct {
	hurry chan struct{} // closed: act now
	done  chan struct{} // closed: acted, or given up with err
	err   error
}

// postpone acts on e when it is due, or when the server closes. The caller holds
// off Close.
func (s *Server) postpone(e entry) {
	l := &lateness{hurry: make(chan struct{}), done: make(chan struct{})}
	s.mu.Lock()
	s.late[l] = true
	s.mu.Unlock()
	s.busy.Go(func() {
		timer := time.NewTimer(e.Due.Sub(s.now()))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.hurry:
		case <-s.closing:
		}
		l.err = s.actLate(e)
		s.mu.Lock()
		delete(s.late, l)
		if l.err != nil {
			s.undone = append(s.undone, l.err)
		}
		s.mu.Unlock()
		close(l.done)
	})
}

// actLate does what the request asked for although its client has gone. If the
// ledger cannot be written nothing happens, and the next start tries again.
func (s *Server) actLate(e entry) error {
	effect := *e.Effect
	effect.At = s.now()
	done := entry{Effect: &effect}
	if e.Key != nil {
		key, own := *e.Key, effect.answer()
		key.Answer = &own
		done.Key = &key
	}
	return s.ledger.record(done)
}

// FinishLate performs every late effect now instead of when it is due, and
// returns when they are in the ledger, so that a test need not wait for
// [Options.Delay]. Its error says that the ledger could not be written and those
// effects did not happen.
func (s *Server) FinishLate() error {
	s.mu.Lock()
	var all []*lateness
	for l, waiting := range s.late {
		if waiting {
			close(l.hurry)
			s.late[l] = false
		}
		all = append(all, l)
	}
	s.mu.Unlock()
	var errs []error
	for _, l := range all {
		<-l.done
		errs = append(errs, l.err)
	}
	return errors.Join(errs...)
}
