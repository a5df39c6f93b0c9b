package check

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/workflowfile"
)

// What the members of a key are called that do not tell one piece of work from
// another: who, how much, and when. A number, an id or a reference does.
var (
	parties = []string{
		"customer", "customer_id", "customer_name", "client", "client_id", "user", "user_id", "account", "account_id", "email", "mail",
		"address", "phone", "to", "recipient", "payer", "payee", "supplier", "name",
	}
	quantities = []string{"amount", "cents", "price", "total", "sum", "currency", "quantity", "count", "balance", "net", "gross"}
	times      = []string{"date", "day", "week", "month", "year", "period", "time", "at", "timestamp", "due", "due_date", "tick"}
)

// weakKey: two pieces of work that are both meant may agree in who, how much
// and when. Then the second is taken for the first, and never done.
func weakKey(_ *workflow, e *effect) (Finding, bool) {
	if e.key.run || e.key.unexplained || len(e.key.members) == 0 || e.contract.Protection == semel.Commutes {
		return Finding{}, false
	}
	var party, quantity, when, named bool
	for _, m := range e.key.members {
		switch name := snake(last(m)); {
		case slices.Contains(parties, name):
			party = true
		case slices.Contains(quantities, name):
			quantity = true
		case slices.Contains(times, name):
			when = true
		default:
			named = true
		}
	}
	const fix = "use what names the work itself: the number of an invoice or an order, or a key minted with it"
	made := strings.Join(e.key.members, ", ")
	var f Finding
	switch own := e.sharedByItems(); {
	case quantity && !named:
		f, _ = found(workflowfile.CodeWeakKey, workflowfile.SeverityWarning, fix,
			"the key of step %s is made of %s: two that are both meant can agree in that, and the second would never be done", e.path, made)
	case all(e.key.members, isParty) && e.irreversible() && e.contract.Protection != semel.Absolute && !e.once():
		f, _ = found(workflowfile.CodeWeakKey, workflowfile.SeverityWarning, fix,
			"the key of step %s is made of %s alone: it says for whom, and not what, and the second for the same one would never be done", e.path, made)
	case len(own) > 0:
		f, _ = found(workflowfile.CodeWeakKey, workflowfile.SeverityWarning, "use what tells the items apart: the number or the id of each",
			"of the item, the key of step %s has only %s: two items that are both meant can agree in that, and the second would never be done", e.path, strings.Join(own, ", "))
	case party && when && !named:
		f, _ = found(workflowfile.CodeWeakKey, Note, fix, "the key of step %s is made of %s: a second one in that time would never be done", e.path, made)
	default:
		return Finding{}, false
	}
	f.Line, f.Column = e.key.line, e.key.column
	return f, true
}

// sharedByItems are the members of the item in the key if two items can agree
// in them. An each tells its items apart by a key of its own: who and when may
// be that, but a name or an amount comes twice.
func (e *effect) sharedByItems() (own []string) {
	for _, m := range e.key.members {
		switch {
		case e.item != "" && strings.HasPrefix(m, e.item+"."):
			own = append(own, m)
		case m == e.item, strings.HasPrefix(m, "steps."):
			return nil
		}
	}
	told := len(e.itemKey) > 0 && all(e.itemKey, func(m string) bool {
		name := snake(last(m))
		return slices.Contains(own, m) && !slices.Contains(quantities, name) && name != "name"
	})
	if told || !all(own, func(m string) bool {
		name := snake(last(m))
		return isParty(m) || slices.Contains(quantities, name) || slices.Contains(times, name)
	}) {
		return nil
	}
	return own
}

// What is done once for somebody: a welcome, or making the record of them.
var (
	onceWords = []string{
		"welcome", "signup", "onboard", "onboarding", "register", "registration", "activate", "activation", "invite", "invitation",
		"verify", "verification", "deactivate", "offboard", "first", "once",
	}
	makers = []string{"create", "add", "open", "close", "import", "new", "make", "ensure", "provision", "delete", "remove"}
	people = []string{
		"customer", "client", "user", "account", "contact", "member", "subscriber", "profile", "lead", "supplier", "person", "mailbox",
		"customers", "clients", "users", "accounts", "contacts", "members", "subscribers", "profiles", "leads", "suppliers", "people",
	}
)

var expression = regexp.MustCompile(`\$\{\{.*?\}\}`)

// once reports whether its names say that there is one for each person anyway.
func (e *effect) once() bool {
	text := snake(e.action) + " " + snake(last(e.path))
	words := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) })
	in := func(names []string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return slices.Contains(names, word) })
	}
	if in(makers) && in(people) {
		return true
	}
	literal := snake(expression.ReplaceAllString(e.key.text, " "))
	words = append(words, strings.FieldsFunc(literal, func(r rune) bool { return !unicode.IsLetter(r) })...)
	return in(onceWords)
}

// last is the last part of a path.
func last(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// credential finds values that are spelled like credentials of well-known
// makers, and references to secrets.
var credential = regexp.MustCompile(`\b(sk|rk|pk)_(live|test)_\w+|\bgh[pousr]_\w{20,}|\bgithub_pat_\w+|\bxox[abprs]-\w+|\bAKIA[0-9A-Z]{16}\b|\beyJ[\w-]+\.[\w-]+\.|\bBearer \S+|\benv:[A-Z_]{3,}|\bfile:/\S+`)

// secretInKey: keys are stored, shown and sent.
func secretInKey(_ *workflow, e *effect) (Finding, bool) {
	what := ""
	if credential.MatchString(e.key.text) {
		what = "looks like a credential, or refers to one"
	}
	for _, m := range e.key.members {
		name := last(m)
		if semel.IsCredential(name) && !strings.HasSuffix(snake(name), "_id") {
			what = "is made of " + m
		}
	}
	if what == "" || e.key.run {
		return Finding{}, false
	}
	f, _ := found(workflowfile.CodeSecretKey, workflowfile.SeverityError, "name the work instead", "the key of step %s %s: keys are stored, shown and sent to the destination", e.path, what)
	f.Line, f.Column = e.key.line, e.key.column
	return f, true
}

// unstableKey: a key that differs from try to try makes each try another piece
// of work.
func unstableKey(_ *workflow, e *effect) (Finding, bool) {
	if e.key.changing == "" {
		return Finding{}, false
	}
	return found(workflowfile.CodeUnstableKey, workflowfile.SeverityError, "make it of what names the work, or keep what was computed with semel.Compute",
		"the key of step %s %s: each try would be another piece of work, and act again", e.path, e.key.changing)
}

// constantKey: two requests that differ are two pieces of work. What a file
// says about it is found when it is read.
func constantKey(_ *workflow, e *effect) (Finding, bool) {
	if !e.key.constant {
		return Finding{}, false
	}
	return found(workflowfile.CodeKey, workflowfile.SeverityWarning, "make it of what names the work",
		"the key of step %s is %q for another input, too: the second piece of work would never be done", e.path, e.key.text)
}
