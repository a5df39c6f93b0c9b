package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	lib "modernc.org/sqlite/lib"

	"github.com/semel-dev/semel"
)

// maxBatch bounds one transaction, so that other processes get their turn.
const maxBatch = 512

// grace is how long a caller whose context ended waits for a commit that is
// already on its way to the disk.
const grace = time.Second

// Other processes poll for the lock. One that commits without a pause for
// turnAfter lets it go for turnFor.
const (
	turnAfter = 25 * time.Millisecond
	turnFor   = time.Millisecond
	pollEvery = 500 * time.Microsecond
)

// work is one member of a shared transaction.
type work interface {
	// write does the work in the transaction that w has open; at is the time
	// of the batch. An error that wraps a sentinel of the root package, or a
	// *semel.InputError, is an answer and leaves the transaction alone.
	write(w *writer, at int64) error
}

// entry is work in the queue.
type entry struct {
	work   work
	claims bool        // refused while a restored backup waits to be accepted
	taken  atomic.Bool // by the committer, or by its own caller giving up
	err    error
	done   chan struct{}
}

func (e *entry) finish(err error) {
	e.err = err
	close(e.done)
}

// submit puts w into the next shared transaction and waits for the outcome.
func (s *Store) submit(ctx context.Context, w work, claims bool) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", semel.ErrUnavailable, context.Cause(ctx))
	}
	e := &entry{work: w, claims: claims, done: make(chan struct{})}
	s.mu.Lock()
	if s.done {
		s.mu.Unlock()
		return fmt.Errorf("%w: database %s is closed", semel.ErrUnavailable, s.path)
	}
	s.queue = append(s.queue, e)
	s.mu.Unlock()
	s.nudge()
	select {
	case <-e.done:
		return e.err
	case <-ctx.Done():
	}
	if e.taken.CompareAndSwap(false, true) {
		return fmt.Errorf("%w: %w", semel.ErrUnavailable, context.Cause(ctx))
	}
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-e.done:
		return e.err
	case <-t.C:
		return fmt.Errorf("%w: %w", semel.ErrUnconfirmed, context.Cause(ctx))
	}
}

// nudge wakes the committer.
func (s *Store) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run is the committer: it commits whatever is there, and what arrives
// meanwhile shares the next transaction. Nobody waits for company.
func (s *Store) run() {
	defer close(s.closed)
	for {
		idle := time.Now()
		select {
		case <-s.wake:
			if now := time.Now(); now.Sub(idle) >= turnFor {
				s.rested = now
			}
			s.drain()
			s.shrink() // the last read may have woken it
		case <-s.closing:
			s.drain()
			s.reads.open()
			s.leave()
			return
		}
	}
}

func (s *Store) drain() {
	for s.waiting() {
		s.turn()
		if err := s.lock(); err != nil {
			for _, e := range s.take() {
				e.finish(err)
			}
			continue
		}
		s.batch(s.take())
		s.shrink()
	}
}

// waiting reports whether somebody still waits in the queue.
func (s *Store) waiting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, e := range s.queue {
		if !e.taken.Load() {
			s.queue = s.queue[i:]
			return true
		}
	}
	s.queue = nil
	return false
}

func (s *Store) take() []*entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(len(s.queue), maxBatch)
	batch := make([]*entry, 0, n)
	for _, e := range s.queue[:n] {
		if e.taken.CompareAndSwap(false, true) {
			batch = append(batch, e)
		}
	}
	s.queue = s.queue[n:]
	return batch
}

// turn lets other processes have the lock for a moment, where this one has
// been committing without a pause.
func (s *Store) turn() {
	if time.Since(s.rested) < turnAfter {
		return
	}
	time.Sleep(turnFor)
	s.rested = time.Now()
}

// lock begins a transaction, waiting for other processes while anybody here
// still waits. After an error no transaction is open.
func (s *Store) lock() error {
	for until := time.Now().Add(busyLimit); ; {
		err := s.tryLock()
		switch {
		case err == nil:
			return nil
		case !isBusy(err) || time.Now().After(until):
			s.discard(err)
			return unavailable(s.path, err)
		case !s.waiting():
			return unavailable(s.path, err)
		}
		s.shrink() // reads must not wait for the other process
		time.Sleep(pollEvery)
	}
}

