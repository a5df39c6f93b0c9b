package drill

import (
	"context"
	"errors"
	"sync"

	"github.com/semel-dev/semel"
)

// portSpool is the spool as a process sees it.
type portSpool struct {
	*spool
	p *process
}

func (s portSpool) Put(ev semel.Evidence) error {
	if s.p.dead.Load() {
		return errDead
	}
	return s.spool.Put(ev)
}

// spool is the disk beside a trial's workers: it outlives them.
type spool struct {
	mu   sync.Mutex
	kept []semel.Evidence
}

func (s *spool) Put(ev semel.Evidence) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = append(s.kept, ev)
	return nil
}

func (s *spool) Each(_ context.Context, use func(semel.Evidence) error) error {
	s.mu.Lock()
	all := s.kept
	s.kept = nil
	s.mu.Unlock()
	var failed error
	for i, ev := range all {
		err := use(ev)
		if err == nil {
			continue
		}
		failed = errors.Join(failed, err)
		_ = s.Put(ev)
		if errors.Is(err, semel.ErrUnavailable) {
			for _, rest := range all[i+1:] {
				_ = s.Put(rest)
			}
			break
		}
	}
	return failed
}

func (s *spool) empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.kept) == 0
}
