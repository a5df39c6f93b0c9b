package check_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/check"
	"github.com/semel-dev/semel/connection"
	httpdest "github.com/semel-dev/semel/destination/http"
	sqldest "github.com/semel-dev/semel/destination/sql"
	"github.com/semel-dev/semel/examples/checkout"
	"github.com/semel-dev/semel/examples/helpdesk"
	"github.com/semel-dev/semel/examples/outreach"
	"github.com/semel-dev/semel/examples/publishing"
	"github.com/semel-dev/semel/workflowfile"
)

// TestShippedFilesAreNotFlagged: what is found in an example is a mistake of the
// example or of the rule. The demo fills its times in, which are those of its
// terms.go.
func TestShippedFilesAreNotFlagged(t *testing.T) {
	demo := strings.NewReplacer(
		"{{ .Tenant }}", "demo", "{{ .Base }}", "http://127.0.0.1:8089", "{{ .KeyWindow }}", "24h", "{{ .Timeout }}", "10s", "{{ .WriteTimeout }}", "1s",
		"{{ .MaxProcessing }}", "2s", "{{ .Backoff }}", "300ms", "{{ .VisibleAfter }}", "1s", "{{ .Ledger }}", "ledger.db",
	)
	for _, path := range []string{
		"../examples/billing/nightly_billing.yaml", "../examples/helpdesk-yaml/sla.yaml", "../demo/billing/nightly_billing.yaml",
	} {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(path), "semel.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		config, err := connection.Parse("semel.yaml", []byte(demo.Replace(string(text))))
		if err != nil {
			t.Fatal(err)
		}
		checks := config.Checks()
		checks.Cron = func(string) error { return nil }
		d, problems, err := workflowfile.Load(path, checks)
		if err != nil {
			t.Fatal(err)
		}
		r := check.File(d, problems, checks, check.FileOptions{})
		unflagged(t, r)
		if len(r.Steps) == 0 {
			t.Errorf("%s: no step has an answer", path)
		}
	}
}

func TestShippedGoWorkflowsAreNotFlagged(t *testing.T) {
	site := func(name string) *httpdest.Destination {
		d, err := httpdest.New(httpdest.Options{Name: name, Base: "https://" + name + ".example.com"})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	database, err := sqldest.New("postgres://localhost/site", sqldest.Options{Name: "database"})
	if err != nil {
		t.Fatal(err)
	}
	article := publishing.Article{Slug: "retry", Title: "Retry", Body: "Safe to press."}
	tests := map[string]struct {
		workflow semel.WorkflowDefinition
		options  check.Options
		steps    int
	}{
		"publishing": {
			publishing.New(publishing.Destinations{Platform: site("platform"), Database: database}).Definition(),
			check.Options{
				Input: publishing.Submission{Slug: "retry", Round: 1},
				Answers: map[string]any{
					"read":   sqldest.Found[publishing.Article]{Rows: []publishing.Article{article}},
					"create": publishing.Published{ID: "art_1", Slug: "retry"},
				},
			},
			2,
		},
		"outreach": {
			outreach.New(outreach.Destinations{Mail: site("mail")}).Definition(),
			check.Options{
				Input:   outreach.Prospect{Campaign: "spring", Address: "ann@example.com", Name: "Ann"},
				Answers: map[string]any{"reply": semel.ErrTimedOut},
			},
			3,
		},
		"checkout": {
			checkout.New(checkout.Destinations{Payments: site("payments")}).Definition(),
			check.Options{Input: checkout.Order{Item: "book", Cents: 1250, Customer: "ann"}},
			1,
		},
		"helpdesk": {
			helpdesk.New(helpdesk.Destinations{Database: database, Desk: site("desk"), Mail: site("mail")}).Definition(),
			check.Options{
				Answers: map[string]any{
					"find":  sqldest.Found[helpdesk.Ticket]{Rows: []helpdesk.Ticket{{ID: "T-1", Title: "printer"}, {ID: "T-2", Title: "phone"}}},
					"claim": sqldest.Verdict[struct{}]{Won: true},
				},
				Accept: []check.Accept{{Step: "breached/escalate", Code: workflowfile.CodeSingleWriter, Reason: "the sweep that won the breach is the only one that escalates it"}},
			},
			3,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r, err := check.Workflow(test.workflow, test.options)
			if err != nil {
				t.Fatal(err)
			}
			unflagged(t, r)
			if len(r.Steps) != test.steps {
				t.Errorf("%d steps with an effect, want %d:\n%s", len(r.Steps), test.steps, r.Text())
			}
		})
	}
}

func unflagged(t *testing.T, r check.Report) {
	t.Helper()
	for _, f := range r.Findings {
		if f.Accepted == "" {
			t.Error(f)
		}
	}
}
