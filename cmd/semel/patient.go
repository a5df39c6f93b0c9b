package main

import (
	"context"
	"fmt"
	"iter"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/semel-dev/semel"
)

// No command waits for ever for a database that is silent.
const (
	connecting = 10 * time.Second // to one address of the database, unless its URL says otherwise
	opening    = 30 * time.Second // the database, all in all
	answering  = patience         // one question to it
	leaving    = 5 * time.Second  // what is left to close when the outcome is known
)

// patientStore is the store of one command: it asks each question for a limited
// time, and remembers the attempt that this command claimed.
type patientStore struct {
	semel.Store
	claimed atomic.Int64
}

// Warnings says what about the store weakens the guarantees.
func (s *patientStore) Warnings() []string {
	if careless, ok := s.Store.(interface{ Warnings() []string }); ok {
		return careless.Warnings()
	}
	return nil
}

// attempt is the last one that this command claimed, 0 if none.
func (s *patientStore) attempt() int { return int(s.claimed.Load()) }

// within asks the store one question.
func within[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	limited, cancel := context.WithTimeout(ctx, answering)
	defer cancel()
	answer, err := ask(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("the database did not answer within %v: %w", answering, err)
	}
	return answer, err
}

// Now is the store's clock.
func (s *patientStore) Now(ctx context.Context) (time.Time, error) { return within(ctx, s.Store.Now) }

// Commit makes one change durable.
func (s *patientStore) Commit(ctx context.Context, c semel.Change) (semel.Operation, error) {
	o, err := within(ctx, func(ctx context.Context) (semel.Operation, error) { return s.Store.Commit(ctx, c) })
	if err == nil && c.Event.Kind == semel.EvClaimed {
		s.claimed.Store(int64(o.Attempt))
	}
	return o, err
}

// Renew extends a lease.
func (s *patientStore) Renew(ctx context.Context, id semel.ID, attempt int, lease time.Duration) (semel.Renewal, error) {
	return within(ctx, func(ctx context.Context) (semel.Renewal, error) { return s.Store.Renew(ctx, id, attempt, lease) })
}

// Load reads one operation.
func (s *patientStore) Load(ctx context.Context, scope semel.Scope, key semel.Key) (semel.Operation, error) {
	return within(ctx, func(ctx context.Context) (semel.Operation, error) { return s.Store.Load(ctx, scope, key) })
}

// LoadID reads one operation.
func (s *patientStore) LoadID(ctx context.Context, id semel.ID) (semel.Operation, error) {
	return within(ctx, func(ctx context.Context) (semel.Operation, error) { return s.Store.LoadID(ctx, id) })
}

// Events reads all evidence of an operation.
func (s *patientStore) Events(ctx context.Context, id semel.ID) ([]semel.Event, error) {
	return within(ctx, func(ctx context.Context) ([]semel.Event, error) { return s.Store.Events(ctx, id) })
}

// List lists operations.
func (s *patientStore) List(ctx context.Context, f semel.Filter) iter.Seq2[semel.Operation, error] {
	return each(ctx, func(ctx context.Context) iter.Seq2[semel.Operation, error] { return s.Store.List(ctx, f) })
}

// each reads a list. However long it is, the next one has to come in time; the
// reader of the list may take as long as it likes.
func each[T any](ctx context.Context, list func(context.Context) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		silent := time.AfterFunc(answering, func() { cancel(fmt.Errorf("the database did not answer within %v", answering)) })
		defer silent.Stop()
		for v, err := range list(ctx) {
			silent.Stop()
			if err != nil && ctx.Err() != nil {
				err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
			}
			if !yield(v, err) {
				return
			}
			silent.Reset(answering)
		}
	}
}

// atMost waits for work for a limited time. What has not ended then ends with
// this process.
func atMost(limit time.Duration, work func() error) error {
	done := make(chan error, 1)
	go func() { done <- work() }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return fmt.Errorf("it did not end within %v, and is left as it is", limit)
	}
}

// impatient is the URL of a PostgreSQL database with a limit on connecting.
func impatient(name string, getenv func(string) string) string {
	u, err := url.Parse(name)
	if err != nil || u.Query().Has("connect_timeout") || getenv("PGCONNECT_TIMEOUT") != "" {
		return name
	}
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += fmt.Sprintf("connect_timeout=%d", int(connecting.Seconds()))
	return u.String()
}
