package demo

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/semel-dev/semel/sandbox"
)

// Report is what the night came to, as JSON. The counts of the embedded Counts
// are those of charges and transfers with Semel.
type Report struct {
	Counts
	Receipts Counts `json:"receipts"`
	// Run is the one run that it all was with Semel.
	Run RunReport `json:"run"`
	// Ledger is the biller's own, with Semel.
	Ledger Paid `json:"ledger"`
	// Naive is the usual way, its charges and transfers.
	Naive Naive `json:"naive"`
	// RequestsThisRun is how many requests this run sent with Semel, receipts
	// included: 0 if everything was on record.
	RequestsThisRun int `json:"requests_this_run"`
}

// Counts is one group of intentions. Requests, lost responses, charges,
// duplicates and missing are counted in the ledgers of the destinations.
type Counts struct {
	Invoices  int `json:"invoices"`
	Completed int `json:"completed"` // as the sender believes
	Failed    int `json:"failed"`    // as the sender believes
	Unknown   int `json:"unknown"`   // nobody can know
	Requests  int `json:"requests"`
	// LostResponses is how many requests met a fault that kept the true answer
	// back.
	LostResponses int `json:"lost_responses"`
	WorkersKilled int `json:"workers_killed"`
	Charges       int `json:"charges"`    // effects that happened
	Duplicates    int `json:"duplicates"` // of them, beyond one per intention
	Missing       int `json:"missing"`    // intended, did not happen and not unknown
}

// Naive is Counts with what the customers paid too much, in units of the
// currency.
type Naive struct {
	Counts
	AmountChargedTwice json.Number `json:"amount_charged_twice"`
}

// OK reports whether with Semel nobody was charged twice and nobody forgotten,
// and the biller's ledger says the same.
func (r *Report) OK() bool {
	return r.Duplicates == 0 && r.Missing == 0 && r.Ledger.Twice == 0 && r.Ledger.Missing <= r.Unknown
}

// counts adds up some resources.
func counts(workersKilled int, all ...*count) Counts {
	out := Counts{WorkersKilled: workersKilled}
	for _, c := range all {
		out.Invoices += c.intended
		out.Completed += c.completed
		out.Failed += c.failed
		out.Unknown += c.unknown
		out.Requests += c.requests
		out.LostResponses += c.lost
		out.Charges += c.happened
		out.Duplicates += c.twice
		out.Missing += c.missing
	}
	return out
}

func (t *totals) report() Report {
	usual := counts(t.usualKilled, t.usual[sandbox.Charges], t.usual[sandbox.Transfers])
	usual.Completed, usual.Failed = t.believedDone, t.believedNot
	twice := t.usual[sandbox.Charges].twiceAmount + t.usual[sandbox.Transfers].twiceAmount
	return Report{
		Counts:          counts(t.semelKilled, t.semel[sandbox.Charges], t.semel[sandbox.Transfers]),
		Receipts:        counts(0, t.semel[sandbox.Messages]), // no worker dies while it sends one
		Run:             t.run,
		Ledger:          t.paid,
		Naive:           Naive{usual, json.Number(fmt.Sprintf("%d.%02d", twice/100, twice%100))},
		RequestsThisRun: t.sent,
	}
}

// money is an amount in cents as people write it.
func money(cents int64) string {
	units := strconv.FormatInt(cents/100, 10)
	var groups []string
	for len(units) > 3 {
		groups = append([]string{units[len(units)-3:]}, groups...)
		units = units[:len(units)-3]
	}
	return strings.Join(append([]string{units}, groups...), ",") + fmt.Sprintf(".%02d", cents%100)
}
