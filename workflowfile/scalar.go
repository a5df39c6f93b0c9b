package workflowfile

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v4"

	"github.com/semel-dev/semel"
)

var (
	namePattern = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	plainNum    = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)
	// sixty is what YAML 1.1 reads as a number to the base of sixty.
	sixty   = regexp.MustCompile(`^[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?$`)
	oddNum  = regexp.MustCompile(`^[-+]?(0[xob])?[0-9][0-9a-fA-F_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?$`)
	oddWord = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
)

const maxName = 63

// ambiguous says what else a plain scalar may be to some reader of YAML; "" if
// nothing.
func ambiguous(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode || n.Style != 0 {
		return ""
	}
	v := n.Value
	switch {
	case plainNum.MatchString(v), v == "true", v == "false", v == "null":
		return ""
	case n.ShortTag() == "!!timestamp":
		return "a date or a text"
	case sixty.MatchString(v):
		return "a time, or a number to the base of sixty"
	case n.ShortTag() == "!!int", n.ShortTag() == "!!float", oddNum.MatchString(v) && strings.ContainsAny(v[:1], "+-0123456789"):
		return "a number or a text"
	case v == "~":
		return "null or a text"
	case slices.Contains(oddWord, strings.ToLower(v)):
		return "a truth value or a text"
	}
	return ""
}

// text reads a string of one line. What some reader of YAML takes for something
// else must be quoted.
func (r *reader) text(n *yaml.Node, what string) (string, bool) {
	if r.broken[n] {
		return "", false
	}
	odd := ambiguous(n)
	switch {
	case n.Kind != yaml.ScalarNode:
		r.wrong(n, CodeStructure, "write one value", "%s is not a text", what)
	case odd != "":
		r.wrong(n, CodeAmbiguous, "put it in quotes", "%s %s could be read as %s", what, n.Value, odd)
	case n.ShortTag() == "!!null" || n.Value == "":
		r.wrong(n, CodeMissing, "give it a value, or leave it out", "%s is empty", what)
	case n.ShortTag() != "!!str":
		r.wrong(n, CodeType, "put it in quotes if it is meant as text", "%s %s is not a text", what, n.Value)
	case strings.IndexFunc(n.Value, unicode.IsControl) >= 0:
		r.wrong(n, CodeValue, "write one line, in quotes or after >-", "%s holds a line break or another control character", what)
	default:
		return n.Value, true
	}
	return "", false
}

// prose reads a text of any length, for people.
func (r *reader) prose(n *yaml.Node, what string) string {
	if r.broken[n] {
		return ""
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" || ambiguous(n) != "" {
		r.wrong(n, CodeType, "write a text, in quotes", "%s is not a text", what)
	}
	return n.Value
}

// name reads an identifier.
func (r *reader) name(n *yaml.Node, what string) (string, bool) {
	s, ok := r.text(n, what)
	if !ok {
		return "", false
	}
	return s, r.isName(n, what)
}

func (r *reader) isName(n *yaml.Node, what string) bool {
	switch s := n.Value; {
	case !namePattern.MatchString(s):
		r.wrong(n, CodeValue, "use lower-case letters, digits and _, beginning with a letter", "%s %s is not a name", what, shown(s))
	case len(s) > maxName:
		r.wrong(n, CodeValue, "use a shorter name", "%s has %d letters, the limit is %d", what, len(s), maxName)
	case slices.Contains([]string{"in", "true", "false", "null"}, s):
		r.wrong(n, CodeValue, "use another name", "%s %s is a word of the expression language", what, s)
	default:
		return true
	}
	return false
}

// oneOf reads one of the words.
func (r *reader) oneOf(n *yaml.Node, what string, words ...string) string {
	s, ok := r.text(n, what)
	if ok && !slices.Contains(words, s) {
		r.wrong(n, CodeValue, Suggest(s, words), "%s %s is unknown", what, shown(s))
		return ""
	}
	return s
}

// duration reads a duration with its unit, longer than nothing.
func (r *reader) duration(n *yaml.Node, what string) time.Duration {
	if r.broken[n] {
		return 0
	}
	d, err := time.ParseDuration(n.Value)
	switch {
	case n.Kind == yaml.ScalarNode && plainNum.MatchString(n.Value):
		r.wrong(n, CodeValue, "write it with its unit, for example "+n.Value+"s or "+n.Value+"m", "%s has no unit", what)
	case n.Kind != yaml.ScalarNode || err != nil:
		r.wrong(n, CodeValue, "write it with its unit, for example 30s or 72h; days are hours", "%s is not a duration", what)
	case d > semel.MaxSleep:
		r.wrong(n, CodeValue, "give at most 100 years", "%s is %s", what, shown(n.Value))
	case d <= 0:
		r.wrong(n, CodeValue, "give more than nothing, or leave it out", "%s is %s", what, shown(n.Value))
	default:
		return d
	}
	return 0
}

// count reads a number from 1 to limit.
func (r *reader) count(n *yaml.Node, what string, limit int) int {
	if r.broken[n] {
		return 0
	}
	i, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || err != nil || i < 1 || i > limit || strconv.Itoa(i) != n.Value {
		r.wrong(n, CodeValue, "write it as a plain number such as 4", "%s is not a number from 1 to %d", what, limit)
		return 0
	}
	return i
}
