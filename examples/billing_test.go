package examples_test

import (
	"database/sql"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/connection"
	"github.com/semel-dev/semel/drill"
	"github.com/semel-dev/semel/sandbox"
	"github.com/semel-dev/semel/store/postgres"
	"github.com/semel-dev/semel/store/postgres/postgrestest"
	"github.com/semel-dev/semel/store/sqlite"
	"github.com/semel-dev/semel/workflowfile"
)

// TestBillingKilledAnywhere kills the worker of the YAML example before and
// after each call of a port. Charges and payments happen once each; only a
// receipt may end unknown, since the mailer knows no key.
func TestBillingKilledAnywhere(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		killBilling(t, func() (func() (drill.Store, error), error) {
			path := filepath.Join(t.TempDir(), "semel.db")
			return func() (drill.Store, error) {
				return sqlite.Open(t.Context(), path, sqlite.Options{Create: true})
			}, nil
		})
	})
	t.Run("postgres", func(t *testing.T) {
		url := postgrestest.Shared(t).Database(t)
		open := func() (drill.Store, error) {
			return postgres.Open(t.Context(), url, postgres.Options{Create: true})
		}
		killBilling(t, func() (func() (drill.Store, error), error) { return open, emptied(t, url) })
	})
}

func killBilling(t *testing.T, fresh func() (func() (drill.Store, error), error)) {
	r, err := drill.Interrupt(t.Context(), drill.Subject{World: func() (drill.World, error) {
		open, err := fresh()
		if err != nil {
			return drill.World{}, err
		}
		return billing(t, open)
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Findings {
		t.Error(f)
	}
	t.Logf("billing: %d points at which it can be killed, %d ended unknown", len(r.Points), r.Unknown)
	const least = 50
	if len(r.Points) < least {
		t.Errorf("%d points, want at least %d: %v", len(r.Points), least, r.Calls)
	}
}

// billing is a night with two invoices due, in a copy of the example.
func billing(t *testing.T, open func() (drill.Store, error)) (drill.World, error) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("billing")); err != nil {
		return drill.World{}, err
	}
	ledger, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "ledger.db")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		return drill.World{}, err
	}
	if err := load(ledger, filepath.Join(dir, "schema.sql")); err != nil {
		return drill.World{}, err
	}
	provider, err := sandbox.New(sandbox.Options{Delay: -1})
	if err != nil {
		return drill.World{}, err
	}
	server := httptest.NewServer(provider)
	config, err := reachable(filepath.Join(dir, "semel.yaml"), server.URL)
	if err != nil {
		return drill.World{}, err
	}
	definition, problems, err := workflowfile.Load(filepath.Join(dir, "nightly_billing.yaml"), workflowfile.Checks{})
	if definition == nil {
		return drill.World{}, fmt.Errorf("%v %w", problems, err)
	}
	night, err := definition.New("2026-03-01", []byte(`{"day":"2026-03-01"}`))
	return drill.World{
		Open: open, Workflows: []semel.WorkflowDefinition{definition.Workflow(config)}, Resolve: config.Resolve,
		Start:   []semel.NewRun{night},
		Effects: func() (map[string]int, error) { return happened(provider, ledger) },
		Want:    []string{"charges 4417", "charges 4418", "paid 4417", "paid 4418", "messages 4417", "messages 4418"},
		Close: func() {
			_ = config.Close(t.Context())
			server.Close()
			_ = provider.Close()
			_ = ledger.Close()
		},
	}, err
}

func load(ledger *sql.DB, file string) error {
	schema, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	_, err = ledger.Exec(string(schema))
	return err
}

// reachable is the example's configuration, leading to a sandbox and a ledger
// of its own.
func reachable(file, base string) (*connection.Config, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	own := strings.NewReplacer("http://127.0.0.1:8089", base, "env:LEDGER_URL", "sqlite:ledger.db").Replace(string(text))
	return connection.Parse(file, []byte(own))
}

// happened counts charges and mails at the provider, and payments in the
// ledger.
func happened(provider *sandbox.Server, ledger *sql.DB) (map[string]int, error) {
	effects := map[string]int{}
	for _, e := range provider.Effects() {
		effects[fmt.Sprintf("%s %s", e.Resource, e.Reference)]++
	}
	rows, err := ledger.Query("select id from invoices where charge is not null")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		effects["paid "+id]++
	}
	return effects, rows.Err()
}

// emptied removes what an earlier world left in a database.
func emptied(t *testing.T, url string) error {
	const truncate = `
do $$
declare name text;
begin
  for name in select tablename from pg_tables where schemaname = 'semel' and tablename not in ('store', 'schema_version') loop
    execute format('truncate semel.%I', name);
  end loop;
end $$`
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(t.Context()) }()
	_, err = conn.Exec(t.Context(), truncate)
	return err
}
