package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/semel-dev/semel"
)

// planner draws plans.
type planner struct {
	rng  *rand.Rand
	seed uint64
	n    int // intentions so far
}

// planRuns draws n runs that clients start; children come on top.
func planRuns(seed uint64, n int) []Plan {
	g := &planner{rng: rand.New(rand.NewPCG(seed, 0)), seed: seed}
	var all []Plan
	var shared *Plan // a child that the next parent asks for, too
	for len(all) < n {
		key := fmt.Sprintf("run-%05d", len(all))
		switch draw := g.rng.IntN(100); {
		case draw < 25:
			all = append(all, g.bill("bill", key))
		case draw < 50:
			all = append(all, g.batch(key))
		case draw < 70:
			all = append(all, g.order(key))
		case draw < 82:
			p := Plan{Workflow: "family", Key: key, Nodes: []Node{g.do(key, "first", Lookup, Keyed)}}
			child, twice := shared, shared != nil
			if shared = nil; !twice {
				leaf := g.bill("leaf", "child of "+key)
				if child = &leaf; g.rng.IntN(2) == 0 {
					shared = child
				}
			}
			p.Nodes = append(p.Nodes, Node{Name: "child", Child: child, Shared: twice || shared != nil}, g.do(key, "last", Keyed, None))
			all = append(all, p)
		case draw < 92:
			meet := g.do(key, "meet", Keyed, Short, Lookup)
			meet.Shared = true
			for _, k := range []string{key, key + "-too"} {
				all = append(all, Plan{Workflow: "meet", Key: k, Nodes: []Node{g.do(k, "own", Keyed, Lookup), meet}})
			}
		default:
			n := g.do(key, "pay", Keyed, Short, Lookup)
			n.Tries, n.Do.Final = 1+g.rng.IntN(2), g.rng.IntN(2) == 0
			n.Else = g.intention(key, Lookup)
			all = append(all, Plan{Workflow: "fallback", Key: key, Nodes: []Node{n, g.do(key, "after", Keyed)}})
		}
	}
	return all
}

// bill charges, sleeps and mails; the mail has no key of its own.
func (g *planner) bill(workflow, key string) Plan {
	mail := g.do(key, "mail", None)
	mail.Keyless = true
	mail.Do.Key = string(semel.StepKey(&semel.Run{Workflow: workflow, Key: semel.Key(key)}, "mail"))
	return Plan{Workflow: workflow, Key: key, Nodes: []Node{
		g.do(key, "charge", Keyed, Keyed, Short), {Name: "rest", Sleep: g.sleep()}, mail,
	}}
}

// batch is a list, and what follows it.
func (g *planner) batch(key string) Plan {
	list := Node{Name: "items", AtOnce: 1 + g.rng.IntN(6)}
	for i := range 1 + g.rng.IntN(20) {
		item := Item{Key: fmt.Sprintf("%s/item-%02d", key, i)} // a key may hold a slash
		item.Nodes = append(item.Nodes, g.do(key, "one", Keyed, Lookup, Short))
		switch g.rng.IntN(6) {
		case 0:
			item.Nodes = append(item.Nodes, Node{Name: "rest", Sleep: g.sleep()}, g.do(key, "two", Lookup))
		case 1:
			item.Nodes = append(item.Nodes, g.do(key, "two", None))
		}
		list.Items = append(list.Items, item)
	}
	return Plan{Workflow: "batch", Key: key, Nodes: []Node{list, g.do(key, "report", Lookup)}}
}

// order waits for an event and looks around.
func (g *planner) order(key string) Plan {
	charge, deliver := g.do(key, "charge", Keyed), g.do(key, "deliver", Lookup)
	return Plan{Workflow: "order", Key: key, Nodes: []Node{
		{Name: "lot", Draw: true}, charge, {Name: "paid", Event: key}, deliver, {Name: "read", Read: deliver.Do.Reference},
	}}
}

func (g *planner) sleep() time.Duration {
	return time.Duration(200+g.rng.IntN(1300)) * time.Millisecond
}

// do is a step whose intention has one of the protections.
func (g *planner) do(run, name string, protections ...Protection) Node {
	n := Node{Name: name, Do: g.intention(run, protections[g.rng.IntN(len(protections))]), Tries: 3}
	if g.rng.IntN(12) == 0 {
		n.Tries = 1 // a refusal fails the run
	}
	return n
}

func (g *planner) intention(run string, p Protection) *Intention {
	i := &Intention{
		Key: fmt.Sprintf("intention-%06d", g.n), Reference: fmt.Sprintf("ref-%d-%06d", g.seed, g.n),
		Amount: 100 + g.rng.Int64N(100_000), Protection: p, Run: run, Resource: "charges",
	}
	switch p {
	case Lookup:
		i.Resource = "transfers"
	case None:
		i.Resource = "messages"
	case Keyed, Short:
	}
	g.n++
	return i
}

// intended are all intentions of plans, each once.
func intended(plans []Plan) (all []Intention) {
	seen := map[string]bool{}
	for i := range plans {
		plans[i].each(func(_ *Plan, n *Node) {
			for _, one := range []*Intention{n.Do, n.Else} {
				if one != nil && !seen[one.Key] {
					seen[one.Key] = true
					all = append(all, *one)
				}
			}
		})
	}
	return all
}
