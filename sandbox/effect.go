package sandbox

import (
	"encoding/json"
	"time"
)

// Effect is one thing that really happened. An effect is never changed or
// removed once it is in the ledger.
type Effect struct {
	Resource  Resource `json:"resource"`
	ID        string   `json:"id"`
	Reference string   `json:"reference"`
	Customer  string   `json:"customer,omitempty"`
	// Key is the Idempotency-Key of the request without quotes, also where the
	// resource ignores it.
	Key string `json:"key,omitempty"`
	// Amount is what was moved, in minor units. It is less than the requested
	// amount if Partial.
	Amount  int64     `json:"amount,omitempty"`
	Partial bool      `json:"partial,omitempty"`
	At      time.Time `json:"at"`
	// Number is the [Request.Number] that caused the effect.
	Number int `json:"number"`
	// Request is the body as the client sent it, less insignificant white space.
	Request json.RawMessage `json:"request"`
}

// object is the effect as its resource shows it: the sandbox's own fields, then
// the fields of the request in their order and spelling.
func (e Effect) object() string {
	kind, _ := e.Resource.trait()
	status := kind.status
	if e.Partial {
		status = "partial"
	}
	own := []field{
		{"id", encode(e.ID)},
		{"object", encode(kind.object)},
		{"status", encode(status)},
		{"created", encode(e.At)},
	}
	taken := map[string]bool{"id": true, "object": true, "status": true, "created": true}
	if e.Partial && e.Amount > 0 {
		own = append(own, field{"amount", encode(e.Amount)})
		taken["amount"] = true
	}
	given, _ := fields(e.Request)
	for _, f := range given {
		if !taken[f.name] {
			own = append(own, f)
		}
	}
	return join(own)
}

// answer is what the provider says after the effect if nothing is in its way.
func (e Effect) answer() answer {
	kind, _ := e.Resource.trait()
	if e.Partial {
		return answer{Status: 207, Body: e.results()}
	}
	return answer{Status: kind.code, Body: e.object()}
}

// results is the body of a partly successful answer.
func (e Effect) results() string {
	type result struct {
		Status string       `json:"status"`
		ID     string       `json:"id,omitempty"`
		Amount int64        `json:"amount,omitempty"`
		Error  *errorDetail `json:"error,omitempty"`
	}
	kind, _ := e.Resource.trait()
	return string(encode(struct {
		ID      string   `json:"id"`
		Object  string   `json:"object"`
		Status  string   `json:"status"`
		Results []result `json:"results"`
	}{e.ID, kind.object, "partial", []result{
		{Status: "done", ID: e.ID, Amount: e.Amount},
		{Status: "failed", Error: &errorDetail{
			Type: "processing_error", Code: "part_failed", Message: "this part was not done",
		}},
	}}))
}
