package examples_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
	sqldest "github.com/semel-dev/semel/destination/sql"
	"github.com/semel-dev/semel/drill"
	"github.com/semel-dev/semel/examples/checkout"
	"github.com/semel-dev/semel/examples/helpdesk"
	"github.com/semel-dev/semel/examples/outreach"
	"github.com/semel-dev/semel/examples/publishing"
	"github.com/semel-dev/semel/store/postgres"
	"github.com/semel-dev/semel/store/postgres/postgrestest"
)

// drilled is an example for a drill, whose destinations are simulated.
type drilled struct {
	definition semel.WorkflowDefinition
	options    drill.Options
	// schedules is the least number of them.
	schedules int
	// want holds some of the worst outcomes.
	want map[drill.Fault]outcomes
}

// outcomes are those of steps.
type outcomes map[string]drill.Outcome

func TestDrillFindsNothingTwiceAndNothingLost(t *testing.T) {
	for name, example := range map[string]func(*testing.T) drilled{
		"publishing": drillPublishing, "outreach": drillOutreach, "checkout": drillCheckout, "helpdesk": drillHelpdesk,
		"billing": drillBilling, "helpdesk-yaml": drillHelpdeskYAML,
	} {
		t.Run(name, func(t *testing.T) {
			for store, open := range map[string]opener{"sqlite": nil, "postgres": inPostgres(t)} {
				t.Run(store, func(t *testing.T) {
					example := example(t)
					pairs := 40
					if open != nil {
						pairs = -1
					}
					example.options.Open, example.options.Pairs = open, pairs
					example.check(t, drill.Test(t, example.definition, example.options))
				})
			}
		})
	}
}

func (d *drilled) check(t *testing.T, v *drill.Verdict) {
	t.Helper()
	if v.Schedules < d.schedules {
		t.Errorf("%d schedules, want at least %d", v.Schedules, d.schedules)
	}
	cells := map[drill.Fault]outcomes{}
	for _, r := range v.Rows {
		cells[r.Fault] = r.Cells
	}
	for fault, want := range d.want {
		for step, want := range want {
			if got := cells[fault][step]; got != want {
				t.Errorf("%s, %s: %q, want %q", fault, step, got, want)
			}
		}
	}
}

func drillPublishing(t *testing.T) drilled {
	return drilled{
		definition: publishing.New(publishing.Destinations{Platform: nowhere(t, "platform"), Database: noDatabase(t, "site")}).Definition(),
		options: drill.Options{
			Input: publishing.Submission{Slug: "retry", Round: 1},
			Answers: map[string]any{
				"read":   sqldest.Found[publishing.Article]{Rows: []publishing.Article{{Slug: "retry", Title: "Retry", Body: "Safe to press."}}},
				"create": publishing.Published{ID: "art_1", Slug: "retry"},
			},
		},
		schedules: 180,
		want: map[drill.Fault]outcomes{
			drill.DiesAfter:       {"create": drill.Once, "record": drill.Once},
			drill.AnswerLost:      {"create": drill.Once, "record": drill.Once},
			drill.DiesLandsLate:   {"create": drill.Once, "record": drill.Once},
			drill.LookupBlind:     {"create": drill.Once},
			drill.LookupStale:     {"create": drill.Once},
			drill.Refused:         {"create": drill.Never},
			drill.ApprovalRevoked: {"create": drill.Never},
			drill.ApprovalEnds:    {"create": drill.Once},
		},
	}
}

func drillOutreach(t *testing.T) drilled {
	return drilled{
		definition: outreach.New(outreach.Destinations{Mail: nowhere(t, "mail")}).Definition(),
		options: drill.Options{
			Input:  outreach.Prospect{Campaign: "spring", Address: "ann@example.com", Name: "Ann"},
			Events: map[string]any{"reply": outreach.Reply{Text: "yes"}},
		},
		schedules: 150,
		want: map[drill.Fault]outcomes{
			drill.LeaseLapses:  {"mail-hello": drill.Once},
			drill.AnswerLost:   {"mail-hello": drill.Unknown},
			drill.AnswerLate:   {"mail-hello": drill.Once},
			drill.Refused:      {"mail-hello": drill.Never},
			drill.EventEarly:   {"mail-hello": drill.Once},
			drill.CancelDuring: {"mail-hello": drill.Once},
		},
	}
}

func drillCheckout(t *testing.T) drilled {
	return drilled{
		definition: checkout.New(checkout.Destinations{Payments: nowhere(t, "payments")}).Definition(),
		options:    drill.Options{Input: checkout.Order{Item: "notebook", Cents: 1200, Customer: "ann@example.com"}},
		schedules:  70,
		want: map[drill.Fault]outcomes{
			drill.DiesAfter:     {"charge": drill.Once},
			drill.AnswerLost:    {"charge": drill.Once},
			drill.SecondTrigger: {"charge": drill.Once},
			drill.Refused:       {"charge": drill.Never},
			drill.ResendRefused: {"charge": drill.Unknown},
			drill.WindowOver:    {"charge": drill.Unknown},
		},
	}
}

