package sandbox

import (
	"encoding/json"
	"io"
	"net/http"
)

// Summary counts what happened to one resource.
type Summary struct {
	Requests int `json:"requests"` // that asked for an effect
	Lookups  int `json:"lookups"`
	Effects  int `json:"effects"`
	// References is the number of different references asked for. Each is in one
	// of None, Once and Repeated by the number of its effects. Requests without a
	// reference are in none of them.
	References int `json:"references"`
	None       int `json:"none"`
	Once       int `json:"once"`
	Repeated   int `json:"repeated"`
	// Lost is the number of effects whose true answer did not go to the client
	// that asked for them.
	Lost int `json:"lost"`
	// Faults counts requests by the fault they met.
	Faults map[Fault]int `json:"faults"`
}

// Effects returns every effect in the order of the ledger.
func (s *Server) Effects() []Effect { return s.ledger.allEffects() }

// Requests returns every request under /v1/ that the sandbox has decided on, in
// order of arrival.
func (s *Server) Requests() []Request { return s.ledger.allRequests() }

// Count returns the number of effects of one reference: 1 is what a safe client
// leaves behind, however often it had to try.
func (s *Server) Count(resource Resource, reference string) int {
	n := 0
	for _, e := range s.Effects() {
		if e.Resource == resource && e.Reference == reference {
			n++
		}
	}
	return n
}

// Summary returns the counts of each resource that was asked for anything.
func (s *Server) Summary() map[Resource]Summary { return summarize(s.Effects(), s.Requests()) }

func summarize(effects []Effect, requests []Request) map[Resource]Summary {
	all := map[Resource]Summary{}
	type subject struct {
		resource  Resource
		reference string
	}
	counts := map[subject]int{}
	for _, r := range requests {
		if r.Resource == "" {
			continue
		}
		sum, ok := all[r.Resource]
		if !ok {
			sum.Faults = map[Fault]int{}
		}
		if r.lookup() {
			sum.Lookups++
		} else {
			sum.Requests++
			if r.Reference != "" {
				counts[subject{r.Resource, r.Reference}] += 0
			}
		}
		if r.Fault != "" {
			sum.Faults[r.Fault]++
		}
		if r.Effect != "" && r.Fault.losesAnswer() {
			sum.Lost++
		}
		all[r.Resource] = sum
	}
	for _, e := range effects {
		sum := all[e.Resource]
		sum.Effects++
		all[e.Resource] = sum
		if e.Reference != "" {
			counts[subject{e.Resource, e.Reference}]++
		}
	}
	for about, n := range counts {
		sum := all[about.resource]
		sum.References++
		switch n {
		case 0:
			sum.None++
		case 1:
			sum.Once++
		default:
			sum.Repeated++
		}
		all[about.resource] = sum
	}
	return all
}

func (s *Server) showLedger(w http.ResponseWriter, r *http.Request) {
	effects := []Effect{}
	counts := map[Resource]map[string]int{}
	for _, e := range s.Effects() {
		if !asked(r, e.Resource, e.Reference) {
			continue
		}
		effects = append(effects, e)
		if counts[e.Resource] == nil {
			counts[e.Resource] = map[string]int{}
		}
		counts[e.Resource][e.Reference]++
	}
	requests, lookups, lost := map[Resource]int{}, map[Resource]int{}, 0
	for resource, sum := range summarize(effects, s.asked(r)) {
		requests[resource] = sum.Requests
		if sum.Lookups > 0 {
			lookups[resource] = sum.Lookups
		}
		lost += sum.Lost
	}
	show(w, struct {
		Effects  []Effect                    `json:"effects"`
		Counts   map[Resource]map[string]int `json:"counts"`
		Requests map[Resource]int            `json:"requests"`
		Lookups  map[Resource]int            `json:"lookups"`
		Lost     int                         `json:"lost"`
	}{effects, counts, requests, lookups, lost})
}

func (s *Server) showSummary(w http.ResponseWriter, _ *http.Request) { show(w, s.Summary()) }

func (s *Server) showRequests(w http.ResponseWriter, r *http.Request) {
	show(w, map[string][]Request{"requests": s.asked(r)})
}

// asked is the request log under the filters of r.
func (s *Server) asked(r *http.Request) []Request {
	some := []Request{}
	for _, one := range s.Requests() {
		if asked(r, one.Resource, one.Reference) {
			some = append(some, one)
		}
	}
	return some
}

func asked(r *http.Request, resource Resource, reference string) bool {
	query := r.URL.Query()
	return (!query.Has("resource") || query.Get("resource") == string(resource)) &&
		(!query.Has("reference") || query.Get("reference") == reference)
}

func show(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v) // the reader has gone
}

func (s *Server) showIndex(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, `A provider that loses your answers.

POST /v1/charges     honours Idempotency-Key
POST /v1/transfers   ignores keys; look up by reference
POST /v1/messages    neither
     {"amount": 4200, "reference": "invoice-4417", "customer": "c-17"}

GET  /v1/transfers?reference=R
GET  /v1/transfers/by-reference/R
GET  /ledger         what really happened (?resource= &reference=)
GET  /ledger/summary
GET  /requests       what came over the wire (?resource= &reference=)

Header Sandbox-Fault, or ?fault=, makes one call misbehave:
     `+names(faults)+`
     NAME@N: only on the Nth request for its reference
`)
}
