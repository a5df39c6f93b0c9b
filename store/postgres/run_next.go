package postgres

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel"
)

// nextRun ends an execution; its waits replace the ones before. A run is due at
// once where a wait is over, $12, or where somebody asked it to stop during this
// attempt, which may not know. One that is to be left alone is held.
const nextRun = `
with next as (
  update semel.run as r
  set
    state = case when r.paused_by is not null and not $5::boolean then 'held' else $3::text end,
    reason = case
      when r.paused_by is not null and not $5::boolean and (not $6::boolean or $4::text = '') then 'paused by ' || r.paused_by
      else $4::text end,
    due_at = case
      when $5::boolean then null
      when r.cancel_asked = r.attempt or r.paused_by is not null or $12::timestamptz <= ` + runAt + ` then ` + runAt + `
      when $3::text = 'running' then coalesce($7::timestamptz, ` + runAt + `)
      else $7::timestamptz end,
    paused_by = case when not $5::boolean then r.paused_by end,
    result = $8::bytea,
    done = $9::integer,
    total = $10::integer,
    crashes = 0,
    lease_until = null,
    ended_at = case when $5::boolean then ` + runAt + ` end,
    updated_at = ` + runAt + `
  from (select clock_timestamp() + $11::interval as now) as clock
  where r.id = $1::uuid
    and r.attempt = $2::integer` + held + `
    and (not $6::boolean or case $3::text when 'held' then r.paused_by is not null when 'cancelled' then r.cancel_asked is not null else false end)`

const returningNext = `
  returning r.id, r.updated_at, r.state, r.claimed_by, r.reason, r.paused_by
), gone as (
  delete from semel.wait as w
  using next
  where w.run_id = next.id
)`

const notedNext = `, noted as (
  insert into semel.run_note (run_id, at, kind, by, text)
  select id, updated_at, state, claimed_by, reason
  from next
  where state = 'failed' or state = 'held' and paused_by is null
)`

const answerNext = `
select updated_at, false
from next`

// loneNext is nextRun for a run that nothing hangs on, and loneEnd completes it;
// see nextAlone.
const (
	lone     = "\n    and (not $5::boolean or not r.tied)"
	loneEnd  = nextRun + lone + returningNext + answerNext
	loneNext = nextRun + lone + returningNext + notedNext + waitingNext + answerNext
	tiedNext = nextRun + returningNext + notedNext + waitingNext + answerNext
)

// firstEnd is loneEnd as most runs have it: their first attempt completes them,
// so there are no waits and no crashes before it. It leaves out whatever such
// an end does not need.
const firstEnd = `
update semel.run as r
set
  state = 'completed',
  due_at = null,
  paused_by = null,
  result = $2::bytea,
  done = $3::integer,
  total = $4::integer,
  lease_until = null,
  ended_at = ` + runAt + `,
  updated_at = ` + runAt + `
from (select clock_timestamp() as now) as clock
where r.id = $1::uuid
  and r.attempt = 1` + held + `
  and not r.tied
returning r.updated_at, false`

func nextArgs(f semel.RunFence, n *semel.RunNext, offset time.Duration) []any {
	var first time.Time
	for _, w := range n.Waits {
		if !w.Until.IsZero() && (first.IsZero() || w.Until.Before(first)) {
			first = w.Until
		}
	}
	return []any{
		[16]byte(f.Run), f.Attempt, string(n.State), n.Reason, n.State.Ended(), n.Stopped, instant(n.DueAt), n.Result, n.Done, n.Total, offset,
		instant(first),
	}
}

func known(s semel.RunState) bool {
	switch s {
	case semel.RunRunning, semel.RunWaiting, semel.RunHeld, semel.RunCompleted, semel.RunFailed, semel.RunCancelled:
		return true
	}
	return false
}

// watch locks an operation that a run is about to wait for, and keeps its
// outcome from the short statement that wakes nobody.
const watch = `
update semel.operation
set watched = true
where id = $1::uuid`

