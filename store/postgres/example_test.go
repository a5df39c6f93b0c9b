package postgres_test

import (
	"context"
	"fmt"

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
