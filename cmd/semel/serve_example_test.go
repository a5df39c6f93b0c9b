package main

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel/examples/helpdesk/desk"
	"github.com/semel-dev/semel/sandbox"
)

// ship copies an example, but for the addresses of its providers.
func (f *office) ship(example string, addresses ...string) {
	f.Helper()
	from := filepath.Join("..", "..", "examples", example)
	entries, err := os.ReadDir(from)
	if err != nil {
		f.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			f.Fatal(err)
		}
		write(f.T, f.dir, e.Name(), strings.NewReplacer(addresses...).Replace(string(text)))
	}
}

// schema makes a database as schema.sql of the example says.
func (f *office) schema() string {
	f.Helper()
	text, err := os.ReadFile(filepath.Join(f.dir, "schema.sql"))
	if err != nil {
		f.Fatal(err)
	}
	return string(text)
}

// TestTwoSweepsOfTheHelpDesk: of two at once, one claims each breach.
func TestTwoSweepsOfTheHelpDesk(t *testing.T) {
	stores(t, func(t *testing.T, db string) {
		f := newOffice(t, db, sandbox.Options{})
		tickets := &desk.Desk{Lose: 1}
		at := httptest.NewServer(tickets)
		t.Cleanup(at.Close)
		f.ship("helpdesk-yaml", "http://127.0.0.1:8087", at.URL, "http://127.0.0.1:8089", f.url)
		f.ledger("TICKETS_URL", f.schema())
		f.start("serve", "--create")
		begin := time.Now().Add(3 * time.Second).UTC().Format(time.RFC3339)
		for _, key := range []string{"a", "b"} {
			f.semel(0, "run", "start", "sla", "--key", key, "--field", "now=2026-03-01T10:00:00Z", "--at", begin)
		}
		for _, key := range []string{"a", "b"} {
			f.semel(0, "run", "start", "sla", "--key", key, "--field", "now=2026-03-01T10:00:00Z", "--wait", "60s")
		}
		for _, id := range []string{"T-1", "T-2"} {
			if got := tickets.Status(id); got != "escalated" {
				t.Errorf("%s is %q", id, got)
			}
			if n := f.bank.Count(sandbox.Messages, "breach-"+id); n != 1 {
				t.Errorf("%d mails for %s, want one", n, id)
			}
		}
		if got := tickets.Status("T-3"); got != "" {
			t.Errorf("T-3 is %q, but is not overdue", got)
		}
	})
}
