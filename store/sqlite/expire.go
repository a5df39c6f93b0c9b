package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/semel-dev/semel"
)

const (
	expirable = `
		select seq
		from operation not indexed
		where seq > ?
			and seq <= ?
			and state in ('completed', 'failed')
			and due_at is null
			and not expired
			and updated_at < ?
		order by seq
		limit ?`
	selectEvents = `
		select 1, first from operation where id = ?1
		union all
		select 2, second from operation where id = ?1 and second is not null
		union all
		select seq, event from evidence where operation = ?1`
	stripOperation = `
		update operation
		set body = null,
			first = ?2,
			second = ?3
		where id = ?1`
	stripEvidence = `
		update evidence
		set event = ?3
		where operation = ?1
			and seq = ?2`
)

// stretch is how many rows one read transaction of Expire walks over: a long one
// would keep the log from being written back.
const stretch = 5000

// retention is how far Expire has come. Most operations expire in the order in
// which they were created; those that took long to settle are found when all are
// walked again.
type retention struct {
	mu     sync.Mutex
	seq    int64         // all up to this one were looked at
	again  bool          // since all were
	walked time.Time     // when that was, by the local clock
	took   time.Duration // and how long
}

// begin goes to the beginning once the last walk was over. Where walks take
// long, they take at most a thousandth of the time.
func (r *retention) begin() {
	if r.again && (r.took < 20*time.Millisecond || time.Since(r.walked) > 1000*r.took) {
		r.seq, r.again, r.took = 0, false, 0
	}
}

// end takes note that all were looked at.
func (r *retention) end() {
	if !r.again {
		r.again, r.walked = true, time.Now()
	}
}

// Expire makes tombstones of up to limit operations that were settled and last
// changed before then: their bodies are gone, and what identifies them and
// their story stays. Unknown operations and open incidents never expire. It
// goes through the store from the oldest and returns how many it did; fewer
// than limit means that it came to the end. What settled long after it began may
// be left to a later call.
func (s *Store) Expire(ctx context.Context, before time.Time, limit int) (int, error) {
	r := &s.retention
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begin()
	last, err := s.lastCreated(ctx, before)
	if err != nil {
		return 0, err
	}
	n := 0
	for n < limit {
		if r.seq >= last {
			r.end()
			return n, nil
		}
		from, to, most := r.seq, min(last, r.seq+stretch), min(page, limit-n)
		var seqs []int64
		var found []semel.Operation
		start := time.Now()
		err := s.read(ctx, func(tx *sql.Tx) (err error) {
			found = nil
			seqs, err = eachOf(ctx, tx, expirable, []any{from, to, before.UnixNano(), most}, func(o semel.Operation, err error) {
				if err == nil { // List shows what cannot be read
					found = append(found, o)
				}
			})
			return err
		})
		if err != nil {
			return n, err
		}
		if !r.again {
			r.took += time.Since(start)
		}
		if len(found) > 0 {
			done, err := s.expireAll(ctx, found, before)
			n += done
			if err != nil {
				return n, err
			}
		}
		r.seq = to
		if len(seqs) == most {
			r.seq = seqs[most-1]
		}
	}
	return n, nil
}

// lastCreated is the last operation that was created before then: rows are in
// the order of their creation.
func (s *Store) lastCreated(ctx context.Context, before time.Time) (last int64, err error) {
	const newest = `
		select coalesce(max(seq), 0)
		from operation`
	const next = `
		select created_at
		from operation
		where seq >= ?
		order by seq
		limit 1`
	err = s.read(ctx, func(tx *sql.Tx) error {
		var high int64
		if _, err := one(ctx, tx, into(&high), newest); err != nil {
			return err
		}
		for last = 0; last < high; {
			middle := high - (high-last)/2
			var created int64
			found, err := one(ctx, tx, into(&created), next, middle)
			if err != nil {
				return err
			}
			if found && created < before.UnixNano() {
				last = middle
			} else {
				high = middle - 1
			}
		}
		return nil
	})
	return last, err
}

// expireAll commits the expiry of all of them together.
func (s *Store) expireAll(ctx context.Context, ops []semel.Operation, before time.Time) (int, error) {
	e := &expiry{}
	for _, o := range ops {
		at := fromNano(s.clock.now())
		ev := semel.Event{Kind: semel.EvExpired, At: at, By: "retention", Reason: "kept until " + before.UTC().Format(time.RFC3339)}
		var token semel.ID
		_, _ = rand.Read(token[:]) // never fails
		c, err := o.Change(ev, token)
		if err != nil {
			return 0, fmt.Errorf("operation %s: %w", o.ID, err)
		}
		w, err := newChange(c)
		if err != nil {
			return 0, err
		}
		e.changes = append(e.changes, w)
	}
	err := s.submit(ctx, e, false)
	return e.done, err
}

// expiry is the work of Expire.
type expiry struct {
	changes []*change
	done    int
}

func (e *expiry) write(w *writer, at int64) error {
	e.done = 0
	for _, c := range e.changes {
		switch err := c.write(w, at); {
		case err == nil:
			e.done++
		case !isAnswer(err):
			return err
		}
	}
	return nil
}

// expire drops the bodies of an operation that has expired.
func (w *writer) expire(id semel.ID) error {
	events, err := w.history(id)
	if err != nil {
		return err
	}
	for seq, text := range events {
		if events[seq], err = stripped(text); err != nil {
			return fmt.Errorf("operation %s: event %d: %w", id, seq, err)
		}
		if seq > 2 && events[seq] != text {
			if err := w.exec(w.stripLog, id[:], seq, events[seq]); err != nil {
				return err
			}
		}
	}
	return w.exec(w.strip, id[:], events[1], events[2])
}

// history reads the events as they are stored, by number.
func (w *writer) history(id semel.ID) (map[int]string, error) {
	rows, err := w.events.QueryContext(context.Background(), id[:])
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	events := map[int]string{}
	for rows.Next() {
		var seq int
		var text string
		if err := rows.Scan(&seq, &text); err != nil {
			return nil, err
		}
		events[seq] = text
	}
	return events, rows.Err()
}

// stripped is the event without the body of its result. The reference stays:
// rebuilding the operation compares it.
func stripped(text string) (string, error) {
	var ev semel.Event
	if err := json.Unmarshal([]byte(text), &ev); err != nil {
		return "", err
	}
	if ev.Result == nil || ev.Result.Body == nil {
		return text, nil
	}
	ev.Result.Body = nil
	b, err := ev.Encode()
	return string(b), err
}
