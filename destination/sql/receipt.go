package sqldest

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/semel-dev/semel"
)

// receipt is a row of the table semel_receipt: that the effect of a
// destination key happened, or up to which attempt it cannot happen any more.
type receipt struct {
	key         string // the destination key
	scope       string
	name        string // the operation's own key
	operation   string // the operation's ID, which sorts by the time it was minted
	attempt     int
	fingerprint []byte
	happened    bool
	affected    int64
	result      []byte
}

// receiptOf is what the attempt in s would leave behind.
func receiptOf(s *semel.Send) *receipt {
	return &receipt{
		key: s.DestinationKey, scope: string(s.Operation.Scope), name: string(s.Operation.Key),
		operation: s.Operation.ID.String(), attempt: s.Attempt, fingerprint: s.Operation.Fingerprint[:],
	}
}

// bars reports whether the attempt of other was ruled out by r: it is the one
// that r names, or an earlier one.
func (r *receipt) bars(other *receipt) bool {
	return !r.happened && cmp.Or(strings.Compare(other.operation, r.operation), cmp.Compare(other.attempt, r.attempt)) <= 0
}

// conflict says in what r and other differ though they have one key; empty if
// they are about one request.
func (r *receipt) conflict(other *receipt) string {
	if bytes.Equal(r.fingerprint, other.fingerprint) {
		return ""
	}
	return fmt.Sprintf("the receipt %s in table %s is that of another request (scope %q, key %q)", r.key, receiptTable, r.scope, r.name)
}

// answer is what the effect answered when it happened.
func (r *receipt) answer() *semel.Result {
	return &semel.Result{Reference: r.key, MediaType: "application/json", Body: r.result}
}
