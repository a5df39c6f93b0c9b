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
// order, so that no two batches wait for each other: first what changes
// operations that are there, by their IDs; then what claims or starts something
// new, by scope and key.

// orderBy takes the place of c for the request.
func (r *request) orderBy(c semel.Change) {
	if c.Before.Version == 0 {
		r.scope, r.key = c.After.Scope, c.After.Key
		return
	}
	r.locks = append(r.locks, c.After.ID)
}

// inOrder sorts a batch.
func inOrder(a, b *request) int {
	return cmp.Or(
		strings.Compare(string(a.scope), string(b.scope)), // those without are first
		strings.Compare(string(a.key), string(b.key)),
		slices.CompareFunc(a.locks, b.locks, compareIDs),
	)
}

func compareIDs(a, b semel.ID) int { return bytes.Compare(a[:], b[:]) }

// lockAll locks operations in their order.
const lockAll = `
select from semel.operation
where id = any($1::uuid[])
order by id
for no key update`

// together is what a batch must lock before anything else: with a request that
// locks several operations, no order of requests is one of their locks.
func together(batch []*request) [][16]byte {
	if !slices.ContainsFunc(batch, func(r *request) bool { return len(r.locks) > 1 }) {
		return nil
	}
	var all [][16]byte
	for _, r := range batch {
		for _, id := range r.locks {
			all = append(all, id)
		}
	}
	return all
}
