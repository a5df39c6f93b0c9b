package main

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// story is a run with all that is known about it: it charges, has a list of
// two items, pays one way or another, and reports.
type story struct {
	plan   Plan
	state  string
	reason string
	claims map[string]string // states, by key
	effect map[string]int    // effects, by key
	asked  []Asked
	notes  []Execution
	sent   map[string]http.Header
	gone   bool // nobody has heard of the run
}

func told() story {
	do := func(key string) *Intention {
		return &Intention{Key: key, Reference: key, Resource: "charges", Amount: 100, Protection: None, Run: "r"}
	}
	x := story{state: "completed", claims: map[string]string{}, effect: map[string]int{}, sent: map[string]http.Header{}, plan: Plan{Workflow: "w", Key: "r", Nodes: []Node{
		{Name: "charge", Do: do("charge")},
		{Name: "items", Items: []Item{
			{Key: "a", Nodes: []Node{{Name: "one", Do: do("a1")}, {Name: "two", Do: do("a2")}}},
			{Key: "b", Nodes: []Node{{Name: "one", Do: do("b1")}}},
		}},
		{Name: "pay", Do: do("card"), Else: do("bank")},
		{Name: "report", Do: do("report")},
	}}}
	for _, key := range []string{"charge", "a1", "a2", "b1", "card", "report"} {
		x.claims[key], x.effect[key] = "completed", 1
	}
	return x
}

// not makes steps ones that did not begin.
func (x *story) not(keys ...string) {
	for _, key := range keys {
		delete(x.claims, key)
		delete(x.effect, key)
	}
}

// is makes a step end in a state, without an effect, and with it the run.
func (x *story) is(key, state, run string) {
	x.claims[key], x.state, x.reason = state, run, "a reason"
	delete(x.effect, key)
}

func (x *story) evidence() *evidence {
	e := &evidence{ledger: ledger{effects: map[string][]effect{}, requests: map[string][]request{}}}
	e.runs = runs{plans: []Plan{x.plan}, asked: x.asked, executions: x.notes}
	if !x.gone {
		e.runs.records = []Record{{runID: x.plan.id(), State: x.state, Reason: x.reason, Attempt: 1}}
	}
	x.plan.each(func(_ *Plan, n *Node) {
		for _, i := range []*Intention{n.Do, n.Else} {
			if i == nil {
				continue
			}
			e.intentions = append(e.intentions, *i)
			if s := x.claims[i.Key]; s != "" {
				c := Claim{Key: i.Key, State: s, Next: "done", Attempts: 1, KeySince: noon, ListedAt: noon.Add(time.Hour)}
				if s == "unknown" {
					c.Next, c.Why = "person", "why"
				}
				e.claims = append(e.claims, c)
				r := sent(1, noon, noon.Add(lease))
				r.Reference = i.Reference
				if h := x.sent[i.Key]; h != nil {
					r.Header = h
				}
				e.ledger.requests[i.Reference] = []request{r}
			}
			for range x.effect[i.Key] {
				one := acted(1, noon)
				one.Reference = i.Reference
				e.ledger.effects[i.Reference] = append(e.ledger.effects[i.Reference], one)
			}
		}
	})
	return e
}

// The verdict on runs, too, can be FAIL.
func TestRunVerdict(t *testing.T) {
	begin := func(attempt int, worker string, at time.Time) Execution {
		return Execution{runID: runID{"w", "r"}, Attempt: attempt, Worker: worker, At: at}
	}
	claimed := func(attempt string, at time.Time) http.Header {
		return http.Header{runHeader: {attempt}, claimedHeader: {at.Format(time.RFC3339Nano)}}
	}
	for name, test := range map[string]struct {
		change func(*story)
		want   string // in a finding; empty for PASS
	}{
		"completed, and all of it happened": {func(*story) {}, ""},
		"a step happened twice":             {func(x *story) { x.effect["a1"] = 2 }, "a1 happened 2 times"},
		"completed without a step":          {func(x *story) { x.not("report") }, "but not all of it happened: report"},
		"completed without an item":         {func(x *story) { x.not("b1") }, "but not all of it happened: b1"},
		"lost":                              {func(x *story) { x.gone, x.plan.Nodes = true, nil }, "run w r is lost"},
		"still running":                     {func(x *story) { x.state = "running" }, "it did not come to rest"},
		"paid another way": {func(x *story) {
			x.claims["bank"], x.effect["bank"] = "completed", 1
			x.is("card", "failed", "completed")
		}, ""},
		"paid twice, each way": {func(x *story) { x.claims["bank"], x.effect["bank"] = "completed", 1 }, "paid another way"},
		"paid another way, nobody knew": {func(x *story) {
			x.is("card", "unknown", "held")
			x.claims["bank"], x.effect["bank"] = "completed", 1
			x.not("report")
		}, "paid another way"},
		"held, nobody can know":              {func(x *story) { x.is("card", "unknown", "held"); x.not("report") }, ""},
		"held, and went on":                  {func(x *story) { x.is("card", "unknown", "held") }, "report happened, although pay before it did not"},
		"held without need":                  {func(x *story) { x.state, x.reason = "held", "because"; x.not("report") }, "without need: report"},
		"held, and nobody says why":          {func(x *story) { x.is("card", "unknown", "held"); x.reason = ""; x.not("report") }, "without need"},
		"failed":                             {func(x *story) { x.is("report", "failed", "failed") }, ""},
		"failed without a failure":           {func(x *story) { x.state, x.reason = "failed", "because" }, "without a failure"},
		"cancelled":                          {func(x *story) { x.state = "cancelled"; x.not("report"); x.asked = []Asked{{x.plan.id(), "cancel"}} }, ""},
		"cancelled, and nobody asked":        {func(x *story) { x.state = "cancelled"; x.not("report") }, "nobody asked to cancel it"},
		"an item waits, the other one ended": {func(x *story) { x.is("a1", "unknown", "held"); x.not("a2", "card", "report") }, ""},
		"an item waits, and went on":         {func(x *story) { x.is("a1", "unknown", "held"); x.not("card", "report") }, "two happened, although one before it did not"},
		"an item was blocked by another":     {func(x *story) { x.is("a1", "unknown", "held"); x.not("a2", "b1", "card", "report") }, "item b of items was blocked by another"},
		"an item waits, what follows began":  {func(x *story) { x.is("a1", "unknown", "held"); x.not("a2", "report") }, "pay happened, although items before it did not"},
		"one claim, two workers":             {func(x *story) { x.notes = []Execution{begin(1, "v", noon), begin(1, "w", noon)} }, "claim 1 was given to v and to w"},
		"two compute, the first claimed before": {func(x *story) {
			x.notes = []Execution{begin(1, "v", noon), begin(2, "w", noon.Add(time.Second))}
			x.sent["charge"] = claimed("1", noon.Add(900*time.Millisecond))
		}, ""},
		"two send": {func(x *story) {
			x.notes = []Execution{begin(1, "v", noon), begin(2, "w", noon.Add(time.Second))}
			x.sent["charge"] = claimed("1", noon.Add(1100*time.Millisecond))
		}, "claim 1 sent charge"},
	} {
		t.Run(name, func(t *testing.T) {
			x := told()
			test.change(&x)
			v := judge(x.evidence())
			got := strings.Join(v.wrong, "\n")
			if v.passed() != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("findings %q, want %q", got, test.want)
			}
		})
	}
}
