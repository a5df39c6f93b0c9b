package sqldest

import (
	"context"
	"errors"

	"github.com/semel-dev/semel"
)

// Look reads the receipt. EvFound is conclusive. EvAbsent is too, since Look
// rules out what it did not find: in a transaction of its own it puts a bar in
// the place of the receipt, committed before it says so, and no attempt up to
// the one it was asked about can commit an effect behind a bar. An attempt
// whose transaction holds the key is waited for.
//
// A bar is written only for an operation whose outcome is unknown; for any
// other Look reads, and what is not there is no answer. It never touches the
// user's own tables.
func (d *Database) Look(ctx context.Context, s *semel.Send) semel.Event {
	st, err := d.statement(s)
	if err != nil {
		return noAnswer(err)
	}
	if st.Verb == VerbQuery {
		return noAnswer(errors.New("a query leaves no receipt"))
	}
	ctx, leave, err := d.enter(ctx, d.options.Timeout)
	if err != nil {
		return noAnswer(err)
	}
	defer leave()
	mine := receiptOf(s)
	if s.Operation.State != semel.Unknown {
		return d.peek(ctx, mine)
	}
	if err := d.backend.ready(ctx); err != nil {
		return noAnswer(because(ctx, err))
	}
	tx, err := d.backend.begin(ctx, writing, d.options.Timeout)
	if err != nil {
		return noAnswer(because(ctx, err))
	}
	defer tx.abandon()
	there, err := bar(ctx, tx, mine)
	switch {
	case err != nil:
		return noAnswer(because(ctx, err))
	case there != nil:
		return found(there, mine)
	}
	if err := tx.commit(ctx); err != nil {
		return noAnswer(because(ctx, err))
	}
	return semel.Event{Kind: semel.EvAbsent, Reason: "there is no receipt, and no attempt so far can leave one any more"}
}

// bar rules out the attempts up to mine's, or returns the receipt of the one
// that acted.
func bar(ctx context.Context, tx transaction, mine *receipt) (*receipt, error) {
	taken, err := tx.take(ctx, mine)
	if err != nil || taken {
		return nil, err
	}
	there, err := tx.find(ctx, mine.key)
	switch {
	case err != nil:
		return nil, err
	case there == nil:
		return nil, errors.New("somebody deleted the receipt just now")
	case there.happened:
		return there, nil
	case there.bars(mine):
		return nil, nil
	}
	return nil, tx.replace(ctx, mine)
}

// peek reads the receipt and rules out nothing.
func (d *Database) peek(ctx context.Context, mine *receipt) semel.Event {
	tx, err := d.backend.begin(ctx, reading, d.options.Timeout)
	if err != nil {
		return noAnswer(because(ctx, err))
	}
	defer tx.abandon()
	there, err := tx.find(ctx, mine.key)
	switch {
	case err != nil:
		return noAnswer(because(ctx, err))
	case there == nil || !there.happened:
		return noAnswer(errors.New("there is no receipt, which proves nothing while an attempt may be running"))
	}
	return found(there, mine)
}

func found(there, mine *receipt) semel.Event {
	if problem := there.conflict(mine); problem != "" {
		return semel.Event{Kind: semel.EvNoAnswer, Person: true, Reason: plain(problem)}
	}
	return semel.Event{Kind: semel.EvFound, Reason: "the receipt is there", Result: there.answer()}
}

func noAnswer(err error) semel.Event {
	return semel.Event{Kind: semel.EvNoAnswer, Reason: plain("the receipt could not be looked up: " + err.Error())}
}
