package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel/store/postgres"
	"github.com/semel-dev/semel/store/postgres/postgrestest"
)

// BenchmarkEffect measures one guarded effect, a claim and its outcome, on a
// durable server: through the store, and as two plain commits on a connection
// per caller, which is the rate that the store has to beat. The names say the
// number of callers; fsync=1ms stands for a slow disk.
func BenchmarkEffect(b *testing.B) {
	for _, disk := range []struct {
		name     string
		settings map[string]string
	}{
		{"disk=local", nil},
		{"disk=slow", map[string]string{"commit_delay": "1000", "commit_siblings": "0"}},
	} {
		server := postgrestest.Start(b, postgrestest.Options{Durable: true, MaxConnections: 300, Settings: disk.settings})
		url, err := server.Create(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		s := open(b, url, postgres.Options{Create: true})
		conn := session(b, url)
		if _, err := conn.Exec(b.Context(), createPlain); err != nil {
			b.Fatal(err)
		}
		for _, callers := range []int{1, 8, 32, 128, 256} {
			b.Run(fmt.Sprintf("%s/plain/%d", disk.name, callers), func(b *testing.B) { plain(b, url, callers) })
			b.Run(fmt.Sprintf("%s/store/%d", disk.name, callers), func(b *testing.B) {
				const position = `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint`
				before := query[int64](b, conn, position)
				share(b, callers, func(int) error {
					o, err := s.Commit(b.Context(), claimOf(b, time.Now()))
					if err == nil {
						_, err = s.Commit(b.Context(), confirmationOf(b, o))
					}
					return err
				})
				b.ReportMetric(float64(query[int64](b, conn, position)-before)/float64(b.N), "WAL-B/effect")
			})
		}
	}
}

const createPlain = `
create table plain (
  id          uuid primary key,
  fingerprint bytea not null,
  state       smallint not null,
  attempt     integer not null default 1,
  lease_until timestamptz,
  result      jsonb,
  created_at  timestamptz not null default now()
)`

func plain(b *testing.B, url string, callers int) {
	conns := make([]*pgx.Conn, callers)
	for i := range conns {
		var err error
		if conns[i], err = pgx.Connect(b.Context(), url); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = conns[i].Close(context.Background()) })
	}
	share(b, callers, func(caller int) error {
		id := [16]byte(newID(time.Now()))
		const claim = `insert into plain (id, fingerprint, state) values ($1, $2, 1) on conflict do nothing`
		if _, err := conns[caller].Exec(b.Context(), claim, id, make([]byte, 33)); err != nil {
			return err
		}
		const outcome = `update plain set state = 2, result = $2 where id = $1 and attempt = 1`
		_, err := conns[caller].Exec(b.Context(), outcome, id, `{"ok":true,"id":"ch_123456789012"}`)
		return err
	})
}

// share has the callers do b.N effects together.
func share(b *testing.B, callers int, effect func(caller int) error) {
	left := make(chan struct{}, b.N)
	for range b.N {
		left <- struct{}{}
	}
	close(left)
	var wg sync.WaitGroup
	b.ResetTimer()
	for caller := range callers {
		wg.Go(func() {
			for range left {
				if err := effect(caller); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "effects/s")
}
