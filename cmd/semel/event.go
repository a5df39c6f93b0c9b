package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/semel-dev/semel"
)

const eventSendHelp = `Send an event: it wakes the runs that wait for its name and match, and starts the
runs of workflows that it triggers. An event that nobody waits for yet is kept,
and counts when somebody does. One event serves one wait of a workflow.

--id tells it from others of its name: sending it twice is one event. Take what
names it where it comes from, such as the ID of a webhook. Without --id a fresh
one is minted and printed, and sending it again would be another event.

The exit code is 0 also for an event that was sent before.`

func newEvent(sh *shell) *cobra.Command {
	return group("event", "Send events to runs, and list them",
		"An event says that something happened elsewhere. Runs wait for it by its name and\nmatch, and workflows can start with it.",
		"  semel event send order.paid --match 4417 --id pay_99812\n  semel event list --name order.paid",
		newEventSend(sh), newEventList(sh))
}

func newEventSend(sh *shell) *cobra.Command {
	var match, id, data, by string
	cmd := &cobra.Command{
		Use: "send NAME [--id ID]", Short: "Send an event", Long: eventSendHelp,
		Example: "  semel event send order.paid --match 4417 --id pay_99812 --data '{\"amount\":500}'\n  semel event send reply.received --match lead-12 --id msg-7 --data @reply.json",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("%s needs the name of one event: for example semel event send order.paid --match 4417 --id pay_99812", cmd.CommandPath())
			}
			return nil
		},
		RunE: ours(func(cmd *cobra.Command, args []string) error {
			e := semel.InboxEvent{ID: id, Name: args[0], Match: match, By: by}
			minted := id == ""
			if minted {
				e.ID = uuid.Must(uuid.NewV7()).String()
			}
			if data != "" {
				var err error
				if e.Data, err = sh.jsonOf("--data", data, semel.MaxInput); err != nil {
					return err
				}
			}
			if err := aboutFlag(e.Validate(), "--data"); err != nil {
				return err
			}
			return sh.sendEvent(cmd.Context(), e, minted)
		}),
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(&onceText{to: &id}, "id", "what tells it from others of its name, the same whenever it is sent")
	f.Var(&onceText{to: &match}, "match", "what it is about, for example an order number")
	f.Var(&onceText{to: &data}, "data", "what it says: JSON, @FILE, or - for stdin")
	f.StringVar(&by, "by", person(), "who sends it")
	f.Lookup("by").DefValue = "user@host"
	return cmd
}

// sentJSON is an event with what sending it did.
type sentJSON struct {
	eventEntryJSON
	Existing bool `json:"existing"` // it was sent before, nothing was changed
}

func (sh *shell) sendEvent(ctx context.Context, e semel.InboxEvent, minted bool) error {
	k, err := sh.openKeeper(ctx)
	if err != nil {
		return err
	}
	defer sh.shut("the database", k.Close)
	if minted {
		sh.say("warning: no --id was given; this event gets %s. To send this one again, use --id %s: without it, that is another event", e.ID, e.ID)
	}
	waiting, err := waitingFor(ctx, k, e)
	if err != nil {
		return err
	}
	existing, err := k.Send(ctx, e)
	if errors.Is(err, semel.ErrUnconfirmed) {
		return fmt.Errorf("%w\nThe event may have been sent. Send it again with the same ID: --id %s", err, quoteForShell(e.ID))
	}
	if err != nil {
		return err
	}
	entry, err := k.entry(ctx, e.Name, e.ID)
	if err != nil {
		return err
	}
	if sh.json() {
		return sh.print(sentJSON{describeEntry(&entry), existing})
	}
	if err := sh.eventTable(&entry); err != nil {
		return err
	}
	sh.say("%s", sentWords(&entry, existing, waiting))
	if existing && differs(&entry.InboxEvent, &e) {
		sh.say("warning: the event that was sent before has another match or other data, and stays as it is: another event needs an ID of its own")
	}
	return nil
}

// shownWaiting is how many of the runs that wait for an event are named.
const shownWaiting = 10

