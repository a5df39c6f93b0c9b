package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

// bodyLimit is the longest body the sandbox reads, in bytes.
const bodyLimit = 1 << 20

// Request is one request under /v1/ as the sandbox saw it. It is logged when the
// sandbox has decided what to do, before any answer is sent.
type Request struct {
	// Number counts requests from 1 in order of arrival, also across restarts.
	Number int       `json:"number"`
	At     time.Time `json:"at"`
	// Connection numbers the client connections from 1 since the start.
	Connection int    `json:"connection"`
	Method     string `json:"method"`
	// Path includes the query.
	Path string `json:"path"`
	// Header holds what the client sent; the values of credentials are replaced
	// by "(hidden)".
	Header     http.Header `json:"header"`
	BodySHA256 string      `json:"body_sha256"` // lower-case hexadecimal
	BodyLength int         `json:"body_length"` // in bytes
	Resource   Resource    `json:"resource,omitempty"`
	Reference  string      `json:"reference,omitempty"`
	Key        string      `json:"key,omitempty"` // Idempotency-Key without quotes
	// Nth counts the requests of this resource for this reference (this body, if
	// it has none) from 1; lookups are counted apart.
	Nth      int   `json:"nth,omitempty"`
	Fault    Fault `json:"fault,omitempty"`
	Replayed bool  `json:"replayed,omitempty"`
	// Status is the HTTP status of the answer, 0 if the connection was closed
	// without one.
	Status int `json:"status"`
	// Effect is the id of the effect that this request caused, empty if it caused
	// none. That of a late request appears with the effect.
	Effect string `json:"effect,omitempty"`
}

// lookup reports whether the request could not have caused an effect.
func (r Request) lookup() bool { return r.Method != http.MethodPost }

// call is one request on its way through the sandbox.
type call struct {
	Request
	body     []byte
	order    order
	plan     plan
	asked    bool    // the request names its fault; rates do not apply
	problem  *answer // why the request itself cannot be carried out
	identity string  // what a key is bound to: method, path and body
}

// read takes in everything the client sent; what is wrong with it is a problem,
// not an error, because a wrong request is logged too.
func read(r *http.Request, resource Resource, reference string, now time.Time) *call {
	c := &call{Request: Request{
		At:        now,
		Method:    r.Method,
		Path:      r.URL.RequestURI(),
		Header:    visible(r.Header),
		Resource:  resource,
		Reference: reference,
	}}
	var err error
	c.body, err = io.ReadAll(http.MaxBytesReader(nil, r.Body, bodyLimit))
	sum := sha256.Sum256(c.body)
	c.BodySHA256, c.BodyLength = hex.EncodeToString(sum[:]), len(c.body)

	query := r.URL.Query()
	query.Del("fault")
	c.identity = strings.Join([]string{r.Method, r.URL.Path, query.Encode(), c.BodySHA256}, " ")

	var problems []*answer
	if _, long := errors.AsType[*http.MaxBytesError](err); long {
		a := failure(http.StatusRequestEntityTooLarge, errorDetail{
			Type: "invalid_request_error", Code: "body_too_large", Message: "a body has at most 1 MiB",
		})
		problems = append(problems, &a)
	} else if err != nil {
		problems = append(problems, invalid("body", "it did not arrive whole"))
	}
	key, problem := readKey(r.Header)
	c.Key = key
	if resource == Charges { // the others do not look at keys
		problems = append(problems, problem)
	}
	c.plan, c.asked, err = readPlan(r)
	if err != nil {
		problems = append(problems, invalid("fault", err.Error()))
	}
	for _, p := range problems {
		if p != nil {
			c.problem = p
			break
		}
	}
	return c
}

// subject is what the call is counted under.
func (c *call) subject() string {
	about := "reference " + c.Reference
	if c.Reference == "" {
		about = "body " + c.BodySHA256
	}
	kind := "order"
	if c.lookup() {
		kind = "lookup"
	}
	return string(c.Resource) + " " + kind + " " + about
}

func visible(given http.Header) http.Header {
	kept := given.Clone()
	for name := range kept {
		switch name {
		case "Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key":
			kept[name] = []string{"(hidden)"}
		}
	}
	return kept
}
