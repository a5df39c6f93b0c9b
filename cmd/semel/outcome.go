package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/semel-dev/semel"
)

// showOutcome prints what a request came to, and ends the command with the
// exit code that says so. sent is the attempt that this call made, 0 if none.
func (sh *shell) showOutcome(out *semel.Outcome, sent int, now time.Time) error {
	for _, w := range out.Warnings {
		sh.say("warning: %s", w)
	}
	var problem error
	if sh.json() {
		problem = sh.print(sh.describeOutcome(out, sent, now))
	} else {
		problem = sh.outcomeTable(out, now)
	}
	if problem != nil {
		sh.say("the outcome is recorded, but could not be shown: %v", problem)
	}
	sh.tellOutcome(out, sent, now)
	if code := codeOfOutcome(out); code != exitCompleted {
		return &outcomeError{code}
	}
	return nil
}

// describeOutcome is the JSON form of an outcome. A refused request gets no
// result: the one on record belongs to another.
func (sh *shell) describeOutcome(out *semel.Outcome, sent int, now time.Time) operationJSON {
	o := &out.Operation
	d := sh.describe(o, out.Next, now)
	d.Next.Headline = sh.headline(out, sent, now)
	d.Status, d.Differs, d.Warnings = out.Status, out.Fields, out.Warnings
	d.Replayed = isReplay(out)
	if text := out.Refusal(); text != "" {
		d.Reason = text
		d.Result = nil
	}
	if out.Status == semel.StatusExpired && d.State == "" {
		d.State = semel.Unknown
	}
	return d
}

// isReplay reports whether the outcome was on record: what is unknown or
// running was not.
func isReplay(out *semel.Outcome) bool {
	return out.Replayed && (out.Status == semel.StatusCompleted || out.Status == semel.StatusFailed)
}

// outcomeTable writes the data of an outcome: of a program its output, as if
// it had run; of a request the operation and the answer.
func (sh *shell) outcomeTable(out *semel.Outcome, now time.Time) error {
	o := &out.Operation
	w := &tolerant{to: sh.out}
	switch {
	case out.Refusal() != "":
		return nil // what is on record belongs to another request
	case o.Request.Kind == commandKind:
		if out.Status == semel.StatusCompleted && out.Replayed && o.Result != nil {
			_, _ = w.Write(o.Result.Body)
		}
	default:
		sh.answerTable(w, out, now)
	}
	return w.err
}

func (sh *shell) answerTable(w io.Writer, out *semel.Outcome, now time.Time) {
	o := &out.Operation
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, value string) { fmt.Fprintf(table, "%s\t%s\n", name, value) }
	state := stateWord(o, now)
	if isReplay(out) {
		state += ", on record: nothing was sent now"
	}
	row("state", sh.painted(o.StateAt(now), state))
	row("operation", o.ID.String())
	row("scope", oneLine(string(o.Scope)))
	row("key", oneLine(string(o.Key)))
	if o.Contract.KeyHeader != "" {
		row("destination key", o.DestinationKey())
	}
	row("attempt", fmt.Sprint(o.Attempt))
	if r := o.Result; r != nil {
		if r.Reference != "" {
			row("reference", oneLine(r.Reference))
		}
		if r.Status != 0 {
			row("answer", fmt.Sprintf("%d, %d bytes of %s", r.Status, len(r.Body), orPlain(r.MediaType)))
		}
	}
	_ = table.Flush() // the writer keeps its error
	if r := o.Result; r != nil && len(r.Body) > 0 {
		fmt.Fprintln(w)
		showBody(w, r.Body, r.Size)
	}
}

func orPlain(mediaType string) string {
	if mediaType == "" {
		return "no stated type"
	}
	return oneLine(mediaType)
}

// tellOutcome says on stderr what is known, what is not, and what to type
// next. A plain success needs no words.
func (sh *shell) tellOutcome(out *semel.Outcome, sent int, now time.Time) {
	o := &out.Operation
	var told []string
	switch out.Status {
	case semel.StatusCompleted:
		sh.tellCompleted(out)
		return
	case semel.StatusConflict:
		told = []string{
			fmt.Sprintf("Refused: key %q in scope %q belongs to another request. Different: %s.", o.Key, o.Scope, strings.Join(out.Fields, ", ")),
			fmt.Sprintf("The first request is unchanged (%s), and nothing was sent now.", stateWord(o, now)),
			"the first request:               " + sh.command("op show "+o.ID.String()),
			"if this is the same work:        ask with the values of the first request",
			"if this is other work:           give it a key of its own",
		}
	case semel.StatusExpired:
		told = []string{
			"Refused: the record of this key has expired, so nobody can tell whether it happened. Nothing was sent.",
			"find out at the destination; if it must be done, ask under a new key",
		}
	case semel.StatusUnsafe:
		told = sh.unsafeWords(out, now)
	case semel.StatusFailed, semel.StatusUnknown, semel.StatusInProgress, semel.StatusIncident:
		a := sh.advise(o, out.Next, now)
		told = append(told, sh.headline(out, sent, now))
		if out.Status == semel.StatusInProgress {
			told = append(told, "Nothing was sent by this request; --wait D waits for the answer.")
		}
		told = append(told, a.why...)
		told = append(told, a.next...)
	}
	fmt.Fprintf(sh.err, "semel: %s\n", sh.painted(o.StateAt(now), visible(told[0])))
	for _, line := range told[1:] {
		fmt.Fprintf(sh.err, "  %s\n", visible(line))
	}
}

// headline is the advice's, unless this very call sent once more what had been
// sent before: "nothing is sent again" would then hide that.
func (sh *shell) headline(out *semel.Outcome, sent int, now time.Time) string {
	o := &out.Operation
	if out.Status != semel.StatusUnknown || sent < 2 || sent > len(o.Attempts) || !o.Attempts[sent-1].Open {
		return sh.advise(o, out.Next, now).headline
	}
	text := fmt.Sprintf("This call sent attempt %d, whose outcome is unknown too: it may have happened.", sent)
	switch out.Next.Kind {
	case semel.MoveResend:
		return text + " Safe to send again under the same key: the destination does it once."
	case semel.MoveLookup:
		if proof, ok := o.ProofAt(o.Contract); ok && now.Before(proof) {
			text += " \"Not found\" proves nothing before " + moment(proof) + "."
		}
		return text + " The next call checks it before it sends anything."
	case semel.MoveSend, semel.MoveWait, semel.MovePerson, semel.MoveDone:
	}
	return text + " Nothing more is sent by machine; a person must find out."
}

func (sh *shell) tellCompleted(out *semel.Outcome) {
	o := &out.Operation
	if !isReplay(out) || o.Request.Kind != commandKind {
		return
	}
	shown := "its output is shown again"
	if o.Result == nil || len(o.Result.Body) == 0 {
		shown = "no output is on record"
	}
	sh.say("completed at %s; %s, and the program was not started (operation %s)", moment(o.UpdatedAt), shown, o.ID)
	if o.Result.Truncated() {
		sh.say("the output on record was cut: %s", keptOf(len(o.Result.Body), o.Result.Size))
	}
}

// unsafeWords says why a retry was refused.
func (sh *shell) unsafeWords(out *semel.Outcome, now time.Time) []string {
	a := sh.advise(&out.Operation, out.Next, now)
	told := []string{"Refused: " + strings.TrimSuffix(out.Next.Reason, ".") + ". Nothing was sent."}
	return append(told, a.next...)
}