// waitingFor names runs that wait for the event.
func waitingFor(ctx context.Context, k *keeper, e semel.InboxEvent) (waiting []semel.ID, err error) {
	for r, err := range k.ListRuns(ctx, semel.RunFilter{Event: e.Name, Match: e.Match, Limit: shownWaiting}) {
		if err != nil {
			return nil, err
		}
		waiting = append(waiting, r.ID)
	}
	return waiting, nil
}

// differs reports whether two events of one ID say different things.
func differs(was, is *semel.InboxEvent) bool {
	a := semel.Request{Kind: "event", Body: was.Data, MediaType: "application/json"}
	b := semel.Request{Kind: "event", Body: is.Data, MediaType: "application/json"}
	return was.Match != is.Match || (len(was.Data) == 0) != (len(is.Data) == 0) || len(was.Data) > 0 && len(a.Diff(&b)) > 0
}

// entry reads an event with what became of it.
func (k *keeper) entry(ctx context.Context, name, id string) (semel.InboxEntry, error) {
	for entry, err := range k.Inbox(ctx, semel.EventFilter{Name: name, ID: id, Limit: 1}) {
		return entry, err
	}
	return semel.InboxEntry{}, fmt.Errorf("event %s %q: %w", name, id, semel.ErrNotFound)
}

// sentWords says what became of an event that was sent now or before.
func sentWords(e *semel.InboxEntry, existing bool, waiting []semel.ID) string {
	text := "accepted"
	if existing {
		text = "this event was sent before, at " + moment(e.At) + "; nothing was changed"
	}
	switch {
	case len(e.TakenBy) > 0 || len(e.Started) > 0:
		text += "; " + becameWords(e)
	case existing:
		text += "; it is kept, and no run has taken it yet"
	case len(waiting) > 0:
		text += "; run " + idList(waiting) + " waits for it and goes on with the next free worker"
	default:
		text += "; no run waits for it now: it is kept for the first that does"
	}
	return text
}

// becameWords says which runs took an event and which it started.
func becameWords(e *semel.InboxEntry) string {
	var parts []string
	if len(e.TakenBy) > 0 {
		parts = append(parts, "taken by run "+idList(e.TakenBy))
	}
	if len(e.Started) > 0 {
		parts = append(parts, "started run "+idList(e.Started))
	}
	if len(parts) == 0 {
		return "kept: no run has taken it"
	}
	return strings.Join(parts, ", ")
}

func idList(ids []semel.ID) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = id.String()
	}
	return strings.Join(words, ", ")
}

func (sh *shell) eventTable(e *semel.InboxEntry) error {
	out := &tolerant{to: sh.out}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "event\t%s\nid\t%s\n", oneLine(e.Name), oneLine(e.ID))
	if e.Match != "" {
		fmt.Fprintf(table, "match\t%s\n", oneLine(e.Match))
	}
	fmt.Fprintf(table, "arrived\t%s\n", moment(e.At))
	_ = table.Flush() // the writer keeps its error
	if out.err != nil {
		return fmt.Errorf("write to stdout: %w", out.err)
	}
	return nil
}

// eventEntryJSON is an event as a program reads it.
type eventEntryJSON struct {
	Event     string          `json:"event"`
	ID        string          `json:"id"`
	Match     string          `json:"match"`
	Data      json.RawMessage `json:"data"`
	By        string          `json:"by,omitempty"`
	At        *time.Time      `json:"at"`
	Delivered bool            `json:"delivered"`
	TakenBy   []string        `json:"taken_by"`
	Started   []string        `json:"started"`
}

func describeEntry(e *semel.InboxEntry) eventEntryJSON {
	return eventEntryJSON{
		Event: e.Name, ID: e.ID, Match: e.Match, Data: rawOrNull(e.Data), By: e.By, At: instant(e.At), Delivered: e.Delivered,
		TakenBy: idTexts(e.TakenBy), Started: idTexts(e.Started),
	}
}

func idTexts(ids []semel.ID) []string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	return texts
}
