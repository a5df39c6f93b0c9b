package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
)

// runs is what is known about the runs of a soak. Without plans it is empty.
type runs struct {
	plans      []Plan
	records    []Record
	asked      []Asked
	executions []Execution
}

// runCounts is what became of the runs.
type runCounts struct {
	planned, executions, overlaps int
	crossed                       int // sent by two executions at once
	states                        map[string]int
	held                          map[string]int // why those that need a person do
}

// standing is how far a part of a plan came.
type standing int

const (
	open    standing = iota // not begun, and nothing stands in its way
	done                    // happened, once
	failed                  // nothing happened, for a reason that is known
	blocked                 // nobody knows, or another run must end
)

// runJudge judges runs.
type runJudge struct {
	e       *evidence
	v       *verdict
	claims  map[string]Claim
	records map[runID]Record
	stopped map[runID]bool // somebody asked to cancel it, or one that started it
	judged  map[runID]bool
}

// judgeRuns holds plans against the ledger. Whether something happened is read
// there alone; what Semel says tells only which law applies.
func (v *verdict) judgeRuns(e *evidence, claims map[string]Claim) {
	v.runs = runCounts{states: map[string]int{}, held: map[string]int{}}
	j := &runJudge{e: e, v: v, claims: claims, records: map[runID]Record{}, stopped: map[runID]bool{}, judged: map[runID]bool{}}
	for _, r := range e.runs.records {
		if _, twice := j.records[r.runID]; twice {
			v.blame("run %s: two runs", r.runID)
		}
		j.records[r.runID] = r
	}
	for _, a := range e.runs.asked {
		if a.Verb == "cancel" {
			j.stopped[a.runID] = true
		}
	}
	for i := range e.runs.plans {
		p := &e.runs.plans[i]
		j.judge(p)
		p.each(func(_ *Plan, n *Node) {
			if n.Child != nil {
				j.judge(n.Child)
			}
		})
	}
	for id := range j.records {
		if !j.judged[id] {
			v.blame("a run %s, which nobody planned", id)
		}
	}
	j.executions()
}

// judge judges one run.
func (j *runJudge) judge(p *Plan) {
	if j.judged[p.id()] {
		return
	}
	j.judged[p.id()] = true
	r, known := j.records[p.id()]
	parent := r.Parent != runID{}
	if known && parent && j.stopped[r.Parent] {
		j.stopped[p.id()] = true
	}
	if !known {
		if !slices.ContainsFunc(j.e.runs.plans, func(q Plan) bool { return q.id() == p.id() }) {
			return // a child whose parent did not come so far; its effects are counted there
		}
		j.v.blame("run %s is lost: it was accepted, and is not on record", p.id())
		return
	}
	j.v.runs.planned++
	j.v.runs.states[r.State]++
	got := j.sequence(p, p.Nodes)
	story := fmt.Sprintf("run %s is %s (%s) after %d claims", p.id(), r.State, r.Reason, r.Attempt)
	switch r.State {
	case "completed":
		if got != done {
			j.v.blame("%s, but not all of it happened: %s", story, j.first(p.Nodes))
		}
	case "cancelled":
		if !j.stopped[p.id()] {
			j.v.blame("%s, and nobody asked to cancel it", story)
		}
	case "failed":
		if got != failed && (got != done || !p.shares()) || r.Reason == "" {
			j.v.blame("%s, without a failure: %s", story, j.first(p.Nodes))
		}
	case "held", "waiting":
		why := "an outcome that nobody can know, or a run that waits for one"
		if got == failed {
			why = "a known failure, after all attempts"
		}
		if got != blocked && got != failed || r.Reason == "" {
			j.v.blame("%s without need: %s", story, j.first(p.Nodes))
		}
		j.v.runs.held[why]++
	default:
		j.v.blame("%s: it did not come to rest", story)
	}
	if r.State != "completed" && !j.stopped[p.id()] {
		j.independent(p, story)
	}
}

// shares reports whether another run has a step of the plan, too: that run may
// have done it after this one had failed.
func (p *Plan) shares() (is bool) {
	p.each(func(_ *Plan, n *Node) { is = is || n.Shared })
	return is
}

// independent demands that no item of a list was blocked by another: each that
// is not done has a reason of its own.
func (j *runJudge) independent(p *Plan, story string) {
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if s := j.node(p, n); n.Items == nil {
			if s != done {
				return // it did not come to what follows
			}
			continue
		}
		for _, item := range n.Items {
			if j.sequence(p, item.Nodes) == open {
				j.v.blame("%s: item %s of %s was blocked by another: %s", story, item.Key, n.Name, j.first(item.Nodes))
			}
		}
	}
}

// sequence is how far nodes came. What follows one that is not done must not
// have begun.
func (j *runJudge) sequence(p *Plan, nodes []Node) standing {
	for i := range nodes {
		s := j.node(p, &nodes[i])
		if s == done {
			continue
		}
		j.untouched(p, &nodes[i], nodes[i+1:])
		return s
	}
	return done
}

