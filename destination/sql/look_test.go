package sqldest_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	sqldest "github.com/semel-dev/semel/destination/sql"
)

// M22: the receipt tells.
func TestReceiptIsFound(t *testing.T) {
	each(t, func(t *testing.T, w world) {
		d := open(t, w.url, sqldest.Options{})
		s := insert(t, d, w, "known", 1)
		sent := d.Send(t.Context(), s)
		for _, looked := range []*semel.Send{s, unknown(s)} {
			ev := d.Look(t.Context(), looked)
			if ev.Kind != semel.EvFound || string(ev.Result.Body) != string(sent.Result.Body) || ev.Result.Reference != sent.Result.Reference {
				t.Errorf("%s: got %+v, want found with %+v", looked.Operation.State, ev, sent.Result)
			}
		}
	})
}

// Law 7: once a lookup has said "absent", the attempt that it spoke of has no
// effect however late it comes, and the next one has.
func TestAbsenceBarsWhatWasLate(t *testing.T) {
	each(t, func(t *testing.T, w world) {
		d := open(t, w.url, sqldest.Options{})
		late := insert(t, d, w, "late", 1)
		for range 2 {
			if ev := d.Look(t.Context(), unknown(insert(t, d, w, "late", 2))); ev.Kind != semel.EvAbsent {
				t.Fatalf("got %+v, want absent", ev)
			}
		}
		for _, attempt := range []*semel.Send{late, insert(t, d, w, "late", 2)} {
			if ev := d.Send(t.Context(), attempt); ev.Kind != semel.EvRefused || w.effects(t, "late") != 0 {
				t.Errorf("attempt %d: got %+v and %d effects", attempt.Attempt, ev, w.effects(t, "late"))
			}
		}
		next := insert(t, d, w, "late", 3)
		if ev := d.Send(t.Context(), next); ev.Kind != semel.EvConfirmed || w.effects(t, "late") != 1 {
			t.Errorf("the next attempt: %+v and %d effects", ev, w.effects(t, "late"))
		}
		if ev := d.Look(t.Context(), unknown(next)); ev.Kind != semel.EvFound {
			t.Errorf("looked up: %+v", ev)
		}
	})
}

// Of many attempts that meet one bar, one replaces it and acts.
func TestManyAttemptsBehindABar(t *testing.T) {
	each(t, func(t *testing.T, w world) {
		d := open(t, w.url, sqldest.Options{AtOnce: 10})
		for i := range 5 {
			name := fmt.Sprintf("round %d", i)
			if ev := d.Look(t.Context(), unknown(insert(t, d, w, name, 1))); ev.Kind != semel.EvAbsent {
				t.Fatalf("got %+v, want absent", ev)
			}
			var wg sync.WaitGroup
			for attempt := range 10 {
				s := insert(t, d, w, name, attempt+2)
				wg.Go(func() {
					if ev := d.Send(t.Context(), s); ev.Kind != semel.EvConfirmed {
						t.Errorf("got %+v, want confirmed", ev)
					}
				})
			}
			wg.Wait()
			if n := w.effects(t, name); n != 1 {
				t.Errorf("%s: it happened %d times", name, n)
			}
		}
	})
}

// A lookup of a later operation with the same key keeps the bar of the earlier.
func TestBarOutlivesItsOperation(t *testing.T) {
	each(t, func(t *testing.T, w world) {
		d := open(t, w.url, sqldest.Options{})
		late, later := insert(t, d, w, "late", 7), insert(t, d, w, "late", 1)
		later.Operation.ID = semel.ID{2}
		if ev := d.Look(t.Context(), unknown(later)); ev.Kind != semel.EvAbsent {
			t.Fatalf("got %+v, want absent", ev)
		}
		if ev := d.Send(t.Context(), late); ev.Kind != semel.EvRefused {
			t.Errorf("got %+v, want refused", ev)
		}
		if ev := d.Look(t.Context(), unknown(late)); ev.Kind != semel.EvAbsent {
			t.Errorf("got %+v, want absent", ev)
		}
		if ev := d.Send(t.Context(), later); ev.Kind != semel.EvRefused {
			t.Errorf("the bar of the later one is gone: %+v", ev)
		}
	})
}

// Law 15: while an attempt may be running, looking bars nothing.
func TestLookingAtARunningAttemptBarsNothing(t *testing.T) {
	each(t, func(t *testing.T, w world) {
		d := open(t, w.url, sqldest.Options{})
		s := insert(t, d, w, "running", 1)
		if ev := d.Look(t.Context(), s); ev.Kind != semel.EvNoAnswer {
			t.Errorf("got %+v, want no answer", ev)
		}
		if _, err := w.Exec(`select 1 from semel_receipt`); err == nil {
			t.Error("looking made a table")
		}
		if ev := d.Send(t.Context(), s); ev.Kind != semel.EvConfirmed {
			t.Errorf("got %+v, want confirmed", ev)
		}
	})
}