// ending is the statements of an end that may share a transaction with others,
// and the operations to watch before it.
func (s *Store) ending(f semel.RunFence, n *semel.RunNext) (watched []semel.ID, statements []statement) {
	offset := s.offset()
	if n.State == semel.RunCompleted && f.Attempt == 1 && n.Reason == "" && !n.Stopped && offset == 0 {
		return nil, []statement{{sql: firstEnd, args: []any{[16]byte(f.Run), n.Result, n.Done, n.Total}}}
	}
	next := statement{sql: loneEnd, args: nextArgs(f, n, offset)}
	if n.State == semel.RunCompleted {
		return nil, []statement{next}
	}
	var waits []semel.RunWait
	if !n.State.Ended() {
		waits = n.Waits
	}
	next.sql, next.args = loneNext, append(next.args, waitArgs(waits)...)
	statements = []statement{next}
	for _, w := range waits {
		if w.Kind == semel.WaitOperation {
			watched = append(watched, w.Target)
		}
	}
	if len(watched) > 0 {
		statements = append(statements, statement{sql: lookAgain, args: []any{[16]byte(f.Run), f.Attempt, offset}, exec: true})
	}
	return watched, statements
}

// alone reports whether an end needs a transaction of its own, because it locks
// what it waits for.
func alone(n *semel.RunNext) bool {
	return slices.ContainsFunc(n.Waits, func(w semel.RunWait) bool {
		return w.Kind == semel.WaitEvent || w.Kind == semel.WaitApproval || w.Kind == semel.WaitRun
	})
}

// nextAlone ends an execution that something hangs on. Whoever changes what it
// waits for takes the same lock and looks for waits in a later statement, so
// that one of the two sees the other. What is locked goes before the run.
func (s *Store) nextAlone(ctx context.Context, f semel.RunFence, n semel.RunNext) error {
	n.Waits = slices.Clone(n.Waits)
	if n.State.Ended() {
		n.Waits = nil
	}
	return s.transact(ctx, "end the execution of run "+f.Run.String(), func(tx pgx.Tx, _ bool) error {
		if err := s.lockWaits(ctx, tx, f, n.Waits); err != nil {
			return err
		}
		if n.State.Ended() {
			if err := lockPending(ctx, tx, f.Run); err != nil {
				return err
			}
		}
		var at time.Time
		var flag bool
		err := tx.QueryRow(ctx, tiedNext, append(nextArgs(f, &n, s.offset()), waitArgs(n.Waits)...)...).Scan(&at, &flag)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return s.notEnded(ctx, tx, f, &n)
		case err != nil:
			return err
		}
		s.clock.seen(at)
		if n.State.Ended() {
			return s.release(ctx, tx, f.Run)
		}
		return s.suspend(ctx, tx, f, n.Waits, at)
	})
}

// suspend asks for what a run waits for and looks whether a wait is over already.
func (s *Store) suspend(ctx context.Context, tx pgx.Tx, f semel.RunFence, waits []semel.RunWait, at time.Time) error {
	const tie = `
update semel.run
set tied = true
where id = $1::uuid
  and not tied`
	var batch pgx.Batch
	for i := range waits {
		if waits[i].Kind == semel.WaitApproval && waits[i].Approval != nil {
			args, err := askArgs(f, &waits[i], at)
			if err != nil {
				return &verdict{err}
			}
			batch.Queue(insertApproval, args...)
		}
	}
	if slices.ContainsFunc(waits, func(w semel.RunWait) bool { return w.Kind == semel.WaitApproval }) {
		batch.Queue(tie, [16]byte(f.Run))
	}
	batch.Queue(lookAgain, [16]byte(f.Run), f.Attempt, s.offset())
	return sendAll(ctx, tx, &batch)
}

// release lets go of what hangs on a run that has ended.
func (s *Store) release(ctx context.Context, tx pgx.Tx, run semel.ID) error {
	const update = `
update semel.approval
set state = 'closed'
where run_id = $1::uuid
  and state = 'pending'`
	if _, err := tx.Exec(ctx, update, [16]byte(run)); err != nil {
		return err
	}
	return s.wake(ctx, tx, semel.WaitRun, run)
}

// notEnded says why an execution could not end; nil if it did before.
func (s *Store) notEnded(ctx context.Context, tx pgx.Tx, f semel.RunFence, n *semel.RunNext) error {
	r, err := lockRun(ctx, tx, f.Run)
	if errors.Is(err, semel.ErrNotFound) {
		return &verdict{&lostError{f}}
	}
	if err != nil {
		return err
	}
	if err := ended(&r, f, n); err != nil {
		return &verdict{err}
	}
	return nil
}

// ended tells an own earlier end from a lost fence. Only the worker that holds
// an attempt ends its lease without a new attempt.
func ended(r *semel.Run, f semel.RunFence, n *semel.RunNext) error {
	switch {
	case holds(r, f):
		return fmt.Errorf("run %s: nobody asks it to stop any more: %w", f.Run, semel.ErrStale)
	case r.Attempt == f.Attempt && r.LeaseUntil.IsZero() && (r.State == n.State || r.Paused && !n.State.Ended()):
		return nil
	}
	return &lostError{f}
}

