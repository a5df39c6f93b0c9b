package sqldest_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/semel-dev/semel"
	sqldest "github.com/semel-dev/semel/destination/sql"
)

// ledger makes a database to show things with.
func ledger() (address string, remove func()) {
	dir, err := os.MkdirTemp("", "ledger")
	if err != nil {
		panic(err)
	}
	file := filepath.Join(dir, "ledger.db")
	db, err := sql.Open("sqlite", "file:"+file)
	if err != nil {
		panic(err)
	}
	defer db.Close()
	_, err = db.Exec(`
		create table account (id integer primary key, balance integer not null);
		insert into account values (4417, 100);
		create table seat (id integer primary key, holder text);
		insert into seat (id) values (12)`)
	if err != nil {
		panic(err)
	}
	return "sqlite://" + file, func() { _ = os.RemoveAll(dir) }
}

// attempt does what an engine does with an action, without its records.
func attempt[In, Out any](effect semel.Effect[In, Out], key semel.Key, in In) semel.Event {
	request, err := effect.Request(in)
	if err != nil {
		panic(err)
	}
	o := semel.Operation{Identity: semel.Identity{Scope: "billing", Key: key, Request: request, Contract: effect.Contract}}
	return effect.Destination.Send(context.Background(), &semel.Send{
		Operation: &o, Attempt: 1, DestinationKey: o.DestinationKey(), Begin: func() error { return nil },
	})
}

type booking struct {
	Account int64 `json:"id"`
	Amount  int64 `json:"balance"`
}

func ExampleExec() {
	address, remove := ledger()
	defer remove()
	db, err := sqldest.New(address, sqldest.Options{Name: "ledger"})
	if err != nil {
		panic(err)
	}
	defer db.Close(context.Background())

	book := sqldest.Exec[booking, booking](db,
		`update account set balance = balance + ? where id = ? returning id, balance`,
		func(b booking) []any { return []any{b.Amount, b.Account} })
	for range 2 { // the second time, the receipt is there
		ev := attempt(book, "invoice-4417", booking{4417, 25})
		fmt.Printf("%s %s\n", ev.Kind, ev.Result.Body)
	}
	// Output:
	// confirmed {"affected":1,"rows":[{"id":4417,"balance":125}]}
	// confirmed {"affected":1,"rows":[{"id":4417,"balance":125}]}
}

func ExampleClaimOnce() {
	address, remove := ledger()
	defer remove()
	db, err := sqldest.New(address, sqldest.Options{Name: "ledger"})
	if err != nil {
		panic(err)
	}
	defer db.Close(context.Background())

	take := sqldest.ClaimOnce[string, struct{}](db,
		`update seat set holder = ? where id = 12 and holder is null`,
		func(guest string) []any { return []any{guest} })
	for _, guest := range []string{"ada", "bob", "ada"} {
		ev := attempt(take, semel.Key("seat for "+guest), guest)
		fmt.Printf("%s %s %s\n", guest, ev.Kind, ev.Result.Body)
	}
	// Output:
	// ada confirmed {"won":true,"affected":1,"rows":[]}
	// bob confirmed {"won":false,"affected":0,"rows":[]}
	// ada confirmed {"won":true,"affected":1,"rows":[]}
}

func ExampleQuery() {
	address, remove := ledger()
	defer remove()
	db, err := sqldest.New(address, sqldest.Options{Name: "ledger"})
	if err != nil {
		panic(err)
	}
	defer db.Close(context.Background())

	rich := sqldest.Query[int, booking](db, `select id, balance from account where balance >= ?`,
		func(least int) []any { return []any{least} })
	ev := attempt(rich, "rich", 50)
	fmt.Printf("%s %s %s\n", ev.Kind, ev.Result.Body, rich.Contract.Protection)
	// Output:
	// confirmed {"rows":[{"id":4417,"balance":100}]} commutes
}

func ExampleNew() {
	_, err := sqldest.New("mysql://app:secret@localhost/shop", sqldest.Options{})
	fmt.Println(err)
	// Output: url is for no database that is known: write it as postgres://user@host/name or sqlite:///path/of/file
}

func ExampleDatabase_Contract() {
	db, err := sqldest.New("postgres://app@localhost/shop", sqldest.Options{Timeout: 5 * time.Second})
	if err != nil {
		panic(err)
	}
	c := db.Contract()
	fmt.Println(c.Protection, c.Timeout, "absence is proof:", c.AbsenceIsProof)
	fmt.Println(db.QueryContract().Protection)
	fmt.Println(db.Close(context.Background()))
	// Output:
	// transactional 5s absence is proof: true
	// commutes
	// <nil>
}

func ExampleDatabase_NewRequest() {
	db, err := sqldest.New("postgres://app:secret@localhost/shop", sqldest.Options{Name: "shop"})
	if err != nil {
		panic(err)
	}
	defer db.Close(context.Background())
	r, err := db.NewRequest(sqldest.VerbExec, "insert into sold (id) values ($1)", int64(9007199254740993))
	fmt.Println(r.URL, string(r.Body), err)
	_, err = db.NewRequest(sqldest.VerbExec, "commit")
	fmt.Println(err != nil)
	// Output:
	// postgres://localhost:5432/shop {"verb":"exec","statement":"insert into sold (id) values ($1)","args":[9007199254740993]} <nil>
	// true
}

func ExampleDatabase_Look() {
	address, remove := ledger()
	defer remove()
	db, err := sqldest.New(address, sqldest.Options{Name: "ledger"})
	if err != nil {
		panic(err)
	}
	defer db.Close(context.Background())

	request, err := db.NewRequest(sqldest.VerbExec, "delete from account where id = ?", 4417)
	if err != nil {
		panic(err)
	}
	o := semel.Operation{Identity: semel.Identity{Scope: "billing", Key: "close-4417", Request: request}, State: semel.Unknown}
	s := semel.Send{Operation: &o, Attempt: 1, DestinationKey: o.DestinationKey(), Begin: func() error { return nil }}
	fmt.Println(db.Look(context.Background(), &s).Kind)
	ev := db.Send(context.Background(), &s) // that attempt comes late
	fmt.Println(ev.Kind, ev.Reason)
	// Output:
	// absent
	// refused nothing was changed: a lookup found that this attempt had not acted, and has barred it since
}
