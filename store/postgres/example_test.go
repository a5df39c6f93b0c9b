package postgres_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/store/postgres"
	"github.com/semel-dev/semel/store/postgres/postgrestest"
)

func ExampleOpen() {
	ctx := context.Background()
	server, err := postgrestest.Run(ctx, postgrestest.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = server.Close() }()
	url, err := server.Create(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}

	store, err := postgres.Open(ctx, url, postgres.Options{Create: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(store.Close())

	status, err := postgres.Status(ctx, url)
	fmt.Println(status.Current == status.Latest, err)
	// Output:
	// <nil>
	// true <nil>
}

// An order and the run that ships it are there together, or neither is.
func ExampleStartTx() {
	ctx := context.Background()
	server, err := postgrestest.Run(ctx, postgrestest.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = server.Close() }()
	url, err := server.Create(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := postgres.Migrate(ctx, url); err != nil {
		fmt.Println(err)
		return
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		fmt.Println(err)
		return
	}

	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `create table orders as select 4417 as number`); err != nil {
			return err
		}
		r, existing, err := postgres.StartTx(ctx, tx, semel.NewRun{Workflow: "shipping", Version: 1, Key: "order/4417", Input: []byte(`{"order":4417}`)})
		fmt.Println(r.Key, r.State, existing)
		return err
	})
	fmt.Println(err, conn.Close(ctx))
	// Output:
	// order/4417 running false
	// <nil> <nil>
}