// lockWaits locks what the waits are for, and creates what they ask for; see
// order.go. A run that is waited for already is kept from ending, and no more.
func (s *Store) lockWaits(ctx context.Context, tx pgx.Tx, f semel.RunFence, waits []semel.RunWait) error {
	const lockApproval = `
select from semel.approval
where id = $1::uuid
for no key update`
	const tie = `
update semel.run
set tied = true
where id = $1::uuid
  and not tied`
	const keep = `
select from semel.run
where id = $1::uuid
for share`
	if err := lockEvents(ctx, tx, waits); err != nil {
		return err
	}
	var operations, approvals, runs []*semel.RunWait
	for i := range waits {
		w := &waits[i]
		switch w.Kind {
		case semel.WaitOperation:
			operations = append(operations, w)
		case semel.WaitApproval:
			if err := s.standing(ctx, tx, f, w); err != nil {
				return err
			}
			approvals = append(approvals, w)
		case semel.WaitRun:
			runs = append(runs, w)
		case semel.WaitTime, semel.WaitEvent, semel.WaitPerson:
		}
	}
	oldestFirst := func(a, b *semel.RunWait) int { return newestFirst(b.Target, a.Target) }
	slices.SortFunc(operations, oldestFirst)
	slices.SortFunc(approvals, oldestFirst)
	var first, then pgx.Batch
	for _, w := range operations {
		first.Queue(watch, [16]byte(w.Target))
	}
	for _, w := range approvals {
		first.Queue(lockApproval, [16]byte(w.Target))
	}
	if err := sendAll(ctx, tx, &first); err != nil {
		return err
	}
	slices.SortFunc(runs, byChild)
	for _, w := range runs {
		if err := s.startChild(ctx, tx, f, w); err != nil {
			return err
		}
	}
	slices.SortFunc(runs, func(a, b *semel.RunWait) int { return newestFirst(a.Target, b.Target) })
	for _, w := range runs {
		then.Queue(tie, [16]byte(w.Target))
		then.Queue(keep, [16]byte(w.Target))
	}
	return sendAll(ctx, tx, &then)
}

func sendAll(ctx context.Context, tx pgx.Tx, batch *pgx.Batch) error {
	if batch.Len() == 0 {
		return nil
	}
	return tx.SendBatch(ctx, batch).Close()
}

// byChild compares waits by what they start, if anything.
func byChild(a, b *semel.RunWait) int {
	var none semel.NewRun
	n, m := cmp.Or(a.Child, &none), cmp.Or(b.Child, &none)
	return cmp.Or(cmp.Compare(n.Workflow, m.Workflow), cmp.Compare(n.Key, m.Key))
}

// startChild starts the run that w waits for, unless there is one.
func (s *Store) startChild(ctx context.Context, tx pgx.Tx, f semel.RunFence, w *semel.RunWait) error {
	if w.Child == nil {
		return nil
	}
	n := *w.Child
	if n.Parent == (semel.ID{}) {
		n.Parent, n.ParentStep = f.Run, w.Path
	}
	n.Trigger.Kind = cmp.Or(n.Trigger.Kind, semel.ByRun)
	b, err := s.begin(n, nil)
	if err != nil {
		return &verdict{err}
	}
	child, existing, err := start(ctx, tx, b, s.offset())
	if err != nil {
		return err
	}
	if existing && child.Fingerprint != b.fingerprint {
		return &verdict{&semel.RunConflictError{Run: child, Fields: child.DiffInput(b.Input)}}
	}
	w.Target = child.ID
	return nil
}

// lockEvents waits for senders of the events, and makes them wait.
func lockEvents(ctx context.Context, tx pgx.Tx, waits []semel.RunWait) error {
	var locks []int64
	for _, w := range waits {
		if w.Kind == semel.WaitEvent {
			locks = append(locks, eventLock(w.Event, w.Match))
		}
	}
	slices.Sort(locks)
	for _, lock := range slices.Compact(locks) {
		if err := advisory(ctx, tx, lock); err != nil {
			return err
		}
	}
	return nil
}

func advisory(ctx context.Context, tx pgx.Tx, lock int64) error {
	_, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1::bigint)`, lock)
	return err
}

func eventLock(name, match string) int64 {
	h := fnv.New64a()
	_, _ = h.Write(binary.AppendUvarint([]byte("semel event "), uint64(len(name))))
	_, _ = h.Write([]byte(name + match))
	return int64(h.Sum64()) //nolint:gosec // any 64 bits do
}
