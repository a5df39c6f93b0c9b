package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/semel-dev/semel"
)

// never is the due time of what waits for a person.
const never = math.MaxInt64

// keepLease tells updateOperation that the operation stays due when its lease,
// which may have been renewed meanwhile, ends.
const keepLease = -1

const (
	insertOperation = `
		insert into operation (id, scope, key, fingerprint, request, body, contract,
			state, version, attempt, lease_until, cancel, incident, expired, due_at, created_at, updated_at, first, run_id, step)
		values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 1, ?9, ?10, 0, 0, 0, ?10, ?11, ?11, ?12, ?13, ?14)
		on conflict do nothing`
	existingOperation = `
		select id, created_at
		from operation
		where scope = ? and key = ?`
	setOperation = `
		update operation
		set state = ?3,
			version = ?2 + 1,
			attempt = ?4,
			lease_until = coalesce(?5, lease_until),
			cancel = ?6,
			incident = ?7,
			expired = ?8,
			due_at = case ?9 when -1 then lease_until else ?9 end,
			updated_at = ?10`
	whereUnchanged = `
		where id = ?1
			and version = ?2
			and lease_until <= ?11`
	updateWithSecond = setOperation + `,
			second_at = ?10,
			second_token = ?12,
			second = ?13` + whereUnchanged
	updateOperation = setOperation + whereUnchanged
	insertEvidence  = `
		insert into evidence (operation, seq, at, token, event)
		values (?, ?, ?, ?, ?)`
	tokenOfSecond = `
		select second_token, second_at
		from operation
		where id = ?`
	tokenOfLater = `
		select o.id, e.token, e.at
		from operation o
		left join evidence e on e.operation = o.id and e.seq = ?2
		where o.id = ?1`
)

// Commit makes one change durable; see semel.Store.
func (s *Store) Commit(ctx context.Context, c semel.Change) (semel.Operation, error) {
	w, err := newChange(c)
	if err != nil {
		return semel.Operation{}, err
	}
	if err := s.submit(ctx, w, c.Event.Kind == semel.EvClaimed); err != nil {
		return semel.Operation{}, err
	}
	return w.answer(), nil
}

// change is the work of Commit.
type change struct {
	semel.Change
	event  string
	record semel.Record // for a first claim

	at    int64           // when it was committed, now or by an earlier call
	after semel.Operation // when it was committed now
}

// newChange encodes c, outside the transaction.
func newChange(c semel.Change) (*change, error) {
	if c.Event.Kind == semel.EvExpired && c.Before.Incident != "" {
		return nil, &semel.InputError{Field: "operation " + c.Before.ID.String(), Problem: "has an open incident and never expires", Hint: "close the incident first"}
	}
	event, err := c.Event.Encode()
	if err != nil {
		return nil, err
	}
	w := &change{Change: c, event: string(event)}
	if c.Before.Version > 0 {
		return w, nil
	}
	if err := errors.Join(c.Before.Scope.Validate(), c.Before.Key.Validate()); err != nil {
		return nil, err
	}
	w.record, err = c.After.Record()
	return w, err
}

// answer is the operation after a write that succeeded.
func (c *change) answer() semel.Operation {
	if c.after.UpdatedAt.IsZero() {
		return c.Stamped(fromNano(c.at))
	}
	return c.after
}

func (c *change) write(w *writer, now int64) error {
	c.at, c.after = now, semel.Operation{} // an earlier transaction may have been rolled back
	ev := c.Event
	ev.At = fromNano(c.at)
	after, err := c.Before.Apply(ev)
	if err != nil || after.State != c.After.State {
		return fmt.Errorf("%w: at the store's time it no longer holds", semel.ErrStale)
	}
	if err := c.approved(w); err != nil {
		return c.refused(w, err)
	}
	if c.Before.Version == 0 {
		return c.claim(w, after)
	}
	return c.update(w, after)
}

// refused answers a change that must not be made any more: an earlier call may
// have made it.
func (c *change) refused(w *writer, why error) error {
	c.after = semel.Operation{}
	var err error
	if c.Before.Version == 0 {
		err = c.taken(w)
	} else {
		err = c.told(w, c.Before.Version+1)
	}
	if err != nil && isAnswer(err) {
		return why
	}
	return err
}

