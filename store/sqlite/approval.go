package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/semel-dev/semel"
)

const (
	insertApproval = `
		insert into approval (id, run, path, digest, scope, key, request, body, ask_of, summary, timeout, valid, state, asked_at, by, reason)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending', ?, '', '')`
	approvalColumns = `seq, id, run, path, digest, scope, key, request, body, ask_of, summary, timeout, valid,
			state, asked_at, by, reason, decided_at, until`
	approvalOfID = `
		select ` + approvalColumns + `
		from approval
		where id = ?`
	// standingApproval finds the one that answers the question, or may yet.
	standingApproval = `
		select id
		from approval
		where run = ?
			and path = ?
			and digest = ?
			and (state = 'pending' or state = 'approved' and (until is null or until > ?))
		order by seq desc
		limit 1`
	decideApproval = `
		update approval
		set state = ?2,
			by = ?3,
			reason = ?4,
			decided_at = ?5,
			until = ?6
		where id = ?1`
)

// question is an approval that is about to be asked for.
type question struct {
	semel.Approval
	request string
}

// newQuestion encodes a, outside the transaction.
func newQuestion(a semel.Approval, run semel.ID, path string, now int64) (*question, error) {
	if a.ID == (semel.ID{}) {
		a.ID = mintID(now)
	}
	if a.Path == "" {
		a.Path = path
	}
	a.Run = run
	request, err := json.Marshal(&a.Request)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return &question{Approval: a, request: string(request)}, nil
}

// ask writes the question, unless it stands already, and returns its ID.
func (q *question) ask(ctx context.Context, s session, at int64) (semel.ID, error) {
	var id []byte
	found, err := one(ctx, s, into(&id), standingApproval, q.Run[:], q.Path, q.Digest, at)
	if err != nil {
		return semel.ID{}, err
	}
	if found {
		return semel.ID(id), nil
	}
	_, err = exec(ctx, s, insertApproval, q.ID[:], q.Run[:], q.Path, q.Digest, string(q.Scope), string(q.Key), q.request, q.Request.Body,
		q.Ask.Of, q.Ask.Summary, int64(q.Ask.Timeout), int64(q.Ask.Valid), at)
	return q.ID, err
}

// approved reports why a claim that names an approval is not covered by it.
func (c *change) approved(w *writer) error {
	if c.Event.Kind != semel.EvClaimed || c.Event.Approval == (semel.ID{}) {
		return nil
	}
	a, _, err := approval(context.Background(), w, c.Event.Approval)
	if err != nil && isAnswer(err) {
		return fmt.Errorf("%w: there is no approval %s", semel.ErrNotApproved, c.Event.Approval)
	}
	if err != nil {
		return err
	}
	if !a.Covers(semel.ApprovalDigest(c.Before.Scope, c.Before.Key, c.Before.Fingerprint), fromNano(c.at)) {
		return fmt.Errorf("%w: approval %s is %s", semel.ErrNotApproved, a.ID, a.State)
	}
	return nil
}

// Approval reads one.
func (s *Store) Approval(ctx context.Context, id semel.ID) (semel.Approval, error) {
	var a semel.Approval
	err := s.read(ctx, func(tx *sql.Tx) (err error) {
		a, _, err = approval(ctx, tx, id)
		return err
	})
	return a, err
}

func approval(ctx context.Context, s session, id semel.ID) (a semel.Approval, seq int64, err error) {
	found, err := one(ctx, s, func(sc scan) (err error) {
		a, seq, err = readApproval(sc)
		return err
	}, approvalOfID, id[:])
	if err == nil && !found {
		err = &answer{"there is no approval " + id.String(), semel.ErrNotFound}
	}
	return a, seq, err
}

func readApproval(sc scan) (a semel.Approval, seq int64, err error) {
	var id, run, body []byte
	var scope, key, request, state string
	var decided, until sql.NullInt64
	var asked int64
	err = sc(&seq, &id, &run, &a.Path, &a.Digest, &scope, &key, &request, &body, &a.Ask.Of, &a.Ask.Summary, &a.Ask.Timeout, &a.Ask.Valid,
		&state, &asked, &a.By, &a.Reason, &decided, &until)
	if err != nil {
		return a, seq, err
	}
	copy(a.ID[:], id)
	copy(a.Run[:], run)
	if err := json.Unmarshal([]byte(request), &a.Request); err != nil {
		return a, seq, fmt.Errorf("approval %s: read request: %w", a.ID, err)
	}
	a.Request.Body = body
	a.Scope, a.Key, a.State = semel.Scope(scope), semel.Key(key), semel.ApprovalState(state)
	a.AskedAt, a.DecidedAt, a.Until = fromNano(asked), timeOf(decided), timeOf(until)
	return a, seq, nil
}

// Approvals lists those of a run, or of all runs, newest first. Like List it
// holds nothing while the caller works.
func (s *Store) Approvals(ctx context.Context, run semel.ID, state semel.ApprovalState) iter.Seq2[semel.Approval, error] {
	return paged(0, func(before int64) ([]semel.Approval, int64, error) {
		where, args := []string{"seq < ?"}, []any{before}
		if run != (semel.ID{}) {
			where, args = append(where, "run = ?"), append(args, run[:])
		}
		switch state {
		case semel.ApprovalPending:
			where = append(where, "state = 'pending'")
		case "":
		default:
			where, args = append(where, "state = ?"), append(args, string(state))
		}
		query := "select " + approvalColumns + " from approval where " + strings.Join(where, " and ") + " order by seq desc limit ?"
		var found []semel.Approval
		var last int64
		err := s.read(ctx, func(tx *sql.Tx) error {
			found = nil
			return each(ctx, tx, func(sc scan) error {
				a, seq, err := readApproval(sc)
				found, last = append(found, a), seq
				return err
			}, query, append(args, page)...)
		})
		return found, last, err
	})
}

// Decide records a decision; see semel.Runs.
func (s *Store) Decide(ctx context.Context, id semel.ID, d semel.Decision) (semel.Approval, error) {
	w := &deciding{Decision: d, id: id}
	if err := s.submit(ctx, w, false); err != nil {
		return semel.Approval{}, err
	}
	return w.approval, nil
}

// deciding is the work of Decide.
type deciding struct {
	semel.Decision
	id       semel.ID
	approval semel.Approval
}

func (d *deciding) write(w *writer, at int64) error {
	ctx := context.Background()
	a, _, err := approval(ctx, w, d.id)
	if err != nil {
		return err
	}
	if a, err = a.Decide(d.Decision, fromNano(at)); err != nil {
		return err
	}
	d.approval = a
	if _, err := exec(ctx, w, decideApproval, d.id[:], string(a.State), a.By, a.Reason, at, nano(a.Until)); err != nil {
		return err
	}
	if d.State == semel.ApprovalRevoked { // the run may be past its wait
		if _, err := exec(ctx, w, wakeRun, a.Run[:], at); err != nil {
			return err
		}
	}
	return wake(ctx, w, d.id, at)
}
