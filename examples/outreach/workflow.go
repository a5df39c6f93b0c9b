// Package outreach writes to a prospect, and writes again after some days,
// until a reply comes.
//
// The provider offers no key and no lookup. When it loses an answer, nobody can
// know whether the mail went out: the sequence stops there until a person has
// looked, and no prospect gets a mail twice.
package outreach

import (
	"errors"
	"time"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
)

// Prospect is somebody to write to in a campaign.
type Prospect struct {
	Campaign string `json:"campaign"`
	Address  string `json:"address"`
	Name     string `json:"name"`
}

// Mail is one message. Its reference is the key of the effect, too.
type Mail struct {
	Reference string `json:"reference"`
	To        string `json:"to"`
	Subject   string `json:"subject"`
	Text      string `json:"text"`
}

// Sent is the provider's answer.
type Sent struct {
	ID string `json:"id"`
}

// Reply is the data of the event "reply", whose match is the address that it
// came from.
type Reply struct {
	Text string `json:"text"`
}

// Ending is the result of a sequence.
type Ending struct {
	Mails int    `json:"mails"`
	Reply string `json:"reply,omitzero"`
}

// Destinations are what the sequence reaches.
type Destinations struct {
	Mail *httpdest.Destination
	// Day is how long a day is: 0 means 24 hours, less is to watch it pass.
	Day time.Duration
}

// letters are what a sequence says, one after the other.
var letters = []struct{ name, subject, text string }{
	{"hello", "Your invoices", "how do you make sure that nobody is charged twice?"},
	{"reminder", "Re: Your invoices", "did you find the time to think about it?"},
	{"farewell", "Re: Your invoices", "this is my last mail; write whenever it suits you."},
}

// New makes the workflow.
func New(d Destinations) semel.Workflow[Prospect] {
	day := d.Day
	if day == 0 {
		day = 24 * time.Hour
	}
	mail := semel.Action[Mail, Sent]{
		Name: "mail",
		Key:  func(m Mail) string { return m.Reference },
		Send: httpdest.Post[Mail, Sent](d.Mail, "/v1/messages"),
	}
	mail.Send.Contract = semel.Contract{Effect: semel.External, Protection: semel.Unprotected, Timeout: 10 * time.Second}

	return semel.Workflow[Prospect]{
		Name: "outreach", Owner: "sales@example.com",
		Key:     func(p Prospect) string { return p.Campaign + "/" + p.Address },
		Actions: []semel.Definition{mail.Definition()},
		Func: func(ctx semel.Context, p Prospect) error {
			for n, l := range letters {
				_, err := semel.Do(ctx.Named("mail-"+l.name), mail, Mail{
					Reference: p.Campaign + "/" + p.Address + "/" + l.name,
					To:        p.Address, Subject: l.subject, Text: "Dear " + p.Name + ", " + l.text,
				})
				if err != nil {
					return err
				}
				// Two days of rest. A reply that comes meanwhile is kept, and ends
				// the wait that follows at once.
				if err := semel.Sleep(ctx, "rest-after-"+l.name, 2*day); err != nil {
					return err
				}
				reply, err := semel.Wait[Reply](ctx.Named("reply-to-"+l.name), "reply", p.Address, day)
				if err == nil {
					return ctx.Return(Ending{Mails: n + 1, Reply: reply.Text})
				}
				if !errors.Is(err, semel.ErrTimedOut) {
					return err
				}
			}
			return ctx.Return(Ending{Mails: len(letters)})
		},
	}
}
