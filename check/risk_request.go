package check

import (
	"slices"
	"strings"
	"unicode"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/workflowfile"
)

// messages are members that make a request tell somebody something besides.
// Those of maybe do so only where they are true.
var (
	messages = []string{
		"notify", "send_email", "send_mail", "send_sms", "send_receipt", "send_notification", "send_notifications", "send_invoice",
		"send_invitation", "send_confirmation", "email_customer", "email_receipt", "receipt_email",
	}
	maybe = []string{"email", "mail", "sms", "receipt", "notification"}
)

// twoEffects: one outcome for two effects is a half-truth. What can be seen is
// what names and members say.
func twoEffects(_ *workflow, e *effect) (Finding, bool) {
	if e.contract.Protection == semel.Transactional {
		return Finding{}, false
	}
	what := ""
	words := strings.FieldsFunc(snake(last(e.action)), func(r rune) bool { return r == '_' || r == ' ' })
	if i := slices.Index(words, "and"); i > 0 && i < len(words)-1 {
		what = "its name, " + e.action + ", says that it does two things"
	}
	for _, m := range e.request {
		if m.tells() {
			what = m.name + " makes it tell somebody, too"
		}
	}
	switch {
	case what == "":
		return Finding{}, false
	case e.contract.Effect == semel.SetsValue || e.contract.Protection == semel.Absolute || e.contract.Protection == semel.Commutes:
		return found(workflowfile.CodeStatusNotes, workflowfile.SeverityWarning, "set the value without it, and send the message in a step of its own",
			"step %s sets a value, which may be repeated, but %s, and that may not", e.path, what)
	}
	return found(workflowfile.CodeTwoEffects, workflowfile.SeverityWarning, "make two steps of it, each with a key of its own",
		"step %s has one outcome for two effects: %s", e.path, what)
}

// tells reports whether the member asks for a message.
func (m member) tells() bool {
	name := snake(m.name)
	switch {
	case slices.Contains(maybe, name):
		return !m.computed && m.value == true
	case !slices.Contains(messages, name) && !strings.HasPrefix(name, "notify_"):
		return false
	case m.computed:
		return true
	}
	switch v := m.value.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return !slices.Contains([]string{"", "no", "none", "never", "false", "off"}, strings.ToLower(v))
	case []any:
		return len(v) > 0
	}
	return true
}

// snake spells sendEmail as send_email, and If-Match as if_match.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		switch {
		case r == '-':
			r = '_'
		case unicode.IsUpper(r) && i > 0 && !strings.HasSuffix(b.String(), "_"):
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
