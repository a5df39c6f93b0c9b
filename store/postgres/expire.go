package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/semel-dev/semel"
)

// expired is what a store remembers of the tombstones, which stay at the
// beginning of the primary key. Most operations expire in the order of their
// IDs; those that took long to settle are found when all are walked again.
type expired struct {
	mu     sync.Mutex
	mark   [16]byte      // what is left before it took long to settle
	walked time.Time     // when all were last walked, by the local clock
	took   time.Duration // and how long that took
}

// from is the ID behind which to look. A walk that takes long begins at the
// mark, so that those from the beginning take at most a thousandth of the time.
func (e *expired) from() [16]byte {
	if e.took < 20*time.Millisecond || time.Since(e.walked) > 1000*e.took {
		return [16]byte{}
	}
	return e.mark
}

// Expire turns up to limit operations that were settled before the given time
// into tombstones: body and answers go, identity and history stay, so that a
// late retry is recognised. Unknown operations and open incidents never
// expire. It returns how many it expired.
func (s *Store) Expire(ctx context.Context, before time.Time, limit int) (int, error) {
	const query = selectOperation + `
where o.id > $4::uuid
  and o.id < $1::uuid
  and o.updated_at < $2::timestamptz
  and o.state in ('completed', 'failed')
  and o.due_at is null
  and not o.expired
order by o.id
limit $3::integer`
	s.expired.mu.Lock()
	defer s.expired.mu.Unlock()
	start, from := time.Now(), s.expired.from()
	found, err := s.stored(ctx, query, firstID(before.Add(margin)), before, limit, from)
	if err != nil {
		return 0, unavailable("look for operations to expire", err)
	}
	if from == [16]byte{} {
		s.expired.walked, s.expired.took = start, time.Since(start)
	}
	s.expired.mark = firstID(before.Add(-margin))
	if len(found) == limit && limit > 0 {
		s.expired.mark = found[limit-1].record.ID
	}
	errs := make([]error, len(found))
	var wg sync.WaitGroup
	turns := make(chan struct{}, 64)
	for i, f := range found {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			errs[i] = s.expireOne(ctx, f, before)
		})
	}
	wg.Wait()
	expired := 0
	for _, err := range errs {
		if err == nil {
			expired++
		}
	}
	return expired, errors.Join(errs...)
}

func (s *Store) expireOne(ctx context.Context, f stored, before time.Time) error {
	o, err := f.operation()
	if err != nil {
		return err
	}
	token := expiryToken(o)
	c, err := o.Change(semel.Event{Kind: semel.EvExpired, At: o.UpdatedAt, Reason: "settled before " + before.UTC().Format(time.RFC3339)}, token)
	if err != nil {
		return err
	}
	if _, err = s.Commit(ctx, c); errors.Is(err, semel.ErrStale) {
		return nil // something happened to it meanwhile
	}
	return err
}

// expiryToken needs no randomness: one version expires only once.
func expiryToken(o semel.Operation) semel.ID {
	token := o.ID
	token[6] = token[6]&0x0f | 0x80 // not the claim's token, which is the ID itself
	return token
}

// expire is the statements of a tombstone: the event, and the removal of every
// answer from the events so far.
func (s *Store) expire(ctx context.Context, c semel.Change, args []any) ([]statement, error) {
	const rewrite = `
update semel.evidence as e
set event = $4::bytea
where e.operation_id = $1::uuid
  and e.seq = $2::integer
  and exists (
    select from semel.evidence as expired
    where expired.operation_id = $1::uuid and expired.seq = $5::integer and expired.token = $3::uuid)`
	found, err := s.one(ctx, selectByID, [16]byte(c.After.ID))
	if err != nil {
		return nil, err
	}
	events := found.record.Events
	if len(events) < 2 {
		return nil, fmt.Errorf("operation %s: %w", c.After.ID, semel.ErrStale)
	}
	statements := make([]statement, 1, len(events))
	for i, ev := range events {
		bare, err := withoutAnswer(ev.Data)
		switch {
		case err != nil:
			return nil, err
		case i == 1:
			statements[0] = statement{sql: expiry, args: append(args, bare), there: c.After.ID, wakes: true}
		case i > 1 && len(bare) != len(ev.Data):
			rewritten := []any{[16]byte(c.After.ID), i + 1, [16]byte(c.Token), bare, c.Before.Version + 1}
			statements = append(statements, statement{sql: rewrite, args: rewritten, exec: true})
		}
	}
	return statements, nil
}

// withoutAnswer drops the body of the answer that an event carries. The
// reference stays: later evidence is judged by it.
func withoutAnswer(data []byte) ([]byte, error) {
	var ev semel.Event
	if err := json.Unmarshal(data, &ev); err != nil {
		return nil, fmt.Errorf("read an event to expire: %w", err)
	}
	if ev.Result == nil || len(ev.Result.Body) == 0 {
		return data, nil
	}
	if ev.Result.Size == 0 {
		ev.Result.Size = int64(len(ev.Result.Body))
	}
	ev.Result.Body = nil
	return ev.Encode()
}
