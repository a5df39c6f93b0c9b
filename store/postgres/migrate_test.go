package postgres_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/store/postgres"
	"github.com/semel-dev/semel/store/postgres/postgrestest"
)

// M41: workers on many machines may all create the schema at their first start.
func TestManyCreateAtOnce(t *testing.T) {
	url := postgrestest.Shared(t).Database(t)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			s, err := postgres.Open(t.Context(), url, postgres.Options{Create: true, Readers: 1, Committers: 1})
			if err != nil {
				t.Errorf("open: %v", err)
				return
			}
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
	wg.Wait()
	st, err := postgres.Status(t.Context(), url)
	if err != nil || st.Current != st.Latest || len(st.Pending) != 0 {
		t.Errorf("status: %+v, error %v, want nothing pending", st, err)
	}
}

func TestOpenRefusesOtherSchemas(t *testing.T) {
	for _, c := range []struct {
		name, sql, want string
		opts            postgres.Options
	}{
		{"none", `drop schema semel cascade`, "--create", postgres.Options{}},
		{"newer", `insert into semel.schema_version (version_id, is_applied) values (99, true)`, "upgrade semel", postgres.Options{}},
		{"newer, create", `insert into semel.schema_version (version_id, is_applied) values (99, true)`, "upgrade semel", postgres.Options{Create: true}},
		{"older", `delete from semel.schema_version where version_id > 0`, "semel migrate up", postgres.Options{}},
		{"somebody else's", `drop table semel.schema_version`, "not ours", postgres.Options{Create: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := migrated(t)
			if _, err := session(t, url).Exec(t.Context(), c.sql); err != nil {
				t.Fatal(err)
			}
			s, err := postgres.Open(t.Context(), url, c.opts)
			if err == nil {
				_ = s.Close()
				t.Fatal("opened it")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q does not say %q", err, c.want)
			}
		})
	}
}

// The script for people who apply it by hand makes the same tables.
func TestSQLMakesTheSchema(t *testing.T) {
	tables := func(conn *pgx.Conn) string {
		return query[string](t, conn, `
select coalesce(string_agg(c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ', ' order by c.relname, a.attnum), '')
from pg_class as c
join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0
where c.relnamespace = 'semel'::regnamespace
  and c.relname not like 'schema_version%'`)
	}
	byHand := session(t, postgrestest.Shared(t).Database(t))
	if _, err := byHand.Exec(t.Context(), "create schema semel;"+postgres.SQL()); err != nil {
		t.Fatal(err)
	}
	if got, want := tables(byHand), tables(session(t, migrated(t))); got != want {
		t.Errorf("by hand: %s\nmigrated: %s", got, want)
	}
}

// Section 6: a restored backup or a lossy failover may lack claims. No claim is
// made until a person vouches for it; outcomes still are.
func TestRestoredServerRefusesClaims(t *testing.T) {
	for _, change := range []string{`timeline = timeline - 1`, `system_identifier = 1`} {
		t.Run(change, func(t *testing.T) {
			url := migrated(t)
			before := open(t, url, postgres.Options{})
			o := commit(t, before, claimOf(t, time.Now()))
			if _, err := session(t, url).Exec(t.Context(), `update semel.store set `+change); err != nil {
				t.Fatal(err)
			}
			s, other := open(t, url, postgres.Options{}), open(t, url, postgres.Options{})
			for _, s := range []*postgres.Store{s, other} {
				_, err := s.Commit(t.Context(), claimOf(t, time.Now()))
				if !errors.Is(err, semel.ErrUnavailable) || !strings.Contains(err.Error(), "semel store accept") {
					t.Fatalf("a claim: error %v, want ErrUnavailable with the next move", err)
				}
			}
			commit(t, s, confirmationOf(t, o))
			r, err := s.Restoration(t.Context())
			if err != nil || !r.Suspect || !r.WholeUntil.Equal(o.CreatedAt) {
				t.Fatalf("restoration: %+v, error %v, want suspect, whole until %v", r, err, o.CreatedAt)
			}
			if err := s.Accept(t.Context(), o.CreatedAt); err != nil {
				t.Fatal(err)
			}
			commit(t, s, claimOf(t, time.Now()))
			commit(t, other, claimOf(t, time.Now()))
			r, err = other.Restoration(t.Context())
			if err != nil || r.Suspect || !r.WholeUntil.Equal(o.CreatedAt) || r.AcceptedAt.Before(o.CreatedAt) {
				t.Errorf("after accept: %+v, error %v", r, err)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	s := open(t, migrated(t), postgres.Options{}) // the shared server does without fsync
	if !slices.ContainsFunc(s.Warnings(), func(w string) bool { return strings.HasPrefix(w, "fsync is off") }) {
		t.Errorf("warnings %q do not speak of fsync", s.Warnings())
	}
}
