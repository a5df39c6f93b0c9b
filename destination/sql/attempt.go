package sqldest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/semel-dev/semel"
)

// Send runs the statement of s in one transaction, together with its receipt.
// Only a commit that was sent and not answered is lost; before it, whatever
// goes wrong means that nothing happened, and nothing ever will of this
// attempt.
func (d *Database) Send(ctx context.Context, s *semel.Send) semel.Event {
	st, err := d.statement(s)
	if err != nil {
		return refused(s, err)
	}
	limit := d.limit(s)
	ctx, leave, err := d.enter(ctx, limit)
	if err != nil {
		return refused(s, err)
	}
	defer leave()
	if st.Verb == VerbQuery {
		return d.query(ctx, s, st)
	}

	if err := d.backend.ready(ctx); err != nil {
		return refused(s, because(ctx, err))
	}
	tx, err := d.backend.begin(ctx, writing, limit)
	if err != nil {
		return refused(s, because(ctx, err))
	}
	defer tx.abandon()
	if err := s.Begin(); err != nil {
		return refused(s, err)
	}
	mine := receiptOf(s)
	mine.happened = true
	if there, err := claimReceipt(ctx, tx, mine); err != nil {
		return refused(s, because(ctx, err))
	} else if there != nil {
		return replayed(s, there, mine)
	}
	if err := d.perform(ctx, tx, st, mine); err != nil {
		return refused(s, because(ctx, err))
	}
	if err := tx.commit(ctx); err != nil {
		return broken(ctx, s, err)
	}
	return semel.Event{Kind: semel.EvConfirmed, Attempt: s.Attempt, Result: mine.answer()}
}

// claimReceipt makes the transaction the one that acts under mine's key, or
// returns the receipt of the one that did.
func claimReceipt(ctx context.Context, tx transaction, mine *receipt) (*receipt, error) {
	taken, err := tx.take(ctx, mine)
	if err != nil || taken {
		return nil, err
	}
	there, err := tx.find(ctx, mine.key)
	switch {
	case err != nil:
		return nil, err
	case there == nil:
		return nil, errors.New("somebody deleted the receipt just now: try again")
	case there.happened:
		return there, nil
	case there.bars(mine):
		return nil, errors.New("a lookup found that this attempt had not acted, and has barred it since")
	}
	return nil, tx.replace(ctx, mine)
}

// perform runs the statement and completes the receipt.
func (d *Database) perform(ctx context.Context, tx transaction, st *statement, mine *receipt) error {
	t := table{maxRows: d.options.MaxRows}
	err := tx.run(ctx, st, &t)
	if err != nil {
		return err
	}
	if st.Verb == VerbClaim && t.affected > 1 {
		return fmt.Errorf("the claim would change %d rows, and may change one: make its condition name one row", t.affected)
	}
	mine.affected = t.affected
	if mine.result, err = t.answer(st.Verb); err != nil {
		return err
	}
	if err := tx.replace(ctx, mine); err != nil {
		return err
	}
	return ctx.Err() // the commit is not sent in vain
}

// replayed is the evidence of a receipt that was there before the attempt.
func replayed(s *semel.Send, there, mine *receipt) semel.Event {
	if problem := there.conflict(mine); problem != "" {
		return semel.Event{
			Kind: semel.EvLost, Attempt: s.Attempt, Closed: true, Person: true, Reason: problem,
			Incident: problem + "; this attempt changed nothing",
		}
	}
	return semel.Event{
		Kind: semel.EvConfirmed, Attempt: s.Attempt, Result: there.answer(),
		Reason: fmt.Sprintf("attempt %d had done it before", there.attempt),
	}
}

// broken is the evidence of a commit that failed.
func broken(ctx context.Context, s *semel.Send, err error) semel.Event {
	if _, ok := errors.AsType[*lostCommit](err); !ok {
		return refused(s, because(ctx, err))
	}
	return semel.Event{
		Kind: semel.EvLost, Attempt: s.Attempt, Closed: true,
		Reason: plain("the commit was sent and not confirmed: " + because(ctx, err).Error()),
	}
}

// query reads. It changes nothing, so nothing of it can be lost.
func (d *Database) query(ctx context.Context, s *semel.Send, st *statement) semel.Event {
	if ctx.Err() != nil {
		return refused(s, context.Cause(ctx))
	}
	tx, err := d.backend.begin(ctx, reading, d.limit(s))
	if err != nil {
		return refused(s, because(ctx, err))
	}
	defer tx.abandon()
	if err := s.Begin(); err != nil {
		return refused(s, err)
	}
	t := table{maxRows: d.options.MaxRows}
	if err := tx.run(ctx, st, &t); err != nil {
		return refused(s, because(ctx, err))
	}
	body, err := t.answer(st.Verb)
	if err != nil {
		return refused(s, err)
	}
	return semel.Event{Kind: semel.EvConfirmed, Attempt: s.Attempt, Result: &semel.Result{MediaType: "application/json", Body: body}}
}

func refused(s *semel.Send, err error) semel.Event {
	return semel.Event{Kind: semel.EvRefused, Attempt: s.Attempt, Reason: plain("nothing was changed: " + err.Error())}
}

// because adds why a context ended to an error that only says that it did.
func because(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("%w: %w", context.Cause(ctx), err)
}

// plain is text as one line that is safe to store and to show: valid UTF-8, no
// control characters.
func plain(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	return strings.Join(strings.Fields(text), " ")
}
