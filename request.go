package semel

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// MaxBody is the largest request body that Semel carries, in bytes. The body
// is stored with the claim, since every attempt sends the same bytes.
const MaxBody = 1 << 20

// Request is what an operation asks of its destination. The first claim
// persists it; every attempt sends it unchanged. Everything in it but Volatile
// and Withheld is part of the fingerprint. It never holds a credential.
type Request struct {
	// Connection is the name in semel.yaml that the destination is reached by,
	// empty for an endpoint given by hand. It is not part of the fingerprint:
	// the scope names the logical destination.
	Connection string `json:"connection,omitzero"`
	// Action is the name of the Action that asks, empty for none. It is not
	// part of the fingerprint either; the scope holds it.
	Action string `json:"action,omitzero"`
	// Kind names the sort of destination, for example "http" or "command".
	Kind string `json:"kind"`
	// Method and URL are set for HTTP.
	Method string `json:"method,omitzero"`
	URL    string `json:"url,omitzero"`
	// Header holds the given headers; names in canonical spelling.
	Header map[string]string `json:"header,omitzero"`
	// MediaType of Body, empty for an empty body and for plain bytes.
	MediaType string `json:"media_type,omitzero"`
	// Args is the program and its arguments, for a command.
	Args []string `json:"args,omitzero"`
	// Body is sent, or is the standard input of a command.
	Body []byte `json:"-"`
	// Volatile names members of a JSON body, as dotted paths, that differ from
	// attempt to attempt and are left out of the fingerprint. "items[].at" is
	// the member at in every element of items; a name that is empty or holds a
	// dot, a bracket or a quote is written as a Go string: meta."sent.at".
	Volatile []string `json:"volatile,omitzero"`
	// Withheld names headers that the caller gave and Semel does not store,
	// for example Authorization. Only a caller who gives them again can send.
	Withheld []string `json:"withheld,omitzero"`
}

// Result is what a destination answered, as far as it was kept.
type Result struct {
	// Reference is the destination's own identifier of the effect, if known.
	Reference string `json:"reference,omitzero"`
	// Status is the HTTP status or the exit code.
	Status int `json:"status,omitzero"`
	// MediaType of Body, as the destination declared it.
	MediaType string `json:"media_type,omitzero"`
	// Body is the answer, cut to MaxResult bytes.
	Body []byte `json:"body,omitzero"`
	// Size and SHA256 describe the whole answer when Body was cut. Size is -1
	// when the answer was not read to its end.
	Size   int64  `json:"size,omitzero"`
	SHA256 string `json:"sha256,omitzero"`
}

// MaxResult is how much of an answer is kept, in bytes.
const MaxResult = 256 << 10

// Truncated reports whether Body is only the beginning of the answer.
func (r *Result) Truncated() bool { return r != nil && r.Size != 0 && r.Size != int64(len(r.Body)) }

// MediaTypeOf is the media type of a body for which none was given: an empty
// body has none, valid UTF-8 JSON is application/json, the rest is bytes.
func MediaTypeOf(body []byte) string {
	if len(body) > 0 && utf8.Valid(body) && json.Valid(body) {
		return "application/json"
	}
	return ""
}

func isJSON(mediaType string) bool {
	t, _, _ := strings.Cut(strings.ToLower(mediaType), ";")
	t = strings.TrimSpace(t)
	return t == "application/json" || strings.HasSuffix(t, "+json")
}