// untouched demands that nothing of rest happened, which follows a node that
// is not done.
func (j *runJudge) untouched(p *Plan, after *Node, rest []Node) {
	for i := range rest {
		n := &rest[i]
		if n.Shared {
			continue // another run may have done it
		}
		if j.happened(n.Do) || j.happened(n.Else) {
			j.v.blame("run %s: %s happened, although %s before it did not", p.id(), n.Name, after.Name)
		}
		for _, item := range n.Items {
			j.untouched(p, after, item.Nodes)
		}
		if n.Child != nil {
			j.untouched(p, after, n.Child.Nodes)
		}
	}
}

func (j *runJudge) node(p *Plan, n *Node) standing {
	switch {
	case n.Do != nil:
		s := j.effect(n.Do)
		if n.Else == nil {
			return s
		}
		if s == failed {
			return j.effect(n.Else)
		}
		if j.happened(n.Else) {
			j.v.blame("run %s: %s was paid another way, although nobody knew that the first had failed", p.id(), n.Name)
		}
		return s
	case n.Items != nil:
		worst := done
		for _, item := range n.Items {
			switch s := j.sequence(p, item.Nodes); {
			case s == blocked, worst == done:
				worst = s
			case s == open && worst == failed:
				worst = s
			}
		}
		return worst
	case n.Child != nil:
		switch j.records[n.Child.id()].State {
		case "completed":
			return done
		case "failed", "cancelled":
			return failed
		case "":
			return open
		}
		return blocked
	}
	return done // it leaves no trace at the destination
}

func (j *runJudge) happened(i *Intention) bool {
	return i != nil && len(j.e.ledger.effects[i.Reference]) > 0
}

func (j *runJudge) effect(i *Intention) standing {
	switch c := j.claims[i.Key]; c.State {
	case "":
		return open
	case "completed":
		if j.happened(i) {
			return done
		}
		return open
	case "failed":
		return failed
	}
	return blocked
}

// first says where nodes are not done.
func (j *runJudge) first(nodes []Node) string {
	where := "all of it happened"
	p := Plan{Nodes: nodes}
	p.each(func(_ *Plan, n *Node) {
		if where == "all of it happened" && n.Do != nil && j.effect(n.Do) != done && (n.Else == nil || j.effect(n.Else) != done) {
			where = n.Do.Key + ": " + j.e.story(*n.Do, j.claims[n.Do.Key])
		}
	})
	return where
}

// executions demands that no claim of a run was given out twice, and that an
// execution claims nothing any more once a later one has begun: two may
// compute at once, but never both send.
func (j *runJudge) executions() {
	begun := map[runID]map[int]Execution{}
	ended := map[runID]map[int]time.Time{}
	for _, x := range j.e.runs.executions {
		if begun[x.runID] == nil {
			begun[x.runID], ended[x.runID] = map[int]Execution{}, map[int]time.Time{}
		}
		if x.End {
			ended[x.runID][x.Attempt] = x.At
			continue
		}
		j.v.runs.executions++
		if other, twice := begun[x.runID][x.Attempt]; twice {
			j.v.blame("run %s: claim %d was given to %s and to %s", x.runID, x.Attempt, other.Worker, x.Worker)
		}
		begun[x.runID][x.Attempt] = x
	}
	for id, all := range begun {
		for n := range all {
			if end, ok := ended[id][n]; ok && !all[n+1].At.IsZero() && end.After(all[n+1].At) {
				j.v.runs.overlaps++
			}
		}
	}
	for i := range j.e.runs.plans {
		j.e.runs.plans[i].each(func(p *Plan, n *Node) {
			for _, one := range []*Intention{n.Do, n.Else} {
				if one != nil && !n.Shared {
					j.sentBy(p.id(), one, begun[p.id()])
				}
			}
		})
	}
}

func (j *runJudge) sentBy(id runID, i *Intention, begun map[int]Execution) {
	for _, r := range j.e.ledger.requests[i.Reference] {
		attempt, err := strconv.Atoi(r.Header.Get(runHeader))
		claimed, errTime := time.Parse(time.RFC3339Nano, r.Header.Get(claimedHeader))
		if err != nil || errTime != nil {
			continue // recovery sent it
		}
		for n, x := range begun {
			if n > attempt && claimed.After(x.At) {
				j.v.runs.crossed++
				j.v.blame("run %s: claim %d sent %s, claimed at %s, when claim %d had begun at %s (%s)", id, attempt, i.Key, clock(claimed), n, clock(x.At), x.Worker)
			}
		}
	}
}

func (n *runCounts) print(w io.Writer) {
	fmt.Fprintf(w, "\n%d runs, children included, in %d executions; two executions of one run computed at once %d times, and both sent %d times\n",
		n.planned, n.executions, n.overlaps, n.crossed)
	tally(w, n.states)
	if len(n.held) > 0 {
		fmt.Fprintf(w, "what those need that are held or wait:\n")
		tally(w, n.held)
	}
}
