package sqldest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/semel-dev/semel"
)

// Kind is the Request.Kind of a statement.
const Kind = "sql"

// Verb says what a statement is for.
type Verb string

// The verbs.
const (
	VerbExec  Verb = "exec"  // has an effect, and leaves a receipt
	VerbClaim Verb = "claim" // must change one row to win, and leaves a receipt
	VerbQuery Verb = "query" // reads
)

// leading are the words a statement may begin with. What ends or leaves the
// transaction, or changes the session, is not among them.
var leading = map[Verb][]string{
	VerbExec: {
		"insert", "update", "delete", "merge", "replace", "with", "select", "values", "call", "do",
		"truncate", "create", "alter", "drop", "refresh",
	},
	VerbClaim: {"update", "insert", "delete", "merge", "replace", "with"},
	VerbQuery: {"select", "with", "values", "table"},
}

// statement is the body of a Request.
type statement struct {
	Verb      Verb              `json:"verb"`
	Statement string            `json:"statement"`
	Args      []json.RawMessage `json:"args,omitzero"`
}

// NewRequest is the request to run one statement of d's database, with its own
// spelling of placeholders ($1 or ?). Numbers in args reach it as they are
// written, of any size. The error is *semel.InputError.
func (d *Database) NewRequest(verb Verb, text string, args ...any) (semel.Request, error) {
	st := statement{Verb: verb, Statement: text}
	for i, arg := range args {
		raw, err := encodeArg(arg)
		if err != nil {
			return semel.Request{}, &semel.InputError{
				Field: fmt.Sprintf("argument %d", i+1), Problem: err.Error(),
				Hint: "give text, a number, a truth value, nothing, a time or JSON; bytes as hexadecimal text, read by decode($1, 'hex') or unhex(?)",
			}
		}
		st.Args = append(st.Args, raw)
	}
	if err := st.check(); err != nil {
		return semel.Request{}, err
	}
	body, err := encodeJSON(st)
	if err != nil {
		return semel.Request{}, &semel.InputError{Field: "statement", Problem: err.Error()}
	}
	r := semel.Request{Connection: d.options.Name, Kind: Kind, URL: d.location, MediaType: "application/json", Body: body}
	if err := r.Validate(); err != nil {
		return semel.Request{}, err
	}
	return r, nil
}

// check reports what is wrong with the statement before a database sees it.
func (st *statement) check() error {
	words, ok := leading[st.Verb]
	if !ok {
		return &semel.InputError{Field: "verb", Problem: fmt.Sprintf("%q is unknown", st.Verb), Hint: "use exec, claim or query"}
	}
	if word := firstWord(st.Statement); !slices.Contains(words, word) {
		return &semel.InputError{
			Field: "statement", Problem: fmt.Sprintf("begins with %q, which %s does not run", word, st.Verb),
			Hint: fmt.Sprintf("begin it with one of %v; transactions are made for you", words),
		}
	}
	return nil
}

// statementOf reads the statement of a stored request.
func statementOf(r *semel.Request) (*statement, error) {
	dec := json.NewDecoder(bytes.NewReader(r.Body))
	dec.DisallowUnknownFields()
	var st statement
	if r.Kind != Kind {
		return nil, fmt.Errorf("a request of kind %q holds no statement", r.Kind)
	}
	if err := dec.Decode(&st); err != nil {
		return nil, fmt.Errorf("the request holds no statement: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("the request holds more than a statement")
	}
	return &st, st.check()
}

// encodeJSON is JSON without escapes that only HTML needs.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
