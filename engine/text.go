package engine

import (
	"fmt"
	"strings"

	"github.com/semel-dev/semel"
)

// maxReason is the longest reason that is kept, in bytes.
const maxReason = 8 << 10

// plain is a text as every store keeps it: valid UTF-8 without NUL, and not too
// long. Reasons come from errors of code that nobody knows.
func plain(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "\ufffd")
	if len(text) <= maxReason {
		return text
	}
	return strings.ToValidUTF8(text[:maxReason], "") + " ..."
}

// fits reports that a value is too large to be recorded.
func fits(what string, data []byte) error {
	if len(data) <= semel.MaxInput {
		return nil
	}
	return &semel.InputError{Field: what, Problem: fmt.Sprintf("has %d bytes, the limit is %d", len(data), semel.MaxInput), Hint: "record a reference to the data"}
}