// claim writes a new operation.
func (c *change) claim(w *writer, after semel.Operation) error {
	r := &c.record
	done, err := w.changed(w.insert, r.ID[:], string(r.Scope), string(r.Key), r.Fingerprint, string(r.Request), r.Body, string(r.Contract),
		string(after.State), after.Attempt, after.LeaseUntil.UnixNano(), c.at, c.event, blob(r.Run), nonEmpty(r.Step))
	if err != nil || done {
		c.after = after
		return err
	}
	return c.taken(w)
}

// taken answers a claim whose identity exists: it may be one's own, repeated.
func (c *change) taken(w *writer) error {
	r := &c.record
	var id []byte
	var at int64
	switch err := w.row(w.existing, string(r.Scope), string(r.Key)).Scan(&id, &at); {
	case errors.Is(err, sql.ErrNoRows):
		return &semel.InputError{Field: "operation id", Problem: r.ID.String() + " belongs to another key", Hint: "mint a new one"}
	case err != nil:
		return err
	case string(id) != string(r.ID[:]):
		return fmt.Errorf("%w: the key is taken", semel.ErrStale)
	}
	c.at = at // an earlier call committed it
	return nil
}

// update appends an event to an operation that is still as it was read.
func (c *change) update(w *writer, after semel.Operation) error {
	id, seq := c.Before.ID, c.Before.Version+1
	notAfter := int64(math.MaxInt64) // the lease must have ended by then
	if c.Event.Kind == semel.EvLapsed {
		notAfter = c.at
	}
	args := []any{
		id[:], c.Before.Version, string(after.State), after.Attempt, newLease(&after, c.Event.Kind), after.Cancel, after.Incident != "",
		after.Expired, due(&after, c.Event.Kind), c.at, notAfter,
	}
	stmt := w.later
	if seq == 2 {
		stmt = w.second
		args = append(args, c.Token[:], c.event)
	}
	done, err := w.changed(stmt, args...)
	if err != nil {
		return err
	}
	if !done {
		return c.told(w, seq)
	}
	if seq > 2 {
		if err := w.exec(w.append, id[:], seq, c.at, c.Token[:], c.event); err != nil {
			return err
		}
	}
	c.after = after
	if w.awaited {
		if err := wake(context.Background(), w, id, c.at); err != nil {
			return err
		}
	}
	if c.Event.Kind == semel.EvExpired {
		return w.expire(id)
	}
	return nil
}

// told answers a change that came too late: it may be one's own, repeated.
func (c *change) told(w *writer, seq int) error {
	id := c.Before.ID
	var token []byte
	var at sql.NullInt64
	var err error
	if seq == 2 {
		err = w.row(w.toldSecond, id[:]).Scan(&token, &at)
	} else {
		var found []byte
		err = w.row(w.toldLater, id[:], seq).Scan(&found, &token, &at)
	}
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("%w: %s", semel.ErrNotFound, id)
	case err != nil:
		return err
	case string(token) != string(c.Token[:]):
		return semel.ErrStale
	}
	c.at = at.Int64
	return nil
}

// newLease is the lease that a claim sets; another event leaves it alone.
func newLease(o *semel.Operation, kind semel.EventKind) any {
	if kind == semel.EvClaimed {
		return o.LeaseUntil.UnixNano()
	}
	return nil
}

// due is when recovery or a person should look at the operation: the column
// due_at.
func due(o *semel.Operation, kind semel.EventKind) any {
	switch {
	case o.State == semel.InProgress && kind == semel.EvClaimed:
		return o.LeaseUntil.UnixNano()
	case o.State == semel.InProgress:
		return int64(keepLease)
	case o.Incident != "":
		return int64(never)
	case o.State == semel.Unknown:
		return checkAt(o.CheckAt)
	}
	return nil
}

func checkAt(t time.Time) int64 {
	if t.IsZero() {
		return never
	}
	return t.UnixNano()
}
