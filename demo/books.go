package demo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	_ "modernc.org/sqlite" // the driver
)

// books are the biller's own database: what is due, and what was paid. The
// workflow reads and writes it as the connection ledger.
type books struct{ db *sql.DB }

// openBooks opens them, and writes down what is due. Twice is as good as once.
func openBooks(ctx context.Context, path string, due []invoice) (_ *books, err error) {
	schema, err := billingFiles.ReadFile("billing/ledger.sql")
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return nil, fmt.Errorf("open the books: %w", err)
	}
	db.SetMaxOpenConns(1)
	b := &books{db}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("write down what is due in %s: %w", path, err), b.close())
		}
	}()
	if _, err := db.ExecContext(ctx, "pragma busy_timeout = 10000; pragma journal_mode = wal;"+string(schema)); err != nil {
		return nil, err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // nothing after a commit
	for _, i := range due {
		method := "card"
		if i.Transfer {
			method = "transfer"
		}
		if _, err := tx.ExecContext(ctx, `
			insert into invoice (id, customer, amount, currency, due, method, item)
			values (?, ?, ?, ?, ?, ?, ?)
			on conflict (id) do nothing`,
			i.Number, i.Customer, i.Amount, i.Currency, i.Due, method, i.For); err != nil {
			return nil, err
		}
	}
	return b, tx.Commit()
}

func (b *books) close() error { return b.db.Close() }

// Paid is what the biller's own ledger says of the invoices.
type Paid struct {
	Paid    int `json:"paid"`    // invoices
	Twice   int `json:"twice"`   // of them, more than once
	Missing int `json:"missing"` // not paid
}

// count counts the rows that say paid.
func (b *books) count(ctx context.Context) (p Paid, err error) {
	err = b.db.QueryRowContext(ctx, `
		select coalesce(sum(times > 0), 0), coalesce(sum(times > 1), 0), coalesce(sum(times = 0), 0)
		from (select (select count(*) from paid where paid.invoice = invoice.id) as times from invoice)`).
		Scan(&p.Paid, &p.Twice, &p.Missing)
	if err != nil {
		return p, fmt.Errorf("count what was paid: %w", err)
	}
	return p, nil
}
