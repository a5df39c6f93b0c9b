package sqlite_test

import (
	"context"
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