// sweepOutcomes are those of the help desk, in Go and in YAML.
var sweepOutcomes = map[drill.Fault]outcomes{
	drill.DiesAfter:   {"breached/claim": drill.Once, "breached/escalate": drill.Once, "breached/notify": drill.Unknown},
	drill.LeaseLapses: {"breached/claim": drill.Once, "breached/escalate": drill.Once, "breached/notify": drill.Once},
	drill.SecondRun:   {"breached/claim": drill.Once, "breached/escalate": drill.Once, "breached/notify": drill.Once},
	drill.AnswerLost:  {"breached/claim": drill.Once, "breached/escalate": drill.Once, "breached/notify": drill.Unknown},
	drill.Refused:     {"breached/claim": drill.Never, "breached/escalate": drill.Never, "breached/notify": drill.Never},
}

func drillHelpdesk(t *testing.T) drilled {
	return drilled{
		definition: helpdesk.New(helpdesk.Destinations{Database: noDatabase(t, "support"), Desk: nowhere(t, "desk"), Mail: nowhere(t, "mail")}).Definition(),
		options: drill.Options{Answers: map[string]any{
			"find":  sqldest.Found[helpdesk.Ticket]{Rows: []helpdesk.Ticket{{ID: "T-1", Title: "Printer on fire"}, {ID: "T-2", Title: "No coffee"}}},
			"claim": sqldest.Verdict[struct{}]{Won: true},
		}},
		schedules: 250, want: sweepOutcomes,
	}
}

func drillHelpdeskYAML(t *testing.T) drilled {
	definition, options := sampled(t, "helpdesk-yaml/sla.yaml", "env:TICKETS_URL", "sqlite:tickets.db")
	return drilled{definition: definition, options: options, schedules: 250, want: sweepOutcomes}
}

func drillBilling(t *testing.T) drilled {
	definition, options := sampled(t, "billing/nightly_billing.yaml", "env:LEDGER_URL", "sqlite:ledger.db")
	return drilled{
		definition: definition, options: options, schedules: 250,
		want: map[drill.Fault]outcomes{
			drill.DiesAfter:     {"bill/charge": drill.Once, "bill/mark_paid": drill.Once, "bill/receipt": drill.Unknown},
			drill.LeaseLapses:   {"bill/charge": drill.Once, "bill/mark_paid": drill.Once, "bill/receipt": drill.Once},
			drill.SecondRun:     {"bill/charge": drill.Once, "bill/mark_paid": drill.Once, "bill/receipt": drill.Once},
			drill.AnswerLost:    {"bill/charge": drill.Once, "bill/mark_paid": drill.Once, "bill/receipt": drill.Unknown},
			drill.LandsLate:     {"bill/charge": drill.Once, "bill/mark_paid": drill.Once, "bill/receipt": drill.Unknown},
			drill.Refused:       {"bill/charge": drill.Never, "bill/mark_paid": drill.Never, "bill/receipt": drill.Never},
			drill.ResendRefused: {"bill/charge": drill.Unknown, "bill/receipt": drill.Unknown},
			drill.WindowOver:    {"bill/charge": drill.Unknown},
			drill.RecordExpired: {"bill/charge": drill.Once, "bill/mark_paid": drill.Once, "bill/receipt": drill.Once},
		},
	}
}

// sampled is a workflow file with what its expressions ask for.
func sampled(t *testing.T, name string, instead ...string) (semel.WorkflowDefinition, drill.Options) {
	t.Helper()
	definition, config := load(t, name, instead...)
	s := definition.Sample()
	for _, unsure := range s.Unsure {
		t.Error(unsure)
	}
	o := drill.Options{Input: s.Input, Answers: map[string]any{}}
	for path, answer := range s.Answers {
		o.Answers[path] = answer
	}
	return definition.Workflow(config), o
}

// nowhere is a destination that a drill does not reach.
func nowhere(t *testing.T, name string) *httpdest.Destination {
	t.Helper()
	d, err := httpdest.New(httpdest.Options{Name: name, Base: "https://" + name + ".example.com"})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func noDatabase(t *testing.T, name string) *sqldest.Database {
	t.Helper()
	d, err := sqldest.New("postgres://localhost/"+name, sqldest.Options{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// opener opens an empty store for a drill.
type opener func(context.Context) (drill.Store, error)

// inPostgres takes turns with some databases, and empties each before it is used
// again.
func inPostgres(t *testing.T) opener {
	t.Helper()
	const most = 4 // stores that are open at a time
	server := postgrestest.Shared(t)
	free := make(chan string, most)
	for range most {
		free <- server.Database(t)
	}
	return func(ctx context.Context) (drill.Store, error) {
		url := <-free
		s, err := postgres.Open(ctx, url, postgres.Options{Create: true, Committers: 2, Readers: 2})
		if err != nil {
			free <- url
			return nil, err
		}
		return &lent{s, url, free}, nil
	}
}

// lent is a store whose database goes back empty.
type lent struct {
	*postgres.Store
	url  string
	free chan<- string
}

func (l *lent) Close() error {
	if err := l.Store.Close(); err != nil {
		return err
	}
	if err := empty(context.Background(), l.url); err != nil {
		return err
	}
	l.free <- l.url
	return nil
}

func empty(ctx context.Context, url string) error {
	const remove = `
do $$
declare name text;
begin
  for name in select tablename from pg_tables where schemaname = 'semel' and tablename not in ('store', 'schema_version') loop
    execute format('delete from semel.%I', name);
  end loop;
  update semel.store
  set swept = default, ahead = default;
end $$`
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, remove)
	return err
}
