package main

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// tale is one intention with all that is known about it.
type tale struct {
	intention Intention
	claim     Claim
	requests  []request
	effects   []effect
	freezes   []Freeze
	asked     []Asked
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// happened is a tale of an operation that completed with one effect.
func happened(p Protection) tale {
	i := Intention{Key: "k", Reference: "r", Resource: "charges", Amount: 100, Protection: p}
	return tale{
		intention: i,
		claim:     Claim{Key: "k", State: "completed", Next: "done", Attempts: 1, KeySince: noon, ListedAt: noon.Add(time.Hour)},
		requests:  []request{sent(1, noon, noon.Add(lease))},
		effects:   []effect{acted(1, noon)},
	}
}

func sent(number int, at, by time.Time) request {
	return request{
		Number: number, At: at, Method: "POST", Reference: "r", Status: 201, ledger: "main",
		Header: http.Header{workerHeader: {"w"}, sendByHeader: {by.Format(time.RFC3339Nano)}},
	}
}

func acted(request int, at time.Time) effect {
	return effect{Resource: "charges", ID: "ch", Reference: "r", Amount: 100, At: at, Number: request, ledger: "main"}
}

// again adds a second effect, whose request came at a time and had to leave by
// another.
func (x *tale) again(at, by time.Time) {
	x.requests = append(x.requests, sent(2, at, by))
	x.effects = append(x.effects, acted(2, at))
}

// A verdict is only worth something if it can be FAIL.
func TestVerdict(t *testing.T) {
	tests := map[string]struct {
		protection Protection
		change     func(*tale)
		want       string // in a finding; empty for PASS
		boundary   int
	}{
		"it happened once": {Keyed, func(*tale) {}, "", 0},
		"twice":            {Lookup, func(x *tale) { x.again(noon, noon.Add(time.Second)) }, "k happened 2 times", 0},
		"twice, and nobody knows": {None, func(x *tale) {
			x.claim.State, x.claim.Next, x.claim.Why = "unknown", "person", "why"
			x.again(noon, noon.Add(time.Second))
		}, "k happened 2 times", 0},
		"completed without an effect": {Keyed, func(x *tale) { x.effects = nil }, "k is completed and did not happen", 0},
		"failed with an effect":       {Lookup, func(x *tale) { x.claim.State = "failed"; x.intention.Final = true }, "k is failed and happened", 0},
		"failed, and nobody asked again": {
			Lookup, func(x *tale) { x.claim.State, x.effects = "failed", nil },
			"k is missing", 0,
		},
		"failed for good": {Lookup, func(x *tale) { x.claim.State, x.effects, x.intention.Final = "failed", nil, true }, "", 0},
		"never claimed":   {Keyed, func(x *tale) { x.claim, x.effects, x.requests = Claim{}, nil, nil }, `k is left ""`, 0},
		"in progress":     {Keyed, func(x *tale) { x.claim.State = "in_progress" }, `k is left "in_progress"`, 0},
		"unknown, no protection": {
			None, func(x *tale) { x.claim.State, x.claim.Next, x.claim.Why = "unknown", "person", "why" },
			"", 0,
		},
		"unknown, waits for no person": {
			None, func(x *tale) { x.claim.State, x.claim.Next = "unknown", "resend" },
			"k is unknown without need", 0,
		},
		"unknown, can be looked up": {
			Lookup, func(x *tale) { x.claim.State, x.claim.Next, x.claim.Why = "unknown", "person", "why" },
			"k is unknown without need", 0,
		},
		"unknown, key honoured": {
			Keyed, func(x *tale) { x.claim.State, x.claim.Next, x.claim.Why = "unknown", "person", "why" },
			"k is unknown without need", 0,
		},
		"unknown, its run was cancelled": {Keyed, func(x *tale) {
			x.claim.State, x.claim.Next, x.claim.Why = "unknown", "person", "why"
			x.intention.Run, x.asked = "k", []Asked{{runID{"w", "k"}, "cancel"}}
		}, "", 0},
		"unknown, its run was paused": {Keyed, func(x *tale) {
			x.claim.State, x.claim.Next, x.claim.Why = "unknown", "person", "why"
			x.intention.Run, x.asked = "k", []Asked{{runID{"w", "k"}, "pause"}}
		}, "k is unknown without need", 0},
		"unknown, cancelled, but it can be looked up": {Lookup, func(x *tale) {
			x.claim.State, x.claim.Next, x.claim.Why = "unknown", "person", "why"
			x.intention.Run, x.asked = "k", []Asked{{runID{"w", "k"}, "cancel"}}
		}, "k is unknown without need", 0},
		"unknown, key honoured, its answer is 500 for ever": {Keyed, func(x *tale) {
			x.claim.State, x.claim.Next, x.claim.Why = "unknown", "person", "why"
			x.requests[0].Fault = "error_after"
		}, "", 0},
		"unknown, window open": {Short, func(x *tale) {
			x.claim.State, x.claim.Next, x.claim.Why, x.claim.ListedAt = "unknown", "person", "why", noon.Add(time.Second)
		}, "k is unknown without need", 0},
		"unknown, window over": {
			Short, func(x *tale) { x.claim.State, x.claim.Next, x.claim.Why = "unknown", "person", "why" },
			"", 0,
		},
		"an incident":        {Keyed, func(x *tale) { x.claim.Incident = "duplicate" }, "k has an incident", 0},
		"another amount":     {Keyed, func(x *tale) { x.effects[0].Amount = 1 }, "charges of 1 happened", 0},
		"half of it":         {Keyed, func(x *tale) { x.effects[0].Partial = true }, "happened, intended was", 0},
		"an effect too much": {Keyed, func(x *tale) { x.effects = append(x.effects, effect{Reference: "other"}) }, `which nobody intended`, 0},
		"the destination acts too late": {
			Keyed, func(x *tale) { x.effects[0].At = noon.Add(maxProcessing + 1) },
			"the destination broke its own terms", 0,
		},
		"twice, a frozen worker's request came late": {Lookup, func(x *tale) {
			x.again(noon.Add(20*time.Second), noon.Add(2*time.Second))
			x.freezes = []Freeze{{"w", noon.Add(time.Second), noon.Add(19 * time.Second)}}
		}, "", 1},
		"twice, late, but another was frozen": {Lookup, func(x *tale) {
			x.again(noon.Add(20*time.Second), noon.Add(2*time.Second))
			x.freezes = []Freeze{{"v", noon.Add(time.Second), noon.Add(19 * time.Second)}}
		}, "k happened 2 times", 0},
		"twice, frozen, but it left in time": {Lookup, func(x *tale) {
			x.again(noon.Add(time.Second), noon.Add(2*time.Second))
			x.freezes = []Freeze{{"w", noon, noon.Add(19 * time.Second)}}
		}, "k happened 2 times", 0},
		"twice, frozen, but only after the time to send": {Lookup, func(x *tale) {
			x.again(noon.Add(20*time.Second), noon.Add(2*time.Second))
			x.freezes = []Freeze{{"w", noon.Add(3 * time.Second), noon.Add(19 * time.Second)}}
		}, "k happened 2 times", 0},
		"twice under a key that is honoured": {Keyed, func(x *tale) {
			x.again(noon.Add(20*time.Second), noon.Add(2*time.Second))
			x.freezes = []Freeze{{"w", noon.Add(time.Second), noon.Add(19 * time.Second)}}
		}, "k happened 2 times", 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			x := happened(test.protection)
			test.change(&x)
			e := &evidence{
				intentions: []Intention{x.intention}, freezes: x.freezes,
				ledger: ledger{effects: map[string][]effect{}, requests: map[string][]request{"r": x.requests}},
			}
			e.runs.asked = x.asked
			for _, one := range x.effects {
				e.ledger.effects[one.Reference] = append(e.ledger.effects[one.Reference], one)
			}
			if x.claim.Key != "" {
				e.claims = []Claim{x.claim}
			}
			v := judge(e)
			got := strings.Join(v.wrong, "\n")
			if v.passed() != (test.want == "") || !strings.Contains(got, test.want) || len(v.boundary) != test.boundary {
				t.Errorf("findings %q, %d boundary cases; want %q, %d", got, len(v.boundary), test.want, test.boundary)
			}
		})
	}
}
