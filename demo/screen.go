package demo

import (
	"fmt"
	"io"
	"strings"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/sandbox"
)

// totals is everything the screen tells.
type totals struct {
	usual, semel             map[sandbox.Resource]*count
	usualKilled, semelKilled int
	night                    string // when what is due is billed
	run                      RunReport
	paid                     Paid
	believedDone             int
	believedNot              int
	sent                     int  // requests of this run, with Semel
	again                    bool // the night had begun before this run
	forgot                   bool // the database was found empty in this run
	twins                    [2]string
	twinsOnce                bool // both are meant, and each happened once
}

// listed is how many operations for a person are named on the screen.
const listed = 3

// screen writes the night down for people.
func screen(w io.Writer, o *Options, n *night, database string, t *totals) {
	lost := "No answer gets lost"
	if n.Lose > 0 {
		lost = "Answers get lost"
	}
	fmt.Fprintf(w, "%s due. %s, %s. Counted at the destination, not by us:\n\n", many(n.Invoices, "invoice"), lost, dying(t.semelKilled))
	fmt.Fprintf(w, "  %-14s %-8s %9s %9s %6s %8s  %s\n", "", "", "intended", "happened", "twice", "missing", "nobody can know")
	table(w, "the usual way", t.usual, "-", usualNote)
	table(w, "with semel", t.semel, "", semelNote)
	fmt.Fprintf(w, "\n  %s\n\n", wrap(ran(n, t), 2))
	if t.again {
		fmt.Fprintf(w, "  %s\n\n", wrap(story(n, t), 2))
	}
	if t.twinsOnce {
		fmt.Fprintf(w, "  Invoices %s and %s are the same customer, amount and date, and both are meant: each was charged once.\n", t.twins[0], t.twins[1])
	}
	fmt.Fprintf(w, `  The usual way is at least once: an error is tried again, and each call mints a key of its own.
  A stable key alone would have protected payments and nothing else: bank and mail know no keys.
  %s
`, terms())
	persons(w, o, database, t)
	dares(w, o, n, database)
}

// ran tells what the run of the night went through, and what the biller's own
// ledger says after it.
func ran(n *night, t *totals) string {
	var b strings.Builder
	fmt.Fprintf(&b, "With semel the night is one run, %s %s: %s, %s", workflowName, t.night, many(n.Invoices, "invoice"), died(t.semelKilled))
	if t.run.WentOn > 0 {
		fmt.Fprintf(&b, ", went on %s", times(t.run.WentOn))
	}
	fmt.Fprintf(&b, "; %d done", t.run.Done)
	if left := n.Invoices - t.run.Done; left > 0 {
		fmt.Fprintf(&b, ", %d left to a person", left)
	}
	fmt.Fprintf(&b, ". The biller's own ledger has %d paid, %d of them twice, and %d not.", t.paid.Paid, t.paid.Twice, t.paid.Missing)
	return b.String()
}

func table(w io.Writer, title string, counts map[sandbox.Resource]*count, unknown string, note func(sandbox.Resource, *count) string) {
	for _, resource := range []sandbox.Resource{sandbox.Charges, sandbox.Transfers, sandbox.Messages} {
		c := counts[resource]
		cell := unknown
		if cell == "" {
			cell = fmt.Sprint(c.unknown)
		}
		line := fmt.Sprintf("  %-14s %-8s %9d %9d %6d %8d  %2s   %s", title, connectionOf(resource), c.intended, c.happened, c.twice, c.missing, cell, note(resource, c))
		fmt.Fprintln(w, strings.TrimRight(line, " "))
		title = ""
	}
}

func usualNote(resource sandbox.Resource, c *count) string {
	switch {
	case c.twice == 0:
		return ""
	case resource == sandbox.Messages:
		return "sent twice"
	}
	return money(c.twiceAmount) + " charged twice"
}

func semelNote(resource sandbox.Resource, c *count) string {
	switch {
	case c.twice > 0 && resource == sandbox.Messages:
		return "sent twice: nothing remembered them"
	case c.twice > 0:
		return money(c.twiceAmount) + " charged twice: nothing remembered them"
	case resource == sandbox.Charges && c.again > 0:
		return fmt.Sprintf("(%d sent again under the same key)", c.again)
	case resource == sandbox.Transfers && c.found+c.resent > 0:
		return fmt.Sprintf("(%d found by reference, %d proven absent and sent again)", c.found, c.resent)
	case resource == sandbox.Messages && c.unknown > 0:
		return "(we do not pretend to know)"
	}
	return ""
}

