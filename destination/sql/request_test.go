package sqldest_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
	sqldest "github.com/semel-dev/semel/destination/sql"
)

// Laws 9 and 10: the request holds the statement, its arguments digit for
// digit, and where the database is, but no credential.
func TestRequestHoldsNoCredential(t *testing.T) {
	d := open(t, "postgres://app:hunter2@db.example:6432/ledger?sslmode=disable&application_name=x", sqldest.Options{Name: "ledger"})
	r, err := d.NewRequest(sqldest.VerbExec, "insert into t values ($1, $2)", uint64(math.MaxUint64), "<&>")
	if err != nil {
		t.Fatal(err)
	}
	want := semel.Request{
		Connection: "ledger", Kind: "sql", URL: "postgres://db.example:6432/ledger", MediaType: "application/json",
		Body: []byte(`{"verb":"exec","statement":"insert into t values ($1, $2)","args":[18446744073709551615,"<&>"]}`),
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

func TestStatementsThatAreRefused(t *testing.T) {
	d := open(t, sqliteWorld(t).url, sqldest.Options{})
	for _, test := range []struct {
		verb sqldest.Verb
		text string
		args []any
		want string
	}{
		{sqldest.VerbExec, "commit", nil, `statement begins with "commit"`},
		{sqldest.VerbExec, " -- a remark\n /* another */ PREPARE TRANSACTION 'x'", nil, `statement begins with "prepare"`},
		{sqldest.VerbExec, "set search_path = x", nil, `statement begins with "set"`},
		{sqldest.VerbExec, "", nil, `statement begins with ""`},
		{sqldest.VerbExec, "/* open", nil, `statement begins with ""`},
		{sqldest.VerbQuery, "delete from t", nil, `statement begins with "delete"`},
		{sqldest.VerbClaim, "select 1", nil, `statement begins with "select"`},
		{"write", "select 1", nil, `verb "write" is unknown`},
		{sqldest.VerbExec, "select ?", []any{1, []byte{1}}, `argument 2 is bytes`},
		{sqldest.VerbExec, "select ?", []any{"a\xff"}, `argument 1 is not valid UTF-8`},
		{sqldest.VerbExec, "select ?", []any{"a\x00"}, `argument 1 contains a NUL byte`},
		{sqldest.VerbExec, "select ?", []any{math.NaN()}, `argument 1 cannot be written as JSON`},
	} {
		_, err := d.NewRequest(test.verb, test.text, test.args...)
		var input *semel.InputError
		if !errors.As(err, &input) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %q: got %v, want %q", test.verb, test.text, err, test.want)
		}
	}
}

// A URL may hold a password, so no error repeats it.
func TestURLsThatAreRefused(t *testing.T) {
	for _, address := range []string{
		"", "mysql://u:hunter2@h/d", "postgres://u:hunter2@h:port/d", "postgres://u:hunter2@h/d?sslmode=maybe", "://hunter2",
		"sqlite://host/hunter2", "sqlite:", "sqlite:hunter2?mode=memory", "sqlite:%zz",
	} {
		_, err := sqldest.New(address, sqldest.Options{})
		var input *semel.InputError
		if !errors.As(err, &input) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: got %v", address, err)
		}
	}
	if _, err := sqldest.New("sqlite:x", sqldest.Options{MaxRows: -1}); err == nil {
		t.Error("a negative limit was taken")
	}
}

// M13: what cannot be reached has done nothing, and is named; its password stays
// hidden.
func TestUnreachable(t *testing.T) {
	for name, address := range map[string]string{
		"postgres": "postgres://app:hunter2@127.0.0.1:1/ledger?sslmode=disable",
		"sqlite":   "sqlite://" + filepath.Join(t.TempDir(), "no-such.db"),
	} {
		d := open(t, address, sqldest.Options{})
		for _, verb := range []sqldest.Verb{sqldest.VerbExec, sqldest.VerbQuery} {
			s := send(t, d, "x", 1, verb, "select 1 as one")
			ev := d.Send(t.Context(), s)
			if ev.Kind != semel.EvRefused || !strings.Contains(ev.Reason, map[string]string{"postgres": "127.0.0.1:1", "sqlite": "no-such.db: "}[name]) || strings.Contains(ev.Reason, "hunter2") {
				t.Errorf("%s %s: got %+v", name, verb, ev)
			}
			if ev := d.Look(t.Context(), unknown(s)); ev.Kind != semel.EvNoAnswer {
				t.Errorf("%s %s: looked up %+v", name, verb, ev)
			}
		}
	}
}

// Without the right to make the table, the error holds the statement that does.
func TestTableOfReceiptsIsMadeByHand(t *testing.T) {
	w := postgresWorld(t)
	w.exec(t, `create role clerk login; revoke create on schema public from public; grant insert, select on effect to clerk`)
	t.Cleanup(func() { w.exec(t, `drop owned by clerk; drop role clerk`) })
	d := open(t, w.url+"&options=-c%20role%3Dclerk", sqldest.Options{})
	ev := d.Send(t.Context(), insert(t, d, w, "a", 1))
	_, ddl, ok := strings.Cut(ev.Reason, "run: ")
	ddl, _, _ = strings.Cut(ddl, "; and grant")
	if ev.Kind != semel.EvRefused || !ok || w.effects(t, "a") != 0 {
		t.Fatalf("got %+v", ev)
	}
	w.exec(t, ddl+`; grant select, insert, update on semel_receipt to clerk`)
	if ev := d.Send(t.Context(), insert(t, d, w, "a", 2)); ev.Kind != semel.EvConfirmed || w.effects(t, "a") != 1 {
		t.Errorf("got %+v", ev)
	}
}

// A closed database sends nothing; closing breaks off what does not end.
func TestClose(t *testing.T) {
	w := postgresWorld(t)
	d := open(t, w.url, sqldest.Options{})
	s := send(t, d, "slow", 1, sqldest.VerbExec, `insert into effect (name, manner) select 'slow', '' from pg_sleep(20)`)
	begun := make(chan struct{})
	s.Begin = func() error { close(begun); return nil }
	done := make(chan semel.Event, 1)
	go func() { done <- d.Send(t.Context(), s) }()
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Close(ctx); err != nil {
		t.Error(err)
	}
	if ev := <-done; ev.Kind != semel.EvRefused {
		t.Errorf("got %+v", ev)
	}
	if ev := d.Send(t.Context(), insert(t, d, w, "after", 1)); ev.Kind != semel.EvRefused || w.effects(t, "after") != 0 {
		t.Errorf("got %+v", ev)
	}
	if got := fmt.Sprint(d.Look(t.Context(), unknown(s)).Kind); got != "no_answer" {
		t.Errorf("got %s", got)
	}
}
