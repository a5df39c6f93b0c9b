package command

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/semel-dev/semel"
)

// event is the evidence of a program's end.
func (e *ending) event(attempt int, noEffectExit []int) semel.Event {
	ev := semel.Event{Attempt: attempt, Result: e.stdout.result(e.exit)}
	switch {
	case e.stopped != "":
		ev.Kind, ev.Reason = semel.EvLost, fmt.Sprintf("%s: the program was stopped (%s) and may have acted before", e.stopped, e.words())
	case e.signal != "":
		ev.Kind, ev.Reason = semel.EvLost, e.words()+", so it may have acted before"
	case e.exit == 0:
		ev.Kind = semel.EvConfirmed
		return ev
	case slices.Contains(noEffectExit, e.exit):
		ev.Kind, ev.Reason = semel.EvRefused, e.words()+", by which the program says that nothing happened"
	default:
		ev.Kind, ev.Reason = semel.EvLost, e.words()+" does not tell whether it happened"
	}
	ev.Closed = ev.Kind == semel.EvLost && e.closed
	ev.Reason += e.complaint()
	return ev
}

// checked is the evidence of a check's end.
func (e *ending) checked() semel.Event {
	switch {
	case e.stopped != "":
		return noAnswer("the check was stopped: " + e.stopped + e.complaint())
	case e.signal != "":
		return noAnswer("the check: " + e.words() + e.complaint())
	case e.exit == 0:
		return semel.Event{Kind: semel.EvFound, Reason: "the check says that it happened", Result: e.stdout.result(0)}
	case e.exit != 1:
		return noAnswer("the check: " + e.words() + e.complaint())
	case e.stderr.size > 0 || !e.stderr.ended:
		return noAnswer("the check ended with 1 but complained, so it may not have looked" + e.complaint())
	}
	return semel.Event{Kind: semel.EvAbsent, Reason: "the check says that it did not happen"}
}

func noAnswer(reason string) semel.Event {
	return semel.Event{Kind: semel.EvNoAnswer, Reason: plain(reason)}
}

func (e *ending) words() string {
	if e.signal != "" {
		return "ended by " + e.signal
	}
	return fmt.Sprintf("exit code %d", e.exit)
}

// complaint is the end of what the program wrote to its stderr.
func (e *ending) complaint() string {
	text := plain(string(e.stderr.tail))
	switch {
	case text == "":
		return ""
	case e.stderr.size > int64(len(e.stderr.tail)):
		return ": ..." + text
	}
	return ": " + text
}

// plain is text as one line that is safe to store and to show: valid UTF-8, no
// control characters.
func plain(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	return strings.Join(strings.Fields(text), " ")
}