// story tells what this run added to a night that had begun before.
func story(n *night, t *totals) string {
	switch {
	case t.forgot:
		return fmt.Sprintf("The database remembered nothing of this night, and %s sent in this run. Payments recognised its keys, which come from scope and key alone. "+
			"Bank and mail know no keys, so what nobody remembered happened again: that is not promised, and now you have seen it.", requests(t.sent))
	case t.sent == 0 && n.Forgotten:
		return "The same night again: 0 requests were sent in this run. What happened twice did so when the database was gone."
	case t.sent == 0:
		return "The same night again: 0 requests were sent in this run. Everything was on record."
	}
	return fmt.Sprintf("The night went on where it had stopped: %s sent in this run.", requests(t.sent))
}

// persons tells what only a person can settle.
func persons(w io.Writer, o *Options, database string, t *totals) {
	db := " --db " + quote(shown(database))
	for _, resource := range []sandbox.Resource{sandbox.Charges, sandbox.Transfers, sandbox.Messages} {
		waiting := t.semel[resource].review
		if len(waiting) == 0 {
			continue
		}
		noun, verb := strings.TrimSuffix(string(resource), "s"), "need"
		if resource == sandbox.Messages {
			noun = "receipt"
		}
		if len(waiting) == 1 {
			verb = "needs"
		}
		fmt.Fprintf(w, "\n  %s %s a person:\n", many(len(waiting), noun), verb)
		for _, id := range waiting[:min(len(waiting), listed)] {
			fmt.Fprintf(w, "      %s op show %s%s\n", o.program(), id, db)
		}
		if len(waiting) > listed {
			fmt.Fprintf(w, "      %s op list --state %s%s\n", o.program(), semel.Unknown, db)
		}
		fmt.Fprintf(w, "    then, when you have found out (--happened or --did-not-happen):\n      %s op settle %s --happened --reason \"the customer has it\"%s\n", o.program(), waiting[0], db)
	}
	if t.run.State == semel.RunHeld {
		fmt.Fprintf(w, "\n  The run waits until a person has settled that; then run the demo again, and it goes on:\n      %s run show %s%s\n", o.program(), t.run.ID, db)
	}
}

// dares ends the screen.
func dares(w io.Writer, o *Options, n *night, database string) {
	again := o.program() + " demo"
	if o.Dir != "" {
		again += " --dir " + quote(n.dir)
	}
	if o.DB != "" {
		again += " --db " + quote(shown(o.DB))
	}
	path, file := strings.CutPrefix(database, "sqlite:")
	forget := "psql " + quote(shown(database)) + " -c 'drop schema semel cascade'"
	all := " (this deletes all that Semel keeps there)"
	if file {
		all = ""
		forget = "rm " + quote(path) + "*"
	}
	fmt.Fprintf(w, `
  Two dares.
    Run it again, and nothing is sent:
      %s
    Delete the database and run it again%s:
      %s && %s
    Payments still charges nobody twice inside its window (%s): a key is a pure function of scope
    and key, so it survives the database. Bank and mail are not promised: they know no keys, and what
    nobody remembers happens again.
`, again, all, forget, again, hours(keyWindow))
}

// stays tells what can be looked at while everything is up.
func stays(w io.Writer, o *Options, database string, usual, guarded *provider) {
	fmt.Fprintf(w, `
  Until Ctrl-C, ask the destinations yourself:
      curl %s/ledger/summary     # with semel (also /ledger, /requests, ?reference=invoice-4409)
      curl %s/ledger/summary     # the usual way
      %s run list --db %s
`, guarded.base, usual.base, o.program(), quote(shown(database)))
}

func many(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func died(n int) string {
	if n == 0 {
		return "no worker died"
	}
	return many(n, "worker") + " died"
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func requests(n int) string {
	if n == 1 {
		return "1 request was"
	}
	return fmt.Sprintf("%d requests were", n)
}

func dying(n int) string {
	switch n {
	case 0:
		return "no worker dies"
	case 1:
		return "1 worker dies"
	}
	return fmt.Sprintf("%d workers die", n)
}

// quote makes s one word of a shell.
func quote(s string) string {
	plain := strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:/._-@%+,=") == ""
	if plain && s != "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// wrap breaks s into lines that fit a screen, indented after the first.
func wrap(s string, indent int) string {
	var b strings.Builder
	width := indent
	for i, word := range strings.Fields(s) {
		if width+1+len(word) > 100 {
			b.WriteString("\n" + strings.Repeat(" ", indent))
			width = indent
		} else if i > 0 {
			b.WriteByte(' ')
			width++
		}
		b.WriteString(word)
		width += len(word)
	}
	return b.String()
}
