package sqldest_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	sqldest "github.com/semel-dev/semel/destination/sql"
	"github.com/semel-dev/semel/engine"
	"github.com/semel-dev/semel/store/sqlite"
)

// The whole way: the commit is lost, recovery looks, and what it finds or rules
// out settles the operation.
func TestEngineSettlesALostCommit(t *testing.T) {
	w := postgresWorld(t)
	_, address := newProxy(t, w.url)
	d := open(t, address, sqldest.Options{Name: "ledger", Timeout: time.Second})
	effect := sqldest.Exec[string, struct{}](d, `insert into effect (name, manner) values ($1, $2)`,
		func(manner string) []any { return []any{"by " + manner, manner} })
	effect.Contract.Skew = time.Millisecond
	book := semel.Action[string, sqldest.Written[struct{}]]{Name: "book", Key: func(manner string) string { return "by " + manner[6:] }, Send: effect}

	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "semel.db"), sqlite.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	guard, err := engine.New(t.Context(), store, engine.Options{Resolve: engine.Actions(book.Definition())})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = guard.Close(t.Context()) }()

	for manner, want := range map[string]semel.State{"loses request": semel.Failed, "loses answer": semel.Completed} {
		happened := map[semel.State]int{semel.Failed: 0, semel.Completed: 1}[want]
		done, err := book.Do(t.Context(), guard, manner)
		if err != nil || done.Status != semel.StatusUnknown {
			t.Fatalf("%s: got %s, %v", manner, done.Status, err)
		}
		o := done.Operation
		for begun := time.Now(); o.State == semel.Unknown && time.Since(begun) < 10*time.Second; time.Sleep(50 * time.Millisecond) {
			if _, err := guard.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			if o, err = store.LoadID(t.Context(), o.ID); err != nil {
				t.Fatal(err)
			}
		}
		if n := w.effects(t, "by "+manner); o.State != want || n != happened {
			t.Errorf("%s: it is %s (%s) with %d effects, want %s with %d", manner, o.State, o.Reason, n, want, happened)
		}
	}
}
