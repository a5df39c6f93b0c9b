package sqldest_test

import (
	"testing"

	"github.com/semel-dev/semel"
	sqldest "github.com/semel-dev/semel/destination/sql"
)

// A semicolon ends a statement only where SQLite thinks so too.
func TestOneStatement(t *testing.T) {
	w := sqliteWorld(t)
	w.exec(t, `create table "odd;name" (a text)`)
	d := open(t, w.url, sqldest.Options{})
	for text, want := range map[string]semel.EventKind{
		`select 1`:                                    semel.EvConfirmed,
		"select 1 ; -- done; really\n /* ; */ ":       semel.EvConfirmed,
		`select 'a;b', 'it''s; fine' as c`:            semel.EvConfirmed,
		`select a from "odd;name"`:                    semel.EvConfirmed,
		`select a from [odd;name]`:                    semel.EvConfirmed,
		"select a from `odd;name`":                    semel.EvConfirmed,
		"select 1 -- ;\n + 1":                         semel.EvConfirmed,
		`select 1 /* ; */ + 1`:                        semel.EvConfirmed,
		`select 1; select 2`:                          semel.EvRefused,
		"select 1 -- '\n; delete from effect":         semel.EvRefused,
		`select '--'; delete from effect`:             semel.EvRefused,
		`select '\'; delete from effect`:              semel.EvRefused,
		`select 1;;`:                                  semel.EvRefused,
		`select 'open`:                                semel.EvRefused,
		`select load_extension('x')`:                  semel.EvRefused,
		`select * from pragma_database_list`:          semel.EvRefused,
		`with a as (select 1) insert into a select 1`: semel.EvRefused,
	} {
		for _, verb := range []sqldest.Verb{sqldest.VerbQuery, sqldest.VerbExec} {
			s := send(t, d, string(verb)+text, 1, verb, text)
			if ev := d.Send(t.Context(), s); ev.Kind != want {
				t.Errorf("%s %s: got %s %q, want %s", verb, text, ev.Kind, ev.Reason, want)
			}
		}
	}
}