func (s *Store) tryLock() error {
	if err := s.moved(); err != nil {
		return fmt.Errorf("it was moved, deleted or replaced while it was open: restart with the right file: %w", err)
	}
	if s.writer == nil {
		w, err := openWriter(context.Background(), s.path)
		if err != nil {
			return err
		}
		s.writer = w
	}
	return s.writer.exec(s.writer.begin)
}

// batch commits the work of its members in the transaction that is open, each
// with its own answer.
func (s *Store) batch(batch []*entry) {
	answers, err := s.attempt(batch)
	for isBusy(err) {
		if err = s.lock(); err == nil {
			answers, err = s.attempt(batch)
		}
	}
	switch {
	case err == nil:
		for i, e := range batch {
			e.finish(answers[i])
		}
	case len(batch) > 1 && isPoison(err):
		for _, e := range batch { // one of them is poison: each gets a transaction of its own
			if err := s.lock(); err != nil {
				e.finish(err)
				continue
			}
			s.batch([]*entry{e})
		}
	case isPoison(err):
		batch[0].finish(unavailable(s.path, err))
	default:
		for _, e := range batch {
			e.finish(err)
		}
	}
}

// attempt runs the open transaction to its end, in which no transaction is
// open any more. Answers are the members' own; an error is the transaction's.
func (s *Store) attempt(batch []*entry) ([]error, error) {
	answers, st, err := s.write(batch)
	if err != nil {
		s.rollback(err)
		if isStorage(err) {
			err = unavailable(s.path, err)
		}
		return nil, err
	}
	if err := s.finish(); err != nil {
		return nil, err
	}
	s.note(st.clock)
	return answers, nil
}

// write does the members' work in the open transaction.
func (s *Store) write(batch []*entry) ([]error, stamp, error) {
	w := s.writer
	st, err := w.stamp(s.clock.now())
	if err != nil {
		return nil, st, err
	}
	s.clock.observe(st.clock)
	if st.schema > s.latest {
		return nil, st, fmt.Errorf("%w: %w", semel.ErrUnavailable, newerSchema(s.path, st.schema))
	}
	w.refusal, w.awaited = nil, st.awaited
	if st.suspect != 0 {
		w.refusal = s.suspicion(st)
	}
	answers := make([]error, len(batch))
	for i, e := range batch {
		if e.claims && w.refusal != nil {
			answers[i] = w.refusal
			continue
		}
		answers[i] = e.work.write(w, st.clock)
		if !isAnswer(answers[i]) {
			return nil, st, answers[i]
		}
	}
	return answers, st, nil
}

// finish commits the open transaction. After an error it is not open any more.
func (s *Store) finish() error {
	err := s.writer.exec(s.writer.commit)
	for until := time.Now().Add(busyLimit); isBusy(err) && time.Now().Before(until); {
		time.Sleep(pollEvery)
		err = s.writer.exec(s.writer.commit)
	}
	if err != nil {
		s.rollback(err)
		if isBusy(err) || code(err) == lib.SQLITE_FULL {
			return unavailable(s.path, err) // the commit record is not in the log
		}
		return unconfirmed(s.path, err)
	}
	if err := s.moved(); err != nil {
		return unconfirmed(s.path, fmt.Errorf("it was moved, deleted or replaced while it was open: restart with the right file: %w", err))
	}
	return nil
}

// rollback ends the open transaction after err.
func (s *Store) rollback(err error) {
	if s.writer.exec(s.writer.rollback) != nil || isStorage(err) {
		s.discard(err) // SQLite has rolled back by itself, or cannot: start afresh
	}
}

// discard closes a writer that may be broken; the next transaction opens one.
func (s *Store) discard(err error) {
	if s.writer != nil && !isBusy(err) {
		_ = s.writer.close() // what matters is err
		s.writer = nil
	}
}

// isPoison: the trouble is with a row, not with the file or the commit.
func isPoison(err error) bool {
	return !isStorage(err) && !errors.Is(err, semel.ErrUnavailable) && !errors.Is(err, semel.ErrUnconfirmed)
}

// isAnswer: err is what one caller is told; the transaction is sound.
func isAnswer(err error) bool {
	for _, is := range []error{nil, semel.ErrStale, semel.ErrNotFound, semel.ErrNotApproved, semel.ErrStopped, semel.ErrRestored} {
		if errors.Is(err, is) {
			return true
		}
	}
	var input *semel.InputError
	var run *semel.RunStateError
	var approval *semel.ApprovalStateError
	return errors.As(err, &input) || errors.As(err, &run) || errors.As(err, &approval)
}
