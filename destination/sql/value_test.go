package sqldest_test

import (
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
	sqldest "github.com/semel-dev/semel/destination/sql"
)

// M27: what the database holds arrives as it is, digit for digit.
func TestPostgresValuesAreExact(t *testing.T) {
	w := postgresWorld(t)
	for text, want := range map[string]string{
		`9007199254740993::bigint`:                          `9007199254740993`,
		`(-9223372036854775808)::bigint`:                    `-9223372036854775808`,
		`1.50::numeric`:                                     `1.50`,
		`123456789012345678901234567890.123456789::numeric`: `123456789012345678901234567890.123456789`,
		`'NaN'::numeric`:                                    `"NaN"`,
		`0.1::float8`:                                       `0.1`,
		`'-infinity'::float8`:                               `"-Infinity"`,
		`true`:                                              `true`,
		`null::integer`:                                     `null`,
		`'{"a": [1, 9007199254740993]}'::json`:              `{"a":[1,9007199254740993]}`,
		`'{"b": null}'::jsonb`:                              `{"b":null}`,
		`'\x00ff'::bytea`:                                   `"AP8="`,
		`'2026-03-29 01:30:00.123456+02'::timestamptz`:      `"2026-03-28T23:30:00.123456Z"`,
		`'2026-03-29 01:30:00'::timestamp`:                  `"2026-03-29T01:30:00"`,
		`'infinity'::timestamptz`:                           `"infinity"`,
		`'2026-03-29'::date`:                                `"2026-03-29"`,
		`'<&>' || chr(10)`:                                  `"<&>\n"`,
		`'{1,2}'::int[]`:                                    `"{1,2}"`,
		`'0190163d-8694-739b-aea5-966c26f8ad91'::uuid`:      `"0190163d-8694-739b-aea5-966c26f8ad91"`,
		`(select to_char(now(), 'YYYY') > '2000')`:          `true`,
		`'1 day'::interval`:                                 `"1 day"`,
		`set_config('datestyle', 'german', true)::text || ' is read'`: `"German, DMY is read"`,
	} {
		t.Run(text, func(t *testing.T) { wantValue(t, w, text, want) })
	}
}

func TestSQLiteValuesAreExact(t *testing.T) {
	w := sqliteWorld(t)
	w.exec(t, `create table kinds (flag boolean, doc json, at timestamp, amount decimal(10, 2))`)
	w.exec(t, `insert into kinds values (1, '{"a": 9007199254740993}', '2026-03-29 01:30:00', 1.5)`)
	for text, want := range map[string]string{
		`9007199254740993`:          `9007199254740993`,
		`0.1`:                       `0.1`,
		`9e999`:                     `"+Inf"`,
		`null`:                      `null`,
		`x'00ff'`:                   `"AP8="`,
		`'<&>'`:                     `"<&>"`,
		`(select flag from kinds)`:  `true`,
		`max(flag) from kinds --`:   `1`,
		`flag from kinds --`:        `true`,
		`doc from kinds --`:         `{"a":9007199254740993}`,
		`at from kinds --`:          `"2026-03-29T01:30:00Z"`,
		`amount from kinds --`:      `1.5`,
		`json(doc) from kinds --`:   `"{\"a\":9007199254740993}"`,
		`cast(x'ff' as text) || ''`: ``,
	} {
		t.Run(text, func(t *testing.T) { wantValue(t, w, text, want) })
	}
}

// wantValue asks for one value; an empty want is a refusal.
func wantValue(t *testing.T, w world, text, want string) {
	t.Helper()
	d := open(t, w.url, sqldest.Options{})
	before, after, _ := strings.Cut(text, " from kinds --")
	if before != text {
		after = " from kinds"
	}
	ev := d.Send(t.Context(), send(t, d, "v", 1, sqldest.VerbQuery, "select "+before+" as v"+after))
	switch {
	case want == "" && ev.Kind == semel.EvRefused:
	case ev.Kind != semel.EvConfirmed:
		t.Errorf("got %s %q", ev.Kind, ev.Reason)
	default:
		if diff := cmp.Diff(`{"rows":[{"v":`+want+`}]}`, string(ev.Result.Body)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// M27: an argument reaches the database as it was given.
func TestArgumentsAreExact(t *testing.T) {
	large, _ := new(big.Int).SetString("123456789012345678901234567890", 10)
	at := time.Date(2026, 3, 29, 1, 30, 0, 123456000, time.FixedZone("", 7200))
	each(t, func(t *testing.T, w world) {
		d := open(t, w.url, sqldest.Options{})
		for _, test := range []struct {
			arg            any
			cast           string // on PostgreSQL
			postgres, lite string
		}{
			{int64(9007199254740993), "bigint", `9007199254740993`, `9007199254740993`},
			{uint64(math.MaxUint64), "numeric", `18446744073709551615`, ``},
			{json.Number("1.10"), "numeric", `1.10`, `1.1`},
			{large, "numeric", `123456789012345678901234567890`, ``},
			{"123", "text", `"123"`, `"123"`},
			{"o'brien \\ <é>", "text", `"o'brien \\ <é>"`, `"o'brien \\ <é>"`},
			{true, "boolean", `true`, `1`},
			{nil, "integer", `null`, `null`},
			{map[string]any{"a": 1}, "jsonb", `{"a":1}`, `"{\"a\":1}"`},
			{at, "timestamptz", `"2026-03-28T23:30:00.123456Z"`, `"2026-03-29T01:30:00.123456+02:00"`},
			{0.1, "float8", `0.1`, `0.1`},
		} {
			text, want := "select $1::"+test.cast+" as v", test.postgres
			if w.name == "sqlite" {
				text, want = "select ? as v", test.lite
			}
			ev := d.Send(t.Context(), send(t, d, "v", 1, sqldest.VerbQuery, text, test.arg))
			switch {
			case want == "" && ev.Kind == semel.EvRefused && strings.Contains(ev.Reason, "pass it as text"):
			case ev.Kind != semel.EvConfirmed:
				t.Errorf("%v: got %s %q", test.arg, ev.Kind, ev.Reason)
			default:
				if diff := cmp.Diff(`{"rows":[{"v":`+want+`}]}`, string(ev.Result.Body)); diff != "" {
					t.Errorf("%v (-want +got):\n%s", test.arg, diff)
				}
			}
		}
	})
}
