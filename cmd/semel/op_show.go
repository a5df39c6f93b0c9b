package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/semel-dev/semel"
)

func newShow(sh *shell) *cobra.Command {
	var which selection
	cmd := &cobra.Command{
		Use: "show ID | --scope S --key K", Short: "Show the whole story of one operation",
		Long: `Show the whole story of one operation: what was asked, every attempt, what came
back, lookups, decisions, and what is safe to do next. Looking changes nothing.

The exit code is 0 whatever the outcome, since looking succeeded, and 2 if there
is no such operation.`,
		Example: "  semel op show 019b2c5e-7c1a-7b3e-9d2f-3a5b6c7d8e9f\n  semel op show --scope payments --key invoice-4417-charge --output json",
		Args:    atMostOne,
		RunE: ours(func(cmd *cobra.Command, args []string) error {
			if err := which.check(cmd, sh, args); err != nil {
				return err
			}
			return sh.show(cmd.Context(), which, args)
		}),
	}
	which.flags(cmd, sh)
	return cmd
}

func (sh *shell) show(ctx context.Context, which selection, args []string) error {
	store, d, err := sh.openToLook(ctx)
	if err != nil {
		return sh.notFound(err, "operation in "+d.String())
	}
	defer sh.shut("the database", store.Close)
	o, err := which.load(ctx, sh, store, args)
	if err != nil {
		return err
	}
	events, err := store.Events(ctx, o.ID)
	if err != nil {
		return err
	}
	now, err := store.Now(ctx)
	if err != nil {
		return err
	}
	if sh.json() {
		return sh.print(sh.describeStory(&o, events, now))
	}
	out := &tolerant{to: sh.out}
	sh.tellStory(out, &o, events, now)
	if out.err != nil {
		return fmt.Errorf("write to stdout: %w", out.err)
	}
	return nil
}

// storyJSON is an operation with all that is known about it.
type storyJSON struct {
	operationJSON
	Request  requestJSON   `json:"request"`
	Contract contractJSON  `json:"contract"`
	Attempts []attemptJSON `json:"attempts"`
	History  []eventJSON   `json:"history"`
}

// contractJSON is what the destination promises, with durations as people
// write them.
type contractJSON struct {
	Protection     semel.Protection `json:"protection"`
	Effect         semel.EffectKind `json:"effect,omitempty"`
	Metered        bool             `json:"metered,omitempty"`
	Owner          string           `json:"owner,omitempty"`
	Profile        string           `json:"profile,omitempty"`
	Window         string           `json:"window,omitempty"`
	KeyHeader      string           `json:"key_header,omitempty"`
	KeyQuoted      bool             `json:"key_quoted,omitempty"`
	Lookup         string           `json:"lookup,omitempty"`
	FoundIn        string           `json:"found_in,omitempty"`
	Check          string           `json:"check,omitempty"`
	NoEffectExit   []int            `json:"no_effect_exit,omitempty"`
	VisibleAfter   string           `json:"visible_after,omitempty"`
	AbsenceIsProof bool             `json:"absence_is_proof,omitempty"`
	MaxProcessing  string           `json:"max_processing,omitempty"`
	Timeout        string           `json:"timeout,omitempty"`
	OnFailed       semel.OnFailed   `json:"on_failed,omitempty"`
}

func describeContract(c *semel.Contract) contractJSON {
	return contractJSON{
		Protection: c.Protection, Effect: c.Effect, Metered: c.Metered, Owner: c.Owner, Profile: c.Profile, Window: declared(c.Window),
		KeyHeader: c.KeyHeader, KeyQuoted: c.KeyQuoted, Lookup: c.LookupURL, FoundIn: c.FoundIn, Check: c.Check, NoEffectExit: c.NoEffectExit,
		VisibleAfter: declared(c.VisibleAfter), AbsenceIsProof: c.AbsenceIsProof, MaxProcessing: declared(c.MaxProcessing),
		Timeout: declared(c.Timeout), OnFailed: c.OnFailed,
	}
}

// declared is a duration, empty where nobody declared one.
func declared(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return duration(d)
}

