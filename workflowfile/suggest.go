package workflowfile

import (
	"strconv"
	"strings"
)

// shown quotes outside text for a message, cut.
func shown(s string) string {
	if len(s) > 80 {
		s = s[:80] + "..."
	}
	return strconv.QuoteToASCII(s)
}

// Suggest is what a message about an unknown name ends with: the nearest known
// name, or all of them.
func Suggest(name string, known []string) string {
	for _, k := range known {
		if near(name, k) {
			return "did you mean " + k + "?"
		}
	}
	if len(known) == 0 {
		return "there is none"
	}
	return "use one of " + strings.Join(known, ", ")
}

// near reports whether two names differ by one slip of the finger: a letter
// too many, too few, wrong or swapped, a dash for an underscore, or in case.
func near(a, b string) bool {
	a, b = strings.ToLower(strings.ReplaceAll(a, "-", "_")), strings.ToLower(b)
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	a, b = a[i:], b[i:]
	switch len(b) - len(a) {
	case 0:
		return a == "" || a[1:] == b[1:] || len(a) > 1 && a[0] == b[1] && a[1] == b[0] && a[2:] == b[2:]
	case 1:
		return a == b[1:]
	}
	return false
}
