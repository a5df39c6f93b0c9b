package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
	"github.com/semel-dev/semel/server"
	"github.com/semel-dev/semel/store/sqlite"
)

type order struct {
	ID string `json:"id"`
}

var ship = semel.Workflow[order]{Name: "ship", Func: func(semel.Context, order) error { return nil }}

// A program says which of its workflows a call may start. A worker in the place
// of the engine would execute the run at once.
func ExampleNew() {
	dir, err := os.MkdirTemp("", "semel-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	store, err := sqlite.Open(ctx, filepath.Join(dir, "semel.db"), sqlite.Options{Create: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	e, err := engine.New(ctx, store, engine.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close(ctx)
	find := func(workflow string) (server.Make, bool) {
		return func(key semel.Key, input []byte) (semel.NewRun, error) {
			var o order
			if err := json.Unmarshal(input, &o); err != nil {
				return semel.NewRun{}, &semel.InputError{Field: "input", Problem: "is no order", Hint: `send {"id": ...}`}
			}
			return ship.New(key, o)
		}, workflow == "ship"
	}
	handler := server.New(store, e, find, nil)
	for range 2 {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/workflows/ship/runs", strings.NewReader(`{"id":"4417"}`))
		r.Header.Set("Idempotency-Key", "order-4417")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
	// Output:
	// 202
	// 200
}