type attemptJSON struct {
	Number    int             `json:"number"`
	By        string          `json:"by"`
	ClaimedAt *time.Time      `json:"claimed_at"`
	SendBy    *time.Time      `json:"send_by"`
	ClosedAt  *time.Time      `json:"closed_at,omitempty"`
	Open      bool            `json:"open"`
	Outcome   semel.EventKind `json:"outcome"`
	Reason    string          `json:"reason,omitempty"`
}

type eventJSON struct {
	At        *time.Time      `json:"at"`
	Kind      semel.EventKind `json:"kind"`
	Attempt   int             `json:"attempt,omitempty"`
	By        string          `json:"by,omitempty"`
	Reason    string          `json:"reason,omitempty"`
	Reference string          `json:"reference,omitempty"`
	Result    *resultJSON     `json:"result,omitempty"`
	AskedAt   *time.Time      `json:"asked_at,omitempty"`
	Forced    bool            `json:"forced,omitempty"`
	Found     semel.State     `json:"found,omitempty"`
}

func (sh *shell) describeStory(o *semel.Operation, events []semel.Event, now time.Time) storyJSON {
	printed := o.Request.Kind == commandKind
	s := storyJSON{
		operationJSON: sh.describe(o, semel.Decide(o, o.Contract, now), now), Request: describeRequest(&o.Request, o.Fingerprint.String()),
		Contract: describeContract(&o.Contract), Attempts: []attemptJSON{}, History: []eventJSON{},
	}
	for _, a := range o.Attempts {
		s.Attempts = append(s.Attempts, attemptJSON{
			Number: a.Number, By: a.By, ClaimedAt: instant(a.ClaimedAt), SendBy: instant(a.SendBy),
			ClosedAt: instant(a.ClosedAt), Open: a.Open, Outcome: a.Outcome, Reason: a.Reason,
		})
	}
	for _, ev := range events {
		s.History = append(s.History, eventJSON{
			At: instant(ev.At), Kind: ev.Kind, Attempt: ev.Attempt, By: ev.By, Reason: ev.Reason,
			Reference: ev.Reference, Result: describeResult(ev.Result, printed), AskedAt: instant(ev.AskedAt), Forced: ev.Force, Found: ev.Correction,
		})
	}
	return s
}

// tellStory writes the story for people, the answer to "what now" first.
func (sh *shell) tellStory(w io.Writer, o *semel.Operation, events []semel.Event, now time.Time) {
	m := semel.Decide(o, o.Contract, now)
	a := sh.advise(o, m, now)
	fmt.Fprintln(w, sh.painted(o.StateAt(now), visible(a.headline)))
	for _, line := range a.why {
		fmt.Fprintln(w, visible(line))
	}
	fmt.Fprintln(w)
	sh.facts(w, o, now)

	fmt.Fprintln(w, "\nWhat was asked")
	asked(w, o)
	if r := lastAnswer(o, events); r != nil {
		fmt.Fprintln(w, "\nWhat came back")
		answered(w, o, r)
	}
	fmt.Fprintln(w, "\nWhat happened")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, ev := range events {
		fmt.Fprintf(table, "  %s\t%s\t%s\n", exact(ev.At), oneLine(ev.By), sentence(o, events[:i], &ev))
	}
	_ = table.Flush() // the writer keeps its error

	fmt.Fprintln(w, "\nWhat happens next")
	fmt.Fprintf(w, "  %s\n", visible(capital(m.Reason)+"."))
	if (m.Kind == semel.MoveResend || m.Kind == semel.MoveLookup) && !m.Caller {
		fmt.Fprintf(w, "  A program that recovers this database does it by itself from %s; the commands below do it now.\n", moment(m.At))
	}
	for _, line := range a.next {
		if !strings.Contains(line, "op show") { // this is it
			fmt.Fprintf(w, "  %s\n", line)
		}
	}
}

