package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/semel-dev/semel"
)

const (
	insertEvent = `
		insert into event (id, name, match, data, by, at, delivered)
		values (?, ?, ?, ?, ?, ?, ?)
		on conflict do nothing
		returning seq`
	eventColumns      = `seq, id, name, match, data, by, at, delivered`
	undeliveredEvents = `
		select ` + eventColumns + `
		from event indexed by event_undelivered
		where not delivered
		order by seq
		limit ?`
	deliveredEvent = `
		update event
		set delivered = 1
		where seq = ?`
	wakeForEvent = `
		update run
		set due_at = min(coalesce(due_at, ?3), ?3)
		where id in (select run from wait where event = ?1 and match = ?2)
			and lease_until is null
			and ended_at is null`
	subscribers = `
		select w.name, w.version, w.digest
		from subscription s
		join workflow w on w.name = s.workflow
		where s.event = ?
		order by w.name`
	insertStarted = `
		insert into started (event, run)
		values (?, ?)
		on conflict do nothing`
	// oldestEvent finds the first that no run of the workflow took.
	oldestEvent = `
		select ` + eventColumns + `
		from event
		where name = ?1
			and match = ?2
			and at <= ?4
			and not exists (select 1 from taken where event = event.seq and workflow = ?3)
		order by at, seq
		limit 1`
	insertTaken = `
		insert into taken (event, workflow, run, step)
		values (?, ?, ?, ?)`
)

// Send makes an event durable, and wakes and starts runs; see semel.Runs.
func (s *Store) Send(ctx context.Context, e semel.InboxEvent) (bool, error) {
	if err := e.Validate(); err != nil {
		return false, err
	}
	w := &sending{event: e}
	if err := s.submit(ctx, w, false); err != nil {
		return false, err
	}
	return w.existing, nil
}

// sending is the work of Send.
type sending struct {
	event    semel.InboxEvent
	existing bool
}

func (s *sending) write(w *writer, at int64) error {
	ctx := context.Background()
	seq, err := insertInto(ctx, w, s.event, at, true)
	s.existing = err == nil && seq == 0
	if err != nil || s.existing {
		return err
	}
	s.event.At = fromNano(at)
	return deliver(ctx, w, inboxRow{seq: seq, InboxEvent: s.event}, at)
}

// insertInto writes the event and returns its number, 0 where it exists.
func insertInto(ctx context.Context, s session, e semel.InboxEvent, at int64, delivered bool) (seq int64, err error) {
	_, err = one(ctx, s, into(&seq), insertEvent, e.ID, e.Name, e.Match, text(e.Data), e.By, at, delivered)
	return seq, err
}

// Deliver wakes and starts runs for events that were sent inside a caller's
// transaction; see semel.Runs. Where there are none it writes nothing.
func (s *Store) Deliver(ctx context.Context, limit int) (int, error) {
	var found []inboxRow
	err := s.read(ctx, func(tx *sql.Tx) (err error) {
		found, err = readInbox(ctx, tx, undeliveredEvents, 1)
		return err
	})
	if err != nil || len(found) == 0 {
		return 0, err
	}
	w := &delivery{limit: limit}
	err = s.submit(ctx, w, false)
	return w.done, err
}

// delivery is the work of Deliver.
type delivery struct{ limit, done int }

func (d *delivery) write(w *writer, at int64) error {
	ctx := context.Background()
	d.done = 0
	events, err := readInbox(ctx, w, undeliveredEvents, d.limit)
	if err != nil {
		return err
	}
	for _, e := range events {
		if err := deliver(ctx, w, e, at); err != nil {
			return err
		}
		if _, err := exec(ctx, w, deliveredEvent, e.seq); err != nil {
			return err
		}
		d.done++
	}
	return nil
}

// deliver wakes the runs that wait for the event and starts those that it
// triggers.
func deliver(ctx context.Context, s session, e inboxRow, at int64) error {
	if _, err := exec(ctx, s, wakeForEvent, e.Name, e.Match, at); err != nil {
		return err
	}
	var all []semel.NewRun
	err := each(ctx, s, func(sc scan) error {
		n := semel.NewRun{Key: semel.EventKey(&e.InboxEvent), Input: e.Data, Trigger: semel.Trigger{Kind: semel.ByEvent, Event: &e.InboxEvent}}
		err := sc(&n.Workflow, &n.Version, &n.Definition)
		all = append(all, n)
		return err
	}, subscribers, e.Name)
	if err != nil {
		return err
	}
	for _, n := range all {
		b, err := newBirth(n, at)
		if err != nil {
			return fmt.Errorf("event %s %q starts %s: %v", e.Name, e.ID, n.Workflow, err) //nolint:errorlint // not an answer: the transaction fails
		}
		if err := b.insert(ctx, s, at); err != nil {
			return err
		}
		if !b.inserted {
			continue
		}
		if _, err := exec(ctx, s, insertStarted, e.seq, b.ID[:]); err != nil {
			return err
		}
	}
	return nil
}

// TakeEvent gives the oldest event to a step; see semel.Runs.
func (s *Store) TakeEvent(ctx context.Context, c semel.EventClaim) (semel.StepRecord, error) {
	w := &taking{EventClaim: c}
	if err := s.submit(ctx, w, false); err != nil {
		return semel.StepRecord{}, err
	}
	return w.record, nil
}

// taking is the work of TakeEvent.
type taking struct {
	semel.EventClaim
	record semel.StepRecord
}

func (t *taking) write(w *writer, at int64) error {
	ctx := context.Background()
	if _, err := hold(ctx, w, t.RunFence); err != nil {
		return err
	}
	recorded, err := one(ctx, w, func(sc scan) (err error) {
		t.record, err = readStep(sc)
		return err
	}, stepOfPath, t.Run[:], t.Path)
	if err != nil || recorded {
		return err
	}
	t.record = semel.StepRecord{Path: t.Path, Kind: semel.StepEvent, What: t.Name + " " + t.Match, At: fromNano(at)}
	e, found, err := nextEvent(ctx, w, t.EventClaim)
	switch {
	case err != nil:
		return err
	case found:
		if t.record.Result, err = json.Marshal(e.InboxEvent); err != nil {
			return fmt.Errorf("encode event: %w", err)
		}
		t.record.Outcome = semel.StepCompleted
		if _, err := exec(ctx, w, insertTaken, e.seq, t.Workflow, t.Run[:], t.Path); err != nil {
			return err
		}
	case t.Until.IsZero() || t.Until.After(fromNano(at)):
		return &answer{fmt.Sprintf("there is no event %s %q for %s", t.Name, t.Match, t.Workflow), semel.ErrNotFound}
	default:
		t.record.Outcome = semel.StepTimedOut
	}
	return writeStep(ctx, w, t.Run, &t.record, at)
}

// nextEvent finds the event that c would get now.
func nextEvent(ctx context.Context, s session, c semel.EventClaim) (inboxRow, bool, error) {
	until := any(int64(never))
	if !c.Until.IsZero() {
		until = nano(c.Until)
	}
	var e inboxRow
	found, err := one(ctx, s, func(sc scan) (err error) {
		e, err = readEvent(sc)
		return err
	}, oldestEvent, c.Name, c.Match, c.Workflow, until)
	return e, found, err
}
