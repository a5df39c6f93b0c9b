package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/store/sqlite"
)

func ExampleOpen() {
	dir, err := os.MkdirTemp("", "semel")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx := context.Background()
	path := filepath.Join(dir, "semel.db")

	// A mistyped path must not mean "never ran": a file is made only on request.
	_, err = sqlite.Open(ctx, path, sqlite.Options{})
	fmt.Println("without Create:", err != nil)

	store, err := sqlite.Open(ctx, path, sqlite.Options{Create: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = store.Load(ctx, "billing", "invoice-4417-charge")
	fmt.Println("never claimed:", errors.Is(err, semel.ErrNotFound))
	fmt.Println(store.Close())

	status, err := sqlite.Status(ctx, path)
	fmt.Println(status.Current == status.Latest, err)
	// Output:
	// without Create: true
	// never claimed: true
	// <nil>
	// true <nil>
}

func ExampleStartTx() {
	dir, err := os.MkdirTemp("", "semel")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx := context.Background()
	path := filepath.Join(dir, "shop.db")
	store, err := sqlite.Open(ctx, path, sqlite.Options{Create: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = store.Close() }()

	// The application keeps its tables in the same file.
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = db.Close() }()
	_, err = db.ExecContext(ctx, "create table invoice (number text primary key)")
	fmt.Println(err)

	// Invoice and run are there together, or neither is.
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = tx.ExecContext(ctx, "insert into invoice values ('4417')")
	fmt.Println(err)
	_, existing, err := sqlite.StartTx(ctx, tx, semel.NewRun{Workflow: "billing", Version: 1, Key: "invoice-4417"})
	fmt.Println(existing, err)
	fmt.Println(tx.Commit())

	run, err := store.FindRun(ctx, "billing", "invoice-4417")
	fmt.Println(run.State, err)
	// Output:
	// <nil>
	// <nil>
	// false <nil>
	// <nil>
	// running <nil>
}
