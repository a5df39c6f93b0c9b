package sqldest_test

import (
	"context"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/destination/destinationtest"
	sqldest "github.com/semel-dev/semel/destination/sql"
)

// The effect is a row of the effect's name. SQLite has no network to lose an
// answer on.
func TestSQLiteKeepsTheContractOfDestinations(t *testing.T) {
	destinationtest.Test(t, func(t *testing.T) destinationtest.World {
		w := sqliteWorld(t)
		return suite(t, w, open(t, w.url, sqldest.Options{}), map[destinationtest.Manner]string{
			destinationtest.Succeeds: `insert into effect (name, manner) values (?, ?)`,
			destinationtest.Refuses:  `insert into effect (name, manner, happened) values (?, ?, null)`,
		})
	})
}

func TestPostgresKeepsTheContractOfDestinations(t *testing.T) {
	destinationtest.Test(t, func(t *testing.T) destinationtest.World {
		w := postgresWorld(t)
		_, address := newProxy(t, w.url)
		insert := `insert into effect (name, manner) values ($1, $2)`
		return suite(t, w, open(t, address, sqldest.Options{}), map[destinationtest.Manner]string{
			destinationtest.Succeeds:    insert,
			destinationtest.Refuses:     `insert into effect (name, manner, happened) values ($1, $2, null)`,
			destinationtest.LosesAnswer: insert,
			destinationtest.Hangs:       insert,
			destinationtest.Slow:        `insert into effect (name, manner) select $1, $2 from pg_sleep(0.3)`,
		})
	})
}

func suite(t *testing.T, w world, d *sqldest.Database, statements map[destinationtest.Manner]string) destinationtest.World {
	return destinationtest.World{
		Destination: d,
		Request: func(name string, m destinationtest.Manner) (semel.Request, semel.Contract, bool) {
			text, ok := statements[m]
			if !ok {
				return semel.Request{}, semel.Contract{}, false
			}
			r, err := d.NewRequest(sqldest.VerbExec, text, name, string(m))
			if err != nil {
				t.Error(err)
			}
			return r, d.Contract(), true
		},
		Effects: func(name string) int { return w.effects(t, name) },
		Close:   func() error { return d.Close(context.Background()) },
	}
}
