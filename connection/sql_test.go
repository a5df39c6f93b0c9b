package connection_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/connection"
	sqldest "github.com/semel-dev/semel/destination/sql"
)

// A database is reached by a plain URL or by a reference to one, and stored
// operations find their way back to it.
func TestDatabase(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "ledger.db")
	db, err := sql.Open("sqlite", "file:"+file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`create table entry (id integer)`); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SEMEL_TEST_LEDGER", "sqlite:ledger.db")
	write(t, filepath.Join(dir, "semel.yaml"), `connections:
  ledger: {kind: sql, url: sqlite:ledger.db, timeout: 5s, owner: books}
  kept: {kind: sql, url: "env:SEMEL_TEST_LEDGER"}
  gone: {kind: sql, url: "env:SEMEL_TEST_NOTHING"}
  shop: {kind: http, base: "http://localhost"}
`)
	c, err := connection.Load(filepath.Join(dir, "semel.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, c)
	for _, name := range []string{"ledger", "kept"} {
		d, err := c.SQL(name)
		if err != nil {
			t.Fatal(err)
		}
		request, err := d.NewRequest(sqldest.VerbExec, "insert into entry values (?)", 1)
		if err != nil {
			t.Fatal(err)
		}
		o := &semel.Operation{Identity: semel.Identity{Scope: "books", Key: semel.Key(name), Request: request, Contract: d.Contract()}, Attempt: 1}
		found, current, err := c.Resolve(o)
		if err != nil || current.Protection != semel.Transactional || !current.AbsenceIsProof {
			t.Fatalf("got %+v, %v", current, err)
		}
		ev := found.Send(t.Context(), &semel.Send{Operation: o, Attempt: 1, DestinationKey: o.DestinationKey(), Begin: func() error { return nil }})
		if ev.Kind != semel.EvConfirmed {
			t.Errorf("%s: got %+v", name, ev)
		}
	}
	_, contract, err := c.Open("ledger")
	if err != nil || contract.Owner != "books" || contract.Timeout.Seconds() != 5 {
		t.Errorf("got %+v, %v", contract, err)
	}
	for name, want := range map[string]string{
		"gone": "connection gone: secret env:SEMEL_TEST_NOTHING is empty",
		"shop": `connection "shop" is of kind http, not sql`,
	} {
		if _, err := c.SQL(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := c.HTTP("ledger"); err == nil {
		t.Error("a database was opened as HTTP")
	}
	for _, r := range []semel.Request{{Kind: "sql"}, {Kind: "sql", Connection: "shop"}, {Kind: "http", Connection: "ledger"}} {
		if _, _, err := c.Resolve(&semel.Operation{Identity: semel.Identity{Request: r}}); err == nil {
			t.Errorf("%+v was resolved", r)
		}
	}
	query := &semel.Operation{Identity: semel.Identity{Request: semel.Request{Kind: "sql", Connection: "ledger"}, Contract: semel.Contract{Protection: semel.Commutes}}}
	if _, current, err := c.Resolve(query); err != nil || current.AbsenceIsProof || current.Protection != semel.Commutes {
		t.Errorf("a query: got %+v, %v", current, err)
	}
}

// The password of a database goes to the database and nowhere else.
func TestDatabasePassword(t *testing.T) {
	t.Setenv("SEMEL_TEST_PASSWORD", "hunter2")
	t.Setenv("SEMEL_TEST_URL", "postgres://app:hunter2@127.0.0.1:1/ledger?sslmode=disable")
	c := parse(t, `connections:
  ledger: {kind: sql, url: "postgres://app@127.0.0.1:1/ledger?sslmode=disable", secret: env:SEMEL_TEST_PASSWORD}
  kept: {kind: sql, url: env:SEMEL_TEST_URL}
`)
	for _, name := range c.Names() {
		d, err := c.SQL(name)
		if err != nil {
			t.Fatal(err)
		}
		request, err := d.NewRequest(sqldest.VerbExec, "delete from entry")
		if err != nil {
			t.Fatal(err)
		}
		o := &semel.Operation{Identity: semel.Identity{Scope: "s", Key: "k", Request: request}, Attempt: 1}
		ev := d.Send(t.Context(), &semel.Send{Operation: o, Attempt: 1, Begin: func() error { return nil }})
		everything, err := json.Marshal([]any{o, ev, c.Secrets(name)})
		if err != nil || ev.Kind != semel.EvRefused {
			t.Fatalf("got %+v, %v", ev, err)
		}
		if shown := string(everything) + fmt.Sprintf("%+v", c.Secrets(name)); strings.Contains(shown, "hunter2") {
			t.Errorf("a password is shown in %s", shown)
		}
	}
}

func ExampleConfig_SQL() {
	dir, err := os.MkdirTemp("", "semel")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	config, err := connection.Parse(filepath.Join(dir, "semel.yaml"), []byte(`
connections:
  ledger:
    kind: sql
    url: postgres://app@db.internal/ledger
    secret: env:LEDGER_PASSWORD
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = config.Close(context.Background()) }()
	db, err := config.SQL("ledger")
	if err != nil {
		fmt.Println(err)
		return
	}
	request, err := db.NewRequest(sqldest.VerbExec, "update account set closed = true where id = $1", 4417)
	fmt.Println(request.Connection, request.URL, db.Contract().Protection, err)
	// Output: ledger postgres://db.internal:5432/ledger transactional <nil>
}
