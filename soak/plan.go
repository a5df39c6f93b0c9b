package main

import "time"

// Plan is one run that is to be executed once, with what it is to do in this
// order. It is also the input of the run.
type Plan struct {
	Workflow string `json:"workflow"`
	Key      string `json:"key"`
	Nodes    []Node `json:"nodes"`
}

// Node is one step of a plan. It does one of the things below.
type Node struct {
	Name string `json:"name"`
	// Do is to happen once; after a known failure it is tried up to Tries times.
	// Then Else is to happen in its place. Shared: other plans do it, too.
	Do      *Intention `json:"do,omitempty"`
	Tries   int        `json:"tries,omitzero"`
	Else    *Intention `json:"else,omitempty"`
	Keyless bool       `json:"keyless,omitzero"` // the run and the step name it
	Shared  bool       `json:"shared,omitzero"`
	// Sleep waits, Event waits for the event of this match, Read asks the
	// destination, Draw computes something.
	Sleep time.Duration `json:"sleep,omitzero"`
	Event string        `json:"event,omitzero"`
	Read  string        `json:"read,omitzero"`
	Draw  bool          `json:"draw,omitzero"`
	// Items are branches, of which AtOnce run at the same time.
	Items  []Item `json:"items,omitempty"`
	AtOnce int    `json:"at_once,omitzero"`
	// Child is a run of its own, which this one waits for; Shared applies.
	Child *Plan `json:"child,omitempty"`
}

// Item is one branch of a list.
type Item struct {
	Key   string `json:"key"`
	Nodes []Node `json:"nodes"`
}

// each calls visit with every node, children's plans included.
func (p *Plan) each(visit func(p *Plan, n *Node)) {
	var walk func(p *Plan, nodes []Node)
	walk = func(p *Plan, nodes []Node) {
		for i := range nodes {
			n := &nodes[i]
			visit(p, n)
			for _, item := range n.Items {
				walk(p, item.Nodes)
			}
			if n.Child != nil {
				walk(n.Child, n.Child.Nodes)
			}
		}
	}
	walk(p, p.Nodes)
}

// id is what a run is called.
func (p *Plan) id() runID { return runID{p.Workflow, p.Key} }

type runID struct{ Workflow, Key string }

func (r runID) String() string { return r.Workflow + " " + r.Key }

// The files of a soak of runs, beside the others.
const (
	plansFile         = "plans.jsonl"
	recordsFile       = "records.jsonl"
	askedFile         = "asked.jsonl"
	executionsPattern = "executions-*.jsonl"
)

// Record is what Semel says about one run after the soak.
type Record struct {
	runID
	State   string `json:"state"`
	Reason  string `json:"reason,omitzero"`
	Attempt int    `json:"attempt"`
	Parent  runID  `json:"parent,omitzero"`
}

// Asked is what a person asked of a run.
type Asked struct {
	runID
	Verb string `json:"verb"`
}

// Execution is what a workflow function noted at its begin and at its end: that
// a worker executes a run, under the number of the worker's claim.
type Execution struct {
	runID
	Attempt int       `json:"attempt"`
	Worker  string    `json:"worker"`
	At      time.Time `json:"at"`
	End     bool      `json:"end,omitzero"`
}

// Headers that the executions of runs add to their attempts: the number of the
// claim of the run, and when the operation was claimed.
const (
	runHeader     = "Soak-Run-Attempt"
	claimedHeader = "Soak-Claimed"
)
