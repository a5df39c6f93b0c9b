package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/semel-dev/semel"
)

// visible is text that cannot steer a terminal: control characters and what
// reorders text are spelled out, lines stay lines.
func visible(text string) string {
	return escaped(text, func(r rune) bool { return r == '\n' || r == '\t' })
}

// oneLine is visible text without line breaks, for a cell of a table.
func oneLine(text string) string {
	return escaped(text, func(rune) bool { return false })
}

func escaped(text string, keep func(rune) bool) string {
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case keep(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x80 && unicode.IsControl(r):
			fmt.Fprintf(&b, `\x%02x`, r)
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029':
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// cut is text of at most n runes; what is missing is said.
func cut(text string, n int) string {
	runes := []rune(text)
	if len(runes) <= n {
		return text
	}
	return string(runes[:n-3]) + "..."
}

// quoteForShell is an argument as a shell reads it.
func quoteForShell(arg string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("@%+=:,./_-", r)
	}
	if arg != "" && strings.IndexFunc(arg, func(r rune) bool { return !plain(r) }) < 0 {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

// moment is a time as people and programs read it.
func moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// exact is a time to the millisecond, for the order of a history.
func exact(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// painted is a state word in its colour, on a terminal.
func (sh *shell) painted(s semel.State, words string) string {
	code := map[semel.State]string{semel.Completed: "32", semel.Failed: "33", semel.Unknown: "31;1", semel.InProgress: "36"}[s]
	if !sh.colour || code == "" {
		return words
	}
	return "\x1b[" + code + "m" + words + "\x1b[0m"
}

// say writes a message for people.
func (sh *shell) say(format string, args ...any) {
	fmt.Fprintf(sh.err, "semel: %s\n", visible(fmt.Sprintf(format, args...)))
}

// indented writes text with each of its lines indented.
func indented(w io.Writer, by, text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintf(w, "%s%s\n", by, strings.TrimSuffix(line, "\n"))
	}
}
