package docs_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/store/postgres"
	"github.com/semel-dev/semel/store/postgres/postgrestest"
)

// Order is what a program stores in its own table.
type Order struct{ ID string }

var shipping = semel.Workflow[Order]{Name: "shipping", Func: func(semel.Context, Order) error { return nil }}

// place stores an order and starts its run, or neither.
func place(ctx context.Context, db *pgxpool.Pool, o Order) error {
	run, err := shipping.New(semel.Key(o.ID), o)
	if err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "insert into orders (id) values ($1)", o.ID); err != nil {
			return err
		}
		_, _, err := postgres.StartTx(ctx, tx, run)
		return err
	})
}

// TestARunStartsWithItsTransaction: what guide/11 shows.
func TestARunStartsWithItsTransaction(t *testing.T) {
	ctx := t.Context()
	url, err := postgrestest.Start(t, postgrestest.Options{}).Create(ctx)
	if err != nil {
		t.Fatal(err)
	}
	store, err := postgres.Open(ctx, url, postgres.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	db, err := pgxpool.New(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := place(ctx, db, Order{ID: "4417"}); err == nil {
		t.Fatal("an order was stored without its table")
	}
	if _, err := store.FindRun(ctx, "shipping", "4417"); !errors.Is(err, semel.ErrNotFound) {
		t.Errorf("the run of a transaction that was rolled back: %v", err)
	}
	if _, err := db.Exec(ctx, "create table orders (id text primary key)"); err != nil {
		t.Fatal(err)
	}
	if err := place(ctx, db, Order{ID: "4417"}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.FindRun(ctx, "shipping", "4417"); err != nil {
		t.Errorf("the run of a transaction that was committed: %v", err)
	}
}
