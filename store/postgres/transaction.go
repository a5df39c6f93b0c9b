package postgres

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel"
)

// StartTx starts a run inside the caller's transaction: it is there if that
// commits, and is not if it does not. Neither a store nor a worker is needed in
// this process. existing: the run with its workflow and key, as it is.
//
// Whoever starts the same run meanwhile waits for that transaction, so it should
// be short, and start several in the order of workflow and key: two that wait
// for each other stand still until the server ends one of them.
func StartTx(ctx context.Context, tx pgx.Tx, n semel.NewRun) (r semel.Run, existing bool, err error) {
	return startTx(func(sql string, args ...any) scanner { return tx.QueryRow(ctx, sql, args...) }, n, pgx.ErrNoRows)
}

// StartSQLTx is StartTx for a transaction of database/sql, with any driver for
// PostgreSQL.
func StartSQLTx(ctx context.Context, tx *sql.Tx, n semel.NewRun) (r semel.Run, existing bool, err error) {
	return startTx(func(query string, args ...any) scanner { return tx.QueryRowContext(ctx, query, args...) }, n, sql.ErrNoRows)
}

// SendTx sends an event inside the caller's transaction. A worker delivers it
// after the commit; see Store.Deliver. Sending one ID twice is one event.
func SendTx(ctx context.Context, tx pgx.Tx, e semel.InboxEvent) error {
	return sendTx(func(sql string, args ...any) scanner { return tx.QueryRow(ctx, sql, args...) }, e, pgx.ErrNoRows)
}

// SendSQLTx is SendTx for a transaction of database/sql.
func SendSQLTx(ctx context.Context, tx *sql.Tx, e semel.InboxEvent) error {
	return sendTx(func(query string, args ...any) scanner { return tx.QueryRowContext(ctx, query, args...) }, e, sql.ErrNoRows)
}

func startTx(row func(string, ...any) scanner, n semel.NewRun, none error) (semel.Run, bool, error) {
	if n.ID == (semel.ID{}) {
		n.ID = mint(time.Now())
	}
	if n.Trigger.Kind == "" {
		n.Trigger.Kind = semel.ByTransaction
	}
	b, err := begin(n, nil)
	if err != nil {
		return semel.Run{}, false, err
	}
	offset, err := ahead(row)
	if err != nil {
		return semel.Run{}, false, unavailable("start "+b.Workflow, err)
	}
	r, existing, err := startIn(row, b, offset, none)
	if v, ok := errors.AsType[*verdict](err); ok {
		return semel.Run{}, false, v.error
	}
	if err != nil {
		return semel.Run{}, false, unavailable("start "+b.Workflow, err)
	}
	return r, existing, nil
}

func sendTx(row func(string, ...any) scanner, e semel.InboxEvent, none error) error {
	if err := e.Validate(); err != nil {
		return err
	}
	offset, err := ahead(row)
	if err != nil {
		return unavailable("send event "+e.Name, err)
	}
	var at time.Time
	var flag bool
	err = row(insertEvent, eventArgs(mint(time.Now()), &e, false, offset)...).Scan(&at, &flag)
	if err != nil && !errors.Is(err, none) {
		return unavailable("send event "+e.Name, err)
	}
	return nil
}

// ahead is how far the store's clock is ahead of the database's.
func ahead(row func(string, ...any) scanner) (time.Duration, error) {
	const query = `
select (extract(epoch from ahead) * 1000000)::bigint
from semel.store`
	var micros int64
	err := row(query).Scan(&micros)
	return time.Duration(micros) * time.Microsecond, err
}