// facts writes what identifies the operation and where it stands.
func (sh *shell) facts(w io.Writer, o *semel.Operation, now time.Time) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(table, "%s\t%s\n", name, oneLine(fmt.Sprintf(format, args...)))
	}
	row("operation", "%s", o.ID)
	row("scope", "%s", o.Scope)
	row("key", "%s", o.Key)
	sent := "not sent to the destination"
	if o.Contract.KeyHeader != "" {
		sent = "sent as " + o.Contract.KeyHeader
	} else if o.Request.Kind == commandKind {
		sent = "given to the program as SEMEL_DESTINATION_KEY"
	}
	row("destination key", "%s (%s)", o.DestinationKey(), sent)
	row("state", "%s", stateWord(o, now))
	open := 0
	for _, a := range o.Attempts {
		if a.Open && o.StateAt(now) != semel.Completed {
			open++
		}
	}
	if open > 0 {
		row("attempts", "%d, of which %d may have happened", o.Attempt, open)
	} else {
		row("attempts", "%d", o.Attempt)
	}
	row("protection", "%s", protection(&o.Contract))
	if o.Contract.Owner != "" {
		row("owner", "%s", o.Contract.Owner)
	}
	if o.Joined > 0 {
		row("absorbed", "%d later requests got this operation's answer: are they all the same work?", o.Joined)
	}
	row("first asked", "%s", moment(o.CreatedAt))
	row("last change", "%s (version %d)", moment(o.UpdatedAt), o.Version)
	_ = table.Flush() // the writer keeps its error
}

// protection is what the destination promises, in a few words.
func protection(c *semel.Contract) string {
	words := string(c.Protection)
	switch c.Protection {
	case semel.Keyed:
		words += fmt.Sprintf(": the destination honours the key for %s", duration(c.Window))
	case semel.Unprotected:
		words += ": repeating it could make it happen twice"
	case semel.Commutes:
		words += ": running it again changes nothing"
	case semel.Absolute:
		words += ": it sets a value, the same each time"
	case semel.Transactional, semel.Lookup:
	}
	if c.LookupURL != "" {
		words += "; lookup at " + c.LookupURL
	}
	if c.Check != "" {
		words += "; checked by " + c.Check
	}
	if c.Profile != "" {
		words += "; profile " + c.Profile
	}
	return words
}

// duration is a time.Duration without zero parts: 24h, not 24h0m0s.
func duration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// lastAnswer is the recorded answer, or the last one that told nothing.
func lastAnswer(o *semel.Operation, events []semel.Event) *semel.Result {
	if o.Result != nil {
		return o.Result
	}
	for _, ev := range slices.Backward(events) {
		if ev.Result != nil {
			return ev.Result
		}
	}
	return nil
}

// answered writes what a destination answered.
func answered(w io.Writer, o *semel.Operation, r *semel.Result) {
	switch {
	case o.Request.Kind == commandKind:
		fmt.Fprintf(w, "  exit code %d\n", r.Status)
	case r.Status != 0:
		fmt.Fprintf(w, "  status %d %s\n", r.Status, oneLine(r.MediaType))
	}
	if r.Reference != "" {
		fmt.Fprintf(w, "  reference %s\n", oneLine(r.Reference))
	}
	showBody(w, r.Body, r.Size)
}

// shownBody is how much of a body is shown to people, in bytes.
const shownBody = 4 << 10

func showBody(w io.Writer, body []byte, size int64) {
	if len(body) == 0 {
		return
	}
	shown := body[:min(len(body), shownBody)]
	indented(w, "  ", visible(string(shown)))
	if len(shown) < len(body) {
		fmt.Fprintf(w, "  ... (%d bytes on record: --output json)\n", len(body))
	}
	if size != 0 && size != int64(len(body)) {
		fmt.Fprintf(w, "  ... (the answer was cut: %s)\n", keptOf(len(body), size))
	}
}

// keptOf says how much of a longer answer is on record; its size is -1 where
// nobody read it to its end.
func keptOf(bytes int, size int64) string {
	if size < 0 {
		return fmt.Sprintf("its first %d bytes are kept, and its length is not known", bytes)
	}
	return fmt.Sprintf("%d bytes of %d are kept", bytes, size)
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
