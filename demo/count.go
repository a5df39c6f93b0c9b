package demo

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/sandbox"
)

// count is what became of one resource's intentions, counted in the
// destination's ledger.
type count struct {
	intended, happened, twice, missing int
	twiceAmount                        int64
	requests, lost                     int // orders, and those of them whose answer was not sent
	again                              int // keys that were sent more than once
	found                              int // references that a lookup found
	resent                             int // references that no key protects and that were sent more than once

	// What only Semel's rows can say.
	completed, failed, unknown int
	review                     []semel.ID // unknown, a person must settle it
}

// tally counts the ledger of p against what was intended, by resource. What
// nobody intended, for example somebody's own requests, is not counted. known
// is what Semel says about the operations, by sending name; nil for the usual
// way.
func tally(p *provider, due []invoice, known map[string]semel.Operation) map[sandbox.Resource]*count {
	intended := map[string]bool{}
	counts := map[sandbox.Resource]*count{sandbox.Charges: {}, sandbox.Transfers: {}, sandbox.Messages: {}}
	for _, i := range due {
		for _, resource := range []sandbox.Resource{i.resource(), sandbox.Messages} {
			intended[sending(resource, i.reference())] = true
			counts[resource].intended++
		}
	}
	effects := map[string]int{}
	for _, e := range p.Effects() {
		name, c := sending(e.Resource, e.Reference), counts[e.Resource]
		if !intended[name] {
			continue
		}
		c.happened++
		if effects[name]++; effects[name] > 1 {
			c.twice++
			c.twiceAmount += e.Amount
		}
	}
	countRequests(p, intended, counts)
	for name := range intended {
		resource, _, _ := strings.Cut(name, "/")
		c := counts[sandbox.Resource(resource)]
		o, ok := known[name]
		switch {
		case ok && o.State == semel.Completed:
			c.completed++
		case ok && o.State == semel.Failed:
			c.failed++
		case ok:
			c.unknown++
			c.review = append(c.review, o.ID)
		}
		if effects[name] == 0 && (!ok || o.State == semel.Completed || o.State == semel.Failed) {
			c.missing++
		}
	}
	for _, c := range counts {
		slices.SortFunc(c.review, func(a, b semel.ID) int { return bytes.Compare(a[:], b[:]) }) // oldest first
	}
	return counts
}

// twins finds two invoices that differ in nothing but their number, and
// reports whether the ledger has each exactly once.
func twins(p *provider, due []invoice) (numbers [2]string, once bool) {
	first := map[invoice]string{}
	for _, i := range due {
		number := i.Number
		i.Number = ""
		if other, ok := first[i]; ok {
			i.Number = number
			a, b := invoice{Number: other}, invoice{Number: number}
			return [2]string{other, number}, p.Count(i.resource(), a.reference()) == 1 && p.Count(i.resource(), b.reference()) == 1
		}
		first[i] = number
	}
	return numbers, false
}

func countRequests(p *provider, intended map[string]bool, counts map[sandbox.Resource]*count) {
	keys, sent, found := map[string]int{}, map[string]int{}, map[string]bool{}
	for _, r := range p.Requests() {
		name, c := sending(r.Resource, r.Reference), counts[r.Resource]
		switch {
		case !intended[name]:
		case r.Method == "GET":
			if r.Status == 200 && !found[name] {
				found[name] = true
				c.found++
			}
		default:
			c.requests++
			if r.Fault != "" {
				c.lost++
			}
			if keys[r.Key]++; r.Resource == sandbox.Charges && keys[r.Key] == 2 {
				c.again++
			}
			if sent[name]++; sent[name] == 2 {
				c.resent++
			}
		}
	}
}

// operations is what Semel knows about the night, by sending name. A claim
// whose worker stopped reporting counts as unknown.
func operations(ctx context.Context, store semel.Store, tenant string) (map[string]semel.Operation, error) {
	now, err := store.Now(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the store's clock: %w", err)
	}
	known := map[string]semel.Operation{}
	for scope, resource := range scopes(tenant) {
		for o, err := range store.List(ctx, semel.Filter{Scope: scope}) {
			if err != nil {
				return nil, fmt.Errorf("list the operations of the night: %w", err)
			}
			o.State = o.StateAt(now)
			cut := strings.LastIndexByte(string(o.Key), '-')
			known[sending(resource, string(o.Key[:max(cut, 0)]))] = o
		}
	}
	return known, nil
}
