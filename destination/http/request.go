package httpdest

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/semel-dev/semel"
)

// Kind is the kind of requests that this package sends.
const Kind = "http"

// isWithheld reports whether a header is sent and never stored: a credential,
// or a key that somebody gave by hand.
func isWithheld(name string) bool {
	return semel.IsCredential(name) || name == "Idempotency-Key" || name == "X-Idempotency-Key"
}

// CheckKeyHeader reports, as *semel.InputError, why a header cannot carry the
// destination key: its name is not valid, it is not sent as written, or it says
// something else.
func CheckKeyHeader(name string) error {
	canonical := http.CanonicalHeaderKey(name)
	_, bad := managed[canonical]
	switch {
	case !validHeaderName(name):
		return &semel.InputError{Field: "key-header", Problem: fmt.Sprintf("%q is not the name of a header", plain(name)), Hint: "use letters, digits and dashes, without spaces"}
	case bad, strings.HasPrefix(canonical, "Content-"), semel.IsCredential(canonical), slices.Contains(spoken, canonical):
		return &semel.InputError{Field: "key-header", Problem: canonical + " cannot carry a key", Hint: "name the header in which the destination expects its key, for example Idempotency-Key"}
	}
	return nil
}

// spoken are headers with a meaning of their own.
var spoken = []string{"Accept", "Accept-Encoding", "Cache-Control", "Date", "Forwarded", "From", "If-Match", "If-None-Match", "Origin", "Prefer", "Range", "Referer", "User-Agent", "Via"}

// managed are the headers that describe the connection, or that this package
// writes itself, with the reason.
var managed = map[string]string{
	"Host":              "it follows from the URL",
	"Content-Length":    "it follows from the body",
	"Transfer-Encoding": "the body is sent with its length",
	"Connection":        "it belongs to the connection",
	"Keep-Alive":        "it belongs to the connection",
	"Proxy-Connection":  "it belongs to the connection",
	"Te":                "it belongs to the connection",
	"Trailer":           "there are no trailers",
	"Upgrade":           "the protocol is not changed",
	"Expect":            "a header alone counts as sent, so there is nothing to wait for",
}

const (
	maxHeaders     = 100
	maxHeaderBytes = 64 << 10
	maxURL         = 8 << 10
)

// NewRequest makes the request for an HTTP operation from what a person wrote:
// headers as "Name: value". It returns apart the values of the headers that
// are sent but never stored (credentials, see semel.IsCredential, and key
// headers), for Call.Withheld. What cannot be sent as written is refused with
// *semel.InputError.
func NewRequest(method, target string, headers []string, body []byte) (semel.Request, map[string]string, error) {
	r := semel.Request{Kind: Kind, Method: strings.ToUpper(method), URL: target, Body: body}
	switch {
	case !validHeaderName(method):
		return semel.Request{}, nil, &semel.InputError{
			Field: "method", Problem: fmt.Sprintf("%q is not an HTTP method", plain(method)),
			Hint: "use POST, PUT, PATCH or DELETE",
		}
	case slices.Contains([]string{"CONNECT", "TRACE", "HEAD", "OPTIONS"}, r.Method):
		return semel.Request{}, nil, &semel.InputError{
			Field: "method", Problem: r.Method + " has no effect to guard",
			Hint: "use POST, PUT, PATCH or DELETE",
		}
	}
	if _, err := parseURL("url", target); err != nil {
		return semel.Request{}, nil, err
	}
	secret, err := takeHeaders(&r, headers)
	if err != nil {
		return semel.Request{}, nil, err
	}
	if err := r.Validate(); err != nil {
		return semel.Request{}, nil, err
	}
	return r, secret, nil
}

// takeHeaders puts each header where it belongs.
func takeHeaders(r *semel.Request, headers []string) (map[string]string, error) {
	secret := map[string]string{}
	seen := map[string]bool{}
	total := 0
	for _, line := range headers {
		name, value, err := parseHeader(line)
		if err != nil {
			return nil, err
		}
		if seen[name] {
			return nil, &semel.InputError{Field: "header " + name, Problem: "is given twice", Hint: "join the values with a comma"}
		}
		seen[name] = true
		if total += len(line); total > maxHeaderBytes || len(seen) > maxHeaders {
			return nil, &semel.InputError{
				Field: "header " + name, Problem: "is one too many",
				Hint: fmt.Sprintf("send at most %d headers and %d bytes of them", maxHeaders, maxHeaderBytes),
			}
		}
		switch {
		case name == "Content-Type":
			r.MediaType = value
		case isWithheld(name):
			secret[name] = value
		default:
			if r.Header == nil {
				r.Header = map[string]string{}
			}
			r.Header[name] = value
		}
	}
	r.Withheld = slices.Sorted(maps.Keys(secret))
	if len(r.Body) == 0 {
		r.MediaType = "" // there is nothing to describe
	} else if r.MediaType == "" {
		r.MediaType = semel.MediaTypeOf(r.Body)
	}
	return secret, nil
}

func parseHeader(line string) (name, value string, err error) {
	name, value, ok := strings.Cut(line, ":")
	value = strings.Trim(value, " \t")
	shown := plain(name)
	switch {
	case !ok:
		// The line may be a bare secret: it is not repeated.
		return "", "", &semel.InputError{Field: "header", Problem: "has no colon", Hint: `write it as "Name: value"`}
	case !validHeaderName(name):
		return "", "", &semel.InputError{
			Field: "header", Problem: fmt.Sprintf("name %q is not valid", shown),
			Hint: "use letters, digits and dashes, without spaces",
		}
	case !validHeaderValue(value):
		return "", "", &semel.InputError{
			Field: "header " + shown, Problem: "has a value with a line break, another control character or invalid UTF-8",
			Hint: "send one line of text",
		}
	}
	name = http.CanonicalHeaderKey(name)
	if why, ok := managed[name]; ok {
		return "", "", &semel.InputError{Field: "header " + name, Problem: "cannot be given", Hint: why}
	}
	return name, value, nil
}

func validHeaderName(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}

func validHeaderValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return utf8.ValidString(s)
}

// parseURL reads a URL that can be sent, and stored, exactly as it is written.
func parseURL(field, s string) (*url.URL, error) {
	bad := func(problem, hint string) (*url.URL, error) {
		return nil, &semel.InputError{Field: field, Problem: problem, Hint: hint}
	}
	if len(s) > maxURL {
		return bad(fmt.Sprintf("has %d bytes, the limit is %d", len(s), maxURL), "move data into the body")
	}
	if !validHeaderValue(s) || strings.ContainsAny(s, " \t") {
		return bad("holds a space, a control character or invalid UTF-8", "percent-encode it")
	}
	u, err := url.Parse(s)
	if err != nil {
		return bad("cannot be read", "write it as https://host/path") // the cause may quote a password
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return bad("is not http or https", "write it as https://host/path")
	case u.User != nil:
		return bad("holds a user name or password, which would be stored", "send it in an Authorization header, which is not stored")
	case u.Hostname() == "" || u.Opaque != "":
		return bad("names no host", "write it as https://host/path")
	case strings.Contains(s, "#"):
		return bad("has a fragment, which is never sent", "leave out what follows #")
	case !isASCII(u.Host):
		return bad("has a host outside ASCII", "write the host in its xn-- form")
	}
	return u, nil
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}
