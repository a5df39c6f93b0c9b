// Package helpdesk looks for tickets that waited too long. Of all sweeps and
// all workers that find the same breach, one claims it, in our own database;
// that one escalates the ticket and sends one mail.
package helpdesk

import (
	"net/http"
	"time"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
	sqldest "github.com/semel-dev/semel/destination/sql"
)

// Ticket is one whose time is over.
type Ticket struct {
	ID    string `json:"id"`
	Title string `json:"title"`
}

// Destinations are what a sweep reaches: our database with a table ticket (id,
// title, due_at, claimed_by), the help desk, and the mail provider.
type Destinations struct {
	Database *sqldest.Database
	Desk     *httpdest.Destination
	Mail     *httpdest.Destination
}

// New makes the workflow. Its input is empty: a sweep takes what it finds.
func New(d Destinations) semel.Workflow[struct{}] {
	a := actionsOf(d)
	return semel.Workflow[struct{}]{
		Name: "sla", Owner: "support@example.com",
		Schedules: []semel.Schedule{{Cron: "* * * * *", Zone: "UTC"}},
		Actions:   []semel.Definition{a.find.Definition(), a.claim.Definition(), a.escalate.Definition(), a.notify.Definition()},
		Func: func(ctx semel.Context, _ struct{}) error {
			now, err := semel.Now(ctx, "now")
			if err != nil {
				return err
			}
			breached, err := semel.Do(ctx, a.find, now.UTC().Format(time.RFC3339))
			if err != nil {
				return err
			}
			id := func(t Ticket) string { return t.ID }
			return semel.Each(ctx, "breached", breached.Rows, id, 4, func(ctx semel.Context, t Ticket) error {
				verdict, err := semel.Do(ctx, a.claim, Claim{Ticket: t.ID, By: string(ctx.Run().Key)})
				if err != nil || !verdict.Won {
					return err // another sweep has it, and does the rest
				}
				if _, err := semel.Do(ctx, a.escalate, Status{Ticket: t.ID, Status: "escalated"}); err != nil {
					return err
				}
				_, err = semel.Do(ctx, a.notify, Mail{Reference: "breach-" + t.ID, To: "lead@example.com", Subject: t.Title + " waited too long"})
				return err
			})
		},
	}
}

// Claim makes a sweep the one that handles a breach.
type Claim struct {
	Ticket string
	By     string
}

// Status is what a ticket is set to.
type Status struct {
	Ticket string `json:"ticket"`
	Status string `json:"status"`
}

// Mail is one message.
type Mail struct {
	Reference string `json:"reference"`
	To        string `json:"to"`
	Subject   string `json:"subject"`
}

type actions struct {
	find     semel.Action[string, sqldest.Found[Ticket]]
	claim    semel.Action[Claim, sqldest.Verdict[struct{}]]
	escalate semel.Action[Status, struct{}]
	notify   semel.Action[Mail, struct{}]
}

func actionsOf(d Destinations) actions {
	a := actions{
		find: semel.Action[string, sqldest.Found[Ticket]]{
			Name: "find",
			Send: sqldest.Query[string, Ticket](d.Database, `select id, title from ticket where due_at < $1 and claimed_by is null order by id`,
				func(now string) []any { return []any{now} }),
		},
		claim: semel.Action[Claim, sqldest.Verdict[struct{}]]{
			Name: "claim", // no Key: each sweep tries once
			Send: sqldest.ClaimOnce[Claim, struct{}](d.Database, `update ticket set claimed_by = $1 where id = $2 and claimed_by is null`,
				func(c Claim) []any { return []any{c.By, c.Ticket} }),
		},
		escalate: semel.Action[Status, struct{}]{
			Name: "escalate",
			Key:  func(s Status) string { return "breach-" + s.Ticket },
			Send: httpdest.Call[Status, struct{}](d.Desk, http.MethodPut, "/tickets/{body.ticket}/status"),
		},
		notify: semel.Action[Mail, struct{}]{
			Name: "notify",
			Key:  func(m Mail) string { return m.Reference },
			Send: httpdest.Post[Mail, struct{}](d.Mail, "/v1/messages"),
		},
	}
	a.escalate.Send.Contract = semel.Contract{Effect: semel.SetsValue, Protection: semel.Absolute, Timeout: 10 * time.Second}
	a.notify.Send.Contract = semel.Contract{Effect: semel.External, Protection: semel.Unprotected, Timeout: 10 * time.Second}
	return a
}
