package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/semel-dev/semel"
)

const (
	insertWait = `
		insert into wait (run, path, kind, until, event, match, target, version, person, since, reason)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	selectWaits = `
		select path, kind, until, event, match, target, version, person, since, reason
		from wait
		where run = ?
		order by seq`
	newerOperation = `
		select 1
		from operation
		where id = ?
			and version > ?`
	decidedApproval = `
		select 1
		from approval
		where id = ?
			and state <> 'pending'`
	endedRun = `
		select 1
		from run
		where id = ?
			and ended_at is not null`
)

// waiting is a wait that is about to be written.
type waiting struct {
	semel.RunWait
	child *birth
	asked *question
}

// newWaiting encodes wt, outside the transaction.
func newWaiting(wt semel.RunWait, run semel.ID, now int64) (*waiting, error) {
	w := &waiting{RunWait: wt}
	var err error
	switch {
	case wt.Kind == semel.WaitRun && wt.Child != nil:
		n := *wt.Child
		if n.Parent == (semel.ID{}) {
			n.Parent, n.ParentStep = run, wt.Path
		}
		if n.Trigger.Kind == "" {
			n.Trigger.Kind = semel.ByRun
		}
		w.child, err = newBirth(n, now)
	case wt.Kind == semel.WaitApproval && wt.Approval != nil:
		w.asked, err = newQuestion(*wt.Approval, run, wt.Path, now)
	}
	return w, err
}

// begin writes the wait, with what it asks for or starts, and reports whether
// it is over already.
func (w *waiting) begin(ctx context.Context, s *writer, h *holding, at int64) (over bool, err error) {
	target := w.Target
	switch {
	case w.child != nil:
		if err := w.child.insert(ctx, s, at); err != nil {
			return false, err
		}
		if w.child.run.Fingerprint != w.child.fingerprint {
			return false, &semel.RunConflictError{Run: w.child.run, Fields: w.child.run.DiffInput(w.child.Input)}
		}
		target = w.child.run.ID
	case w.asked != nil:
		if target, err = w.asked.ask(ctx, s, at); err != nil {
			return false, err
		}
	}
	var event, match any
	if w.Kind == semel.WaitEvent {
		event, match = w.Event, w.Match
	}
	since := at
	if !w.Since.IsZero() {
		since = w.Since.UnixNano()
	}
	_, err = exec(ctx, s, insertWait, h.Run[:], w.Path, string(w.Kind), nano(w.Until), event, match, blob(target), w.Version, w.Person, since, w.Reason)
	if err != nil {
		return false, err
	}
	s.awaited = true
	if !w.Until.IsZero() && !w.Until.After(fromNano(at)) {
		return true, nil
	}
	switch w.Kind {
	case semel.WaitEvent:
		_, over, err = nextEvent(ctx, s, semel.EventClaim{Workflow: h.workflow, Name: w.Event, Match: w.Match, Until: w.Until})
	case semel.WaitOperation:
		over, err = exists(ctx, s, newerOperation, target[:], w.Version)
	case semel.WaitApproval:
		over, err = exists(ctx, s, decidedApproval, target[:])
	case semel.WaitRun:
		over, err = exists(ctx, s, endedRun, target[:])
	case semel.WaitTime, semel.WaitPerson:
		// only a clock or a person ends them
	}
	return over, err
}

// Waits reads what a run waits for.
func (s *Store) Waits(ctx context.Context, run semel.ID) ([]semel.RunWait, error) {
	var waits []semel.RunWait
	err := s.read(ctx, func(tx *sql.Tx) (err error) {
		waits, err = waitsOf(ctx, tx, run)
		return err
	})
	return waits, err
}

func waitsOf(ctx context.Context, tx *sql.Tx, run semel.ID) ([]semel.RunWait, error) {
	var waits []semel.RunWait
	err := each(ctx, tx, func(sc scan) error {
		var w semel.RunWait
		var kind string
		var event, match sql.NullString
		var until sql.NullInt64
		var target []byte
		var since int64
		if err := sc(&w.Path, &kind, &until, &event, &match, &target, &w.Version, &w.Person, &since, &w.Reason); err != nil {
			return fmt.Errorf("run %s: read wait: %w", run, err)
		}
		copy(w.Target[:], target)
		w.Kind, w.Until, w.Event, w.Match, w.Since = semel.WaitKind(kind), timeOf(until), event.String, match.String, fromNano(since)
		waits = append(waits, w)
		return nil
	}, selectWaits, run[:])
	return waits, err
}
