package postgres

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/semel-dev/semel"
)

// Requests that share a transaction hold their locks until all are done, and so
// do those of other committers, here and in other processes. All lock in one
// order, so that no two batches wait for each other: operations that are there,
// by their IDs; then what claims or starts something new, by scope and key; then
// runs, from the newest to the oldest, so that a child comes before its parent.
// Transactions of their own keep to the same order. Steps lock their run for
// share, whenever they come: others who lock several runs lock one that executes
// for share too, but for the first that waits for it.

// claims gives the request its place by what c claims. What is recorded before
// it keeps the run from other workers until then, and so stays before it.
func (r *request) claims(c semel.Change, before []statement) {
	if c.Before.Version == 0 {
		r.scope, r.key = c.After.Scope, c.After.Key
		return
	}
	for i := range before {
		if before[i].there == (semel.ID{}) {
			before[i].there = c.After.ID
		}
	}
}

// placed is a statement with its request's place in the batch.
type placed struct {
	*statement
	request int
}

// inOrder is the statements of a batch in the order in which they lock. Those of
// a request that lock nothing that is there stay in theirs.
func inOrder(batch []*request) []placed {
	var all []placed
	for i, r := range batch {
		for j := range r.statements {
			if r.statements[j].refused == nil {
				all = append(all, placed{&r.statements[j], i})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int {
		return cmp.Or(zeroLast(a.there == semel.ID{}, b.there == semel.ID{}), bytes.Compare(a.there[:], b.there[:]))
	})
	return all
}

// byPlace compares requests by what they claim or start, or else by the run that
// they change.
func byPlace(a, b *request) int {
	return cmp.Or(
		zeroLast(a.scope == "", b.scope == ""),
		strings.Compare(string(a.scope), string(b.scope)),
		strings.Compare(string(a.key), string(b.key)),
		newestFirst(a.run, b.run),
	)
}

func zeroLast(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func newestFirst(a, b semel.ID) int { return bytes.Compare(b[:], a[:]) }
