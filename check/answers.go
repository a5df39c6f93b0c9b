package check

import (
	"fmt"
	"strings"
	"time"

	"github.com/semel-dev/semel"
)

// answers answers the seven questions.
func (w *workflow) answers(e *effect) Answers {
	if e.refused != "" {
		const none = "Nothing is known, since nothing is sent."
		return Answers{
			Effect: "Nothing: Semel refuses its contract, so nothing is sent. " + strings.ToUpper(e.refused[:1]) + e.refused[1:] + ".", Identity: e.whatNamesIt(),
			Together: none, Evidence: none, Interruption: none, Limits: none, Recovery: "Mend the contract.",
		}
	}
	return Answers{
		Effect: e.whatItDoes(), Identity: e.whatNamesIt(), Together: e.twoAtOnce(), Evidence: e.whereTheEvidenceIs(),
		Interruption: e.ifItStops(), Limits: e.limits(), Recovery: e.howAPersonRecovers(),
	}
}

func (e *effect) whatItDoes() string {
	text := ""
	switch e.contract.Effect {
	case semel.SetsValue:
		text = "It sets a value. Setting it again leaves the same value."
	case semel.Changes:
		text = "It changes a value by an amount. Twice counts twice."
	case semel.Creates:
		text = "It creates something. A second time makes a second one."
	case semel.External:
		text = "It acts in the outside world, as a mail or a charge does. It cannot be taken back."
	default:
		text = "Not declared, so it is treated as something that must not happen twice."
		if e.contract.Protection == semel.Transactional {
			text = "It writes to a database, in one transaction with a receipt."
		}
	}
	if e.contract.Metered {
		text += " Each try costs money."
	}
	if e.approval != nil {
		text += " A person is asked before."
	}
	return text
}

func (e *effect) whatNamesIt() string {
	switch {
	case e.key.run:
		return "The key of the run and the place of the step: once for each run."
	case e.contract.Protection == semel.Commutes:
		return "It needs no name: doing it again changes nothing."
	}
	return fmt.Sprintf("The key %q: the same key is the same work, in every run.", e.key.text)
}

func (e *effect) twoAtOnce() string {
	const one = "One acts; the other waits and gets the recorded answer. "
	switch e.contract.Protection {
	case semel.Transactional:
		return one + "If both reach the database, the second finds the receipt and changes nothing."
	case semel.Commutes:
		return "Both may act: the second changes nothing."
	case semel.Absolute:
		return one + "If both reach the destination, both set the same value."
	case semel.Keyed:
		return one + "If both reach the destination, it knows the key and acts once."
	case semel.Lookup, semel.Unprotected:
	}
	return one + "If both reached the destination, it would act twice: nothing there recognises a repeat."
}

func (e *effect) whereTheEvidenceIs() string {
	const record = "In Semel's record: the request before it is sent, and the answer. "
	switch {
	case e.contract.Protection == semel.Transactional:
		return record + "And the receipt beside the row in the database."
	case e.contract.Protection == semel.Commutes:
		return "In the destination alone: no record is needed."
	case e.looksUp():
		return record + "And at the destination, where a lookup finds it" + e.place() + "."
	case e.contract.Protection == semel.Keyed:
		return record + "And in the destination's answer to the same key, while it knows the key."
	}
	return record + "Beyond that only a person can look, at the destination."
}

func (e *effect) place() string {
	if e.contract.LookupURL != "" {
		return " by " + e.contract.LookupURL
	}
	return ""
}

// ifItStops says what becomes of a step that was sent and has no answer, as the
// rules decide it at once and later.
func (e *effect) ifItStops() string {
	if e.contract.Protection == semel.Commutes {
		return "It is done again. That changes nothing."
	}
	first, last := e.moves()
	text := ""
	switch {
	case first == semel.MoveResend && e.contract.Protection == semel.Keyed:
		text = fmt.Sprintf("The same request is sent again under the same key, until %s after it was first sent. ", span(e.usable()))
	case first == semel.MoveResend:
		text = fmt.Sprintf("The same value is set again, in at most %d attempts by itself. ", e.contract.Budget())
	case first == semel.MoveLookup && e.contract.Protection == semel.Transactional:
		return "The receipt is read. It tells whether it happened; if not, the same request is made again."
	case first == semel.MoveLookup:
		text = "Nothing is sent. The destination is asked whether it happened. "
		if e.proves() {
			return text + fmt.Sprintf("\"Not found\" counts from %s after the last moment it could still arrive; then it is safe to send again.",
				span(plus(e.contract.MaxProcessing, e.contract.VisibleAfter)))
		}
		return text + "\"Not found\" proves nothing here: then a person is asked."
	default:
		return "Nothing is sent again. The run waits, and a person is asked what happened."
	}
	switch {
	case last == semel.MoveLookup && e.proves():
		return text + "After that the destination is asked whether it happened."
	case last == semel.MoveLookup:
		return text + "After that the destination is asked, and then a person."
	}
	return text + "After that nothing is sent, and a person is asked."
}

// moves are what Decide says of an outcome that was just lost, and of one whose
// key and budget are used up.
func (e *effect) moves() (first, last semel.MoveKind) {
	c := e.contract
	claimed := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	lost := claimed.Add(time.Second)
	o, err := semel.Replay(semel.Identity{Scope: "check", Key: "check", Contract: c}, []semel.Event{
		{Kind: semel.EvClaimed, Attempt: 1, At: claimed, Lease: time.Second, SendWithin: time.Second},
		{Kind: semel.EvLost, Attempt: 1, At: lost},
	})
	if err != nil {
		return semel.MovePerson, semel.MovePerson // the state table forbids what every attempt does
	}
	first = semel.Decide(&o, c, lost).Kind
	o.Attempt = c.Budget()
	return first, semel.Decide(&o, c, lost.Add(c.Window)).Kind
}

func (e *effect) limits() string {
	c := &e.contract
	parts := []string{"Known by its key within this connection and action"}
	if e.key.run || c.Protection == semel.Commutes {
		parts = nil
	}
	if c.Protection == semel.Keyed {
		parts = append(parts, fmt.Sprintf("the destination knows a key for %s", span(c.Window)))
	}
	if c.Timeout == 0 {
		parts = append(parts, "one attempt waits as long as it takes")
	} else {
		parts = append(parts, fmt.Sprintf("one attempt waits %s", span(c.Timeout)))
	}
	switch {
	case !c.Protection.Repeatable() || c.Protection == semel.Commutes:
	case c.Timeout == 0:
		parts = append(parts, fmt.Sprintf("at most %d attempts by itself", c.Budget()))
	default:
		parts = append(parts, fmt.Sprintf("at most %d attempts by itself, within %s", c.Budget(), span(e.automatic())))
	}
	if e.retry.Attempts > 1 {
		parts = append(parts, fmt.Sprintf("after a known failure %d attempts in all", e.retry.Attempts))
	}
	if e.approval != nil && e.approval.ask.Valid > 0 {
		parts = append(parts, fmt.Sprintf("an approval holds for %s", span(e.approval.ask.Valid)))
	}
	text := strings.Join(parts, "; ")
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

func (e *effect) howAPersonRecovers() string {
	if e.contract.Protection == semel.Commutes {
		return "Nothing is ever left to a person."
	}
	who := "Nobody is told: no owner is named. "
	if e.contract.Owner != "" {
		who = e.contract.Owner + " is told. "
	}
	return who + "See it with semel op show ID, look at the destination, and say what is true with semel op settle ID --happened or --did-not-happen."
}
