package main

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/semel-dev/semel"
)

// node is a step of a run, or an item of a list, with what is below it.
type node struct {
	path     string
	name     string // the last part of the path
	item     bool
	record   *semel.StepRecord
	waits    []semel.RunWait
	approval *semel.Approval
	children []*node
}

// standing is where a node stands.
type standing string

const (
	isDone    standing = "done"
	isFailed  standing = "failed"
	isWaiting standing = "waits"
	isHeld    standing = "needs a person"
	isUnknown standing = "outcome unknown"
	isRunning standing = "running"
	isToDo    standing = "not begun"
)

// sign marks a standing at the beginning of a line.
func (s standing) sign() string {
	return map[standing]string{isDone: "+", isFailed: "x", isWaiting: "~", isHeld: "!", isUnknown: "?", isRunning: ">", isToDo: "."}[s]
}

// treeOf puts the steps of a run where they belong.
func treeOf(steps []semel.StepRecord, waits []semel.RunWait, approvals []semel.Approval) *node {
	root := &node{}
	nodes := map[string]*node{"": root}
	for i := range steps {
		n := nodeAt(nodes, steps[i].Path)
		n.record = &steps[i]
		if steps[i].Kind == semel.StepEach {
			n.list(nodes)
		}
	}
	for _, w := range waits {
		n := nodeAt(nodes, w.Path)
		n.waits = append(n.waits, w)
	}
	for i := range approvals { // newest first: the first of a step counts
		if n, ok := nodes[approvals[i].Path]; ok && n.approval == nil {
			n.approval = &approvals[i]
		}
	}
	return root
}

// nodeAt finds the node of a path, or makes it, with those above.
func nodeAt(nodes map[string]*node, path string) *node {
	if n, ok := nodes[path]; ok {
		return n
	}
	above, name, item := splitPath(path)
	n := &node{path: path, name: name, item: item}
	nodes[path] = n
	parent := nodeAt(nodes, above)
	parent.children = append(parent.children, n)
	return n
}

// splitPath takes the last part off a step path; item: it is one of a list.
func splitPath(path string) (above, name string, item bool) {
	if i := strings.LastIndexByte(path, '['); i > 0 && strings.HasSuffix(path, "]") {
		return path[:i], path[i+1 : len(path)-1], true
	}
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)], path[i+1:], false
}

// list adds the items of a recorded list, in its order.
func (n *node) list(nodes map[string]*node) {
	var l struct{ Keys []string }
	if json.Unmarshal(n.record.Result, &l) != nil {
		return // what is known of its items is shown
	}
	place := make(map[string]int, len(l.Keys))
	for i, key := range l.Keys {
		place[key] = i
		nodeAt(nodes, n.path+"["+key+"]")
	}
	slices.SortStableFunc(n.children, func(a, b *node) int { return place[a.name] - place[b.name] })
}

// standing is where the node stands as of now.
func (n *node) standing(now time.Time) standing {
	for _, w := range n.waits {
		if w.Person {
			return isHeld
		}
	}
	if len(n.waits) > 0 {
		return isWaiting
	}
	if r := n.record; r != nil && r.Effect != nil {
		return effectStanding(r.Effect, now)
	}
	if r := n.record; r != nil {
		switch r.Outcome {
		case semel.StepCompleted:
			return isDone
		case semel.StepFailed, semel.StepTimedOut, semel.StepRejected:
			return isFailed
		case semel.StepOpen:
		}
	}
	return n.below(now)
}

// below is the standing of what is not decided by a record of its own: what
// needs attention first.
func (n *node) below(now time.Time) standing {
	seen := map[standing]bool{}
	for _, c := range n.children {
		seen[c.standing(now)] = true
	}
	for _, s := range []standing{isHeld, isUnknown, isWaiting, isRunning} {
		if seen[s] {
			return s
		}
	}
	if seen[isDone] || seen[isFailed] || n.record != nil {
		return isRunning
	}
	return isToDo
}

func effectStanding(o *semel.Operation, now time.Time) standing {
	switch o.StateAt(now) {
	case semel.Completed:
		return isDone
	case semel.Failed:
		return isFailed
	case semel.InProgress:
		return isRunning
	case semel.Unknown:
		if needsPerson(o, now) {
			return isHeld
		}
		return isUnknown
	}
	return isToDo
}