// A race of an attempt with its lookup ends in one of two ways: it happened and
// was found, or it was absent and never happens.
func TestAttemptRacesWithLookup(t *testing.T) {
	each(t, func(t *testing.T, w world) {
		d := open(t, w.url, sqldest.Options{AtOnce: 8})
		kinds := map[semel.EventKind]int{}
		for i := range 40 {
			name := string(rune('a'+i%26)) + string(rune('a'+i/26))
			s := insert(t, d, w, name, 1)
			looked := unknown(s)
			var sent, seen semel.Event
			var wg sync.WaitGroup
			wg.Go(func() { sent = d.Send(t.Context(), s) })
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 50 * time.Microsecond)
				seen = d.Look(t.Context(), looked)
			})
			wg.Wait()
			n := w.effects(t, name)
			happened := sent.Kind == semel.EvConfirmed && seen.Kind == semel.EvFound && n == 1
			never := sent.Kind == semel.EvRefused && seen.Kind == semel.EvAbsent && n == 0
			if !happened && !never {
				t.Errorf("%s: sent %s (%s), looked up %s (%s), %d effects", name, sent.Kind, sent.Reason, seen.Kind, seen.Reason, n)
			}
			kinds[seen.Kind]++
		}
		t.Logf("looked up: %v", kinds)
	})
}

// An attempt whose transaction is open is waited for: it holds its key.
func TestLookWaitsForAnOpenTransaction(t *testing.T) {
	w := postgresWorld(t)
	p, address := newProxy(t, w.url)
	d := open(t, address, sqldest.Options{Timeout: 5 * time.Second})
	text := `insert into effect (name, manner) values ($1, $2)`
	s := send(t, d, "open", 1, sqldest.VerbExec, text, "open", "held")
	sent := make(chan semel.Event, 1)
	go func() { sent <- d.Send(t.Context(), s) }()
	for w.number(t, `select count(*) from pg_stat_activity where state = 'idle in transaction' and datname = current_database()`) == 0 {
		time.Sleep(5 * time.Millisecond)
	}
	looked := make(chan semel.Event, 1)
	go func() { looked <- d.Look(t.Context(), unknown(s)) }()
	for w.number(t, `select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`) == 0 {
		time.Sleep(5 * time.Millisecond)
	}
	close(p.held)
	if ev := <-looked; ev.Kind != semel.EvFound {
		t.Errorf("got %+v, want found", ev)
	}
	if ev := <-sent; ev.Kind != semel.EvConfirmed {
		t.Errorf("got %+v, want confirmed", ev)
	}
}

// Law 2: the acknowledgement of the commit is lost, on the way there or back.
// Both are unknown, and the receipt tells them apart.
func TestLostAcknowledgement(t *testing.T) {
	w := postgresWorld(t)
	_, address := newProxy(t, w.url)
	d := open(t, address, sqldest.Options{Timeout: 5 * time.Second})
	for manner, test := range map[string]struct {
		found   semel.EventKind
		effects int
	}{
		"loses request": {semel.EvAbsent, 0},
		"loses answer":  {semel.EvFound, 1},
	} {
		t.Run(manner, func(t *testing.T) {
			name := "to " + string(test.found)
			s := send(t, d, name, 1, sqldest.VerbExec, `insert into effect (name, manner) values ($1, $2)`, name, manner)
			if ev := d.Send(t.Context(), s); ev.Kind != semel.EvLost || !ev.Closed {
				t.Fatalf("got %+v, want lost and closed", ev)
			}
			if ev := d.Look(t.Context(), unknown(s)); ev.Kind != test.found || w.effects(t, name) != test.effects {
				t.Errorf("looked up %+v with %d effects", ev, w.effects(t, name))
			}
		})
	}
}

// The server ends the transaction of a client that is frozen in the middle of
// it, so that its key becomes free.
func TestFrozenClientLosesItsTransaction(t *testing.T) {
	w := postgresWorld(t)
	p, address := newProxy(t, w.url)
	d := open(t, address, sqldest.Options{Timeout: 500 * time.Millisecond})
	s := send(t, d, "frozen", 1, sqldest.VerbExec, `insert into effect (name, manner) values ($1, $2)`, "frozen", "held")
	if ev := d.Send(t.Context(), s); ev.Kind != semel.EvLost {
		t.Errorf("got %+v, want lost", ev)
	}
	direct := open(t, w.url, sqldest.Options{})
	looked := unknown(s)
	looked.Operation.Request.URL = insert(t, direct, w, "frozen", 1).Operation.Request.URL
	if ev := direct.Look(t.Context(), looked); ev.Kind != semel.EvAbsent {
		t.Errorf("got %+v, want absent", ev)
	}
	close(p.held) // the commit arrives at last
	time.Sleep(100 * time.Millisecond)
	if n := w.effects(t, "frozen"); n != 0 {
		t.Errorf("it happened %d times after it was absent", n)
	}
}
