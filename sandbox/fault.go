package sandbox

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Fault is one way to misbehave. The empty Fault is to behave.
type Fault string

// The faults, as they are spelled in the Sandbox-Fault header and in JSON.
const (
	// DropBefore closes the connection without acting.
	DropBefore Fault = "drop_before"
	// DropAfter acts, then closes the connection without an answer. A resend
	// under the same key gets the real answer.
	DropAfter Fault = "drop_after"
	// ErrorBefore answers 503 without acting.
	ErrorBefore Fault = "error_before"
	// ErrorAfter acts and answers 500. Charges retain that 500 under the key, as
	// providers do: a resend gets the same 500 again and never learns more.
	ErrorAfter Fault = "error_after"
	// BadGateway acts, but a gateway in front answers 502. A resend under the
	// same key gets the real answer.
	BadGateway Fault = "bad_gateway"
	// Late closes the connection at once and acts after [Options.Delay], when the
	// client has gone. Until then the key is in use.
	Late Fault = "late"
	// Slow acts after half of [Options.Delay] and answers after all of it, whether
	// or not the client is still there.
	Slow Fault = "slow"
	// Refuse answers 422 without acting and without looking at the key.
	Refuse Fault = "refuse"
	// RetainedError answers 402 card_declined without acting; charges retain the
	// answer under the key.
	RetainedError Fault = "retained_error"
	// Partial does one half of what is asked and answers 207, naming the part
	// done and the part failed. Charges retain the answer under the key.
	Partial Fault = "partial"
)

// faults is also the order in which a rate's mix is drawn.
var faults = []Fault{
	DropBefore, DropAfter, ErrorBefore, ErrorAfter, BadGateway, Late, Slow, Refuse, RetainedError, Partial,
}

// losesAnswer reports whether a request that acts leaves its client without the
// true answer.
func (f Fault) losesAnswer() bool {
	return f == DropAfter || f == ErrorAfter || f == BadGateway || f == Late
}

// before is the answer of the faults that neither act nor look at the key.
func (f Fault) before() (answer, bool) {
	switch f {
	case DropBefore:
		return answer{}, true
	case ErrorBefore:
		return failure(http.StatusServiceUnavailable, errorDetail{
			Type: "api_error", Code: "unavailable", Message: "nothing was done",
		}), true
	case Refuse:
		return failure(http.StatusUnprocessableEntity, errorDetail{
			Type: "invalid_request_error", Code: "refused", Message: "nothing was done: the request is refused",
		}), true
	default:
		return answer{}, false
	}
}

// wire is what the client gets in place of a.
func (f Fault) wire(a answer) answer {
	switch f {
	case DropBefore, DropAfter, Late:
		return answer{}
	case ErrorAfter:
		broken := serverError()
		broken.replayed = a.replayed
		return broken
	case BadGateway:
		return failure(http.StatusBadGateway, errorDetail{
			Type: "api_error", Code: "bad_gateway", Message: "the provider did not answer in time",
		})
	default:
		return a
	}
}

func serverError() answer {
	return failure(http.StatusInternalServerError, errorDetail{
		Type: "api_error", Code: "internal", Message: "something went wrong",
	})
}

func cardDeclined() answer {
	return failure(http.StatusPaymentRequired, errorDetail{
		Type: "card_error", Code: "card_declined", Message: "nothing was done: the card was declined",
	})
}

// plan is the fault a request asks for: a list of NAME or NAME@N.
type plan []struct {
	fault Fault
	nth   int // 0: every request
}

// readPlan reads the Sandbox-Fault header or, without it, the fault query
// parameter. Asked is false if the request names neither.
func readPlan(r *http.Request) (p plan, asked bool, err error) {
	spec := strings.Join(r.Header.Values("Sandbox-Fault"), ",")
	if spec == "" {
		spec = r.URL.Query().Get("fault")
	}
	if spec == "" {
		return nil, false, nil
	}
	for part := range strings.SplitSeq(spec, ",") {
		name, nth, limited := strings.Cut(strings.TrimSpace(part), "@")
		if name == "none" && !limited {
			continue
		}
		if !slices.Contains(faults, Fault(name)) {
			return nil, true, fmt.Errorf("unknown fault %q: use one of %s, or none", name, names(faults))
		}
		n := 0
		if limited {
			if n, err = strconv.Atoi(nth); err != nil || n < 1 {
				return nil, true, fmt.Errorf("fault %q: after @ comes the number of the request, from 1", part)
			}
		}
		p = append(p, struct {
			fault Fault
			nth   int
		}{Fault(name), n})
	}
	return p, true, nil
}

// at is the fault for the nth request of a reference.
func (p plan) at(nth int) Fault {
	for _, one := range p {
		if one.nth == 0 || one.nth == nth {
			return one.fault
		}
	}
	return ""
}

func names(all []Fault) string {
	words := make([]string, len(all))
	for i, f := range all {
		words[i] = string(f)
	}
	return strings.Join(words, ", ")
}
