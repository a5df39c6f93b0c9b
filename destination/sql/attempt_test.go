package sqldest_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
	sqldest "github.com/semel-dev/semel/destination/sql"
)

// C12, law 5: however often and by however many it is tried, the effect
// happens once, and everybody has the same answer.
func TestManyAttemptsOneEffect(t *testing.T) {
	each(t, func(t *testing.T, w world) {
		d := open(t, w.url, sqldest.Options{AtOnce: 10})
		var wg sync.WaitGroup
		answers := make([]string, 50)
		for i := range answers {
			s := insert(t, d, w, "one", i+1)
			wg.Go(func() {
				ev := d.Send(t.Context(), s)
				answers[i] = fmt.Sprint(ev.Kind)
				if ev.Result != nil {
					answers[i] += " " + string(ev.Result.Body)
				}
			})
		}
		wg.Wait()
		for _, got := range answers {
			if want := `confirmed {"affected":1,"rows":[{"happened":1}]}`; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		if n := w.effects(t, "one"); n != 1 {
			t.Errorf("it happened %d times", n)
		}
	})
}

// Law 9: a receipt of another request is a contradiction, and nothing is
// changed.
func TestReceiptOfAnotherRequest(t *testing.T) {
	each(t, func(t *testing.T, w world) {
		d := open(t, w.url, sqldest.Options{})
		if ev := d.Send(t.Context(), insert(t, d, w, "first", 1)); ev.Kind != semel.EvConfirmed {
			t.Fatal(ev)
		}
		other := insert(t, d, w, "second", 2)
		other.DestinationKey = insert(t, d, w, "first", 2).DestinationKey
		ev := d.Send(t.Context(), other)
		if ev.Kind != semel.EvLost || !ev.Person || ev.Incident == "" || w.effects(t, "second") != 0 {
			t.Errorf("got %+v and %d effects", ev, w.effects(t, "second"))
		}
		if ev := d.Look(t.Context(), unknown(other)); ev.Kind != semel.EvNoAnswer || !ev.Person {
			t.Errorf("looked up: %+v", ev)
		}
	})
}

// Law 2 read the other way: before the commit is sent, an error is known to
// have changed nothing, and the same key may be tried again.
func TestErrorsBeforeTheCommit(t *testing.T) {
	each(t, func(t *testing.T, w world) {
		w.exec(t, `create table small (id integer primary key, n integer check (n < 10))`)
		d := open(t, w.url, sqldest.Options{MaxRows: 3})
		first := insert(t, d, w, "none", 1)
		first.Begin = func() error { return errors.New("only the table is made") }
		d.Send(t.Context(), first)
		for name, test := range map[string]struct {
			verb       sqldest.Verb
			text, want string
		}{
			"constraint":      {sqldest.VerbExec, `insert into small values (1, 99)`, "check"},
			"syntax":          {sqldest.VerbExec, `insert into small (id values`, "syntax"},
			"no such table":   {sqldest.VerbExec, `delete from nowhere`, "nowhere"},
			"two statements":  {sqldest.VerbExec, `insert into small values (1, 1); delete from small`, "statement"},
			"ends itself":     {sqldest.VerbExec, `insert into small values (1, 1); commit`, "statement"},
			"own receipt":     {sqldest.VerbExec, `delete from semel_receipt`, "removed its own receipt"},
			"too many rows":   {sqldest.VerbExec, `insert into small values (1, 1), (2, 2), (3, 3), (4, 4) returning id`, "more than 3 rows"},
			"too much":        {sqldest.VerbExec, `insert into small values (1, 1) returning replace('` + strings.Repeat("x", 1000) + `', 'x', '` + strings.Repeat("y", 300) + `')`, "256 kib"},
			"same names":      {sqldest.VerbExec, `insert into small values (1, 1) returning id, n as id`, "two columns"},
			"claims too much": {sqldest.VerbClaim, `insert into small values (1, 1), (2, 2)`, "would change 2 rows"},
			"query writes":    {sqldest.VerbQuery, `with a as (select 1) select * from nowhere`, "nowhere"},
		} {
			t.Run(name, func(t *testing.T) {
				ev := d.Send(t.Context(), send(t, d, name, 1, test.verb, test.text))
				if ev.Kind != semel.EvRefused || !strings.Contains(strings.ToLower(ev.Reason), test.want) {
					t.Errorf("got %s %q, want refused with %q", ev.Kind, ev.Reason, test.want)
				}
				if n := w.number(t, `select (select count(*) from small) + (select count(*) from semel_receipt)`); n != 0 {
					t.Errorf("it left %d rows", n)
				}
			})
		}
		fixed := send(t, d, "constraint", 2, sqldest.VerbExec, `insert into small values (1, 9)`)
		if ev := d.Send(t.Context(), fixed); ev.Kind != semel.EvConfirmed {
			t.Errorf("tried again: %+v", ev)
		}
	})
}

// Law 1, law 16: the receipt is the first write, and comes after Begin.
func TestNothingBeforeBegin(t *testing.T) {
	each(t, func(t *testing.T, w world) {
		d := open(t, w.url, sqldest.Options{})
		s := insert(t, d, w, "early", 1)
		s.Begin = func() error { return errors.New("the lease is over") }
		if ev := d.Send(t.Context(), s); ev.Kind != semel.EvRefused {
			t.Errorf("got %+v", ev)
		}
		if n := w.effects(t, "early") + w.number(t, `select count(*) from semel_receipt`); n != 0 {
			t.Errorf("%d rows were written", n)
		}
	})
}

// A claim has one winner, and a retry has the verdict of the first try.
func TestClaimHasOneWinner(t *testing.T) {
	each(t, func(t *testing.T, w world) {
		w.exec(t, `create table seat (id integer primary key, holder text)`)
		w.exec(t, `insert into seat (id) values (1)`)
		d := open(t, w.url, sqldest.Options{})
		text := w.dialect(`update seat set holder = $1 where id = $2 and holder is null returning id, holder`)
		var mu sync.Mutex
		won := map[bool]int{}
		var wg sync.WaitGroup
		for i := range 10 {
			who := fmt.Sprintf("guest %d", i)
			s, again := send(t, d, who, 1, sqldest.VerbClaim, text, who, 1), send(t, d, who, 2, sqldest.VerbClaim, text, who, 1)
			wg.Go(func() {
				first, second := d.Send(t.Context(), s), d.Send(t.Context(), again)
				if first.Kind != semel.EvConfirmed || second.Kind != semel.EvConfirmed {
					t.Errorf("got %+v and %+v", first, second)
					return
				}
				if diff := cmp.Diff(string(first.Result.Body), string(second.Result.Body)); diff != "" {
					t.Errorf("the retry differs (-first +retry):\n%s", diff)
				}
				mu.Lock()
				defer mu.Unlock()
				won[strings.HasPrefix(string(first.Result.Body), `{"won":true,"affected":1,"rows":[{"id":1,"holder":"guest `)]++
			})
		}
		wg.Wait()
		if diff := cmp.Diff(map[bool]int{true: 1, false: 9}, won); diff != "" {
			t.Errorf("winners (-want +got):\n%s", diff)
		}
	})
}

// A query cannot write, by any name.
func TestQueryCannotWrite(t *testing.T) {
	each(t, func(t *testing.T, w world) {
		d := open(t, w.url, sqldest.Options{})
		for _, text := range []string{
			`with gone as (delete from effect returning 1) select * from gone`,
			`with a as (select 1) delete from effect`,
			`select nextval('numbers')`,
			`select 1; delete from effect`,
		} {
			w.exec(t, `delete from effect`)
			if w.name == "postgres" {
				w.exec(t, `create sequence if not exists numbers`)
			}
			w.exec(t, `insert into effect (name, manner) values ('kept', '')`)
			if ev := d.Send(t.Context(), send(t, d, "q", 1, sqldest.VerbQuery, text)); ev.Kind != semel.EvRefused || w.effects(t, "kept") != 1 {
				t.Errorf("%s: got %+v and %d rows", text, ev, w.effects(t, "kept"))
			}
		}
	})
}

// C29: a transaction ends with its time, and then nothing has happened.
func TestTransactionEndsWithItsTime(t *testing.T) {
	w := postgresWorld(t)
	d := open(t, w.url, sqldest.Options{Timeout: 300 * time.Millisecond})
	s := send(t, d, "slow", 1, sqldest.VerbExec, `insert into effect (name, manner) select 'slow', '' from pg_sleep(86400)`)
	if ev := d.Send(t.Context(), s); ev.Kind != semel.EvRefused || w.effects(t, "slow") != 0 {
		t.Errorf("got %+v and %d rows", ev, w.effects(t, "slow"))
	}
}

// Law 9: a connection that leads elsewhere neither sends nor proves anything.
func TestAnotherDatabaseProvesNothing(t *testing.T) {
	each(t, func(t *testing.T, w world) {
		first, other := open(t, w.url, sqldest.Options{}), open(t, sqliteWorld(t).url, sqldest.Options{})
		s := insert(t, first, w, "moved", 1)
		if ev := other.Send(t.Context(), s); ev.Kind != semel.EvRefused {
			t.Errorf("sent: %+v", ev)
		}
		if ev := other.Look(t.Context(), unknown(s)); ev.Kind != semel.EvNoAnswer {
			t.Errorf("looked up: %+v", ev)
		}
	})
}
