package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/semel-dev/semel"
)

// effects are the effects that a dry run asked for. The owner is that of the
// workflow.
func (r *recorder) effects(p *plan, owner string) []*effect {
	var all []*effect
	for _, d := range r.does {
		call := d.step.Call
		if reads(call.Contract) {
			continue
		}
		e := &effect{
			path: d.path, full: d.item, action: strings.TrimPrefix(call.Request.Connection+"."+call.Action, "."),
			contract: call.Contract, retry: d.step.Retry, call: call, request: sent(call.Request), after: r.pauses[:d.after],
		}
		if e.contract.Owner == "" {
			e.contract.Owner = owner
		}
		e.refused = refusal(&e.contract)
		e.key = key{run: true}
		if !d.step.Keyless {
			e.key = r.key(p, d)
		}
		e.approval, e.uncovered = r.approved(d)
		all = append(all, e)
	}
	return all
}

// source is the JSON that keys and requests may be made of.
func (p *plan) source() string {
	var b strings.Builder
	b.Write(p.input)
	b.WriteString(string(p.key))
	for _, given := range p.answers {
		b.Write(given)
	}
	for _, value := range p.values {
		b.Write(value)
	}
	return b.String()
}

// key tells what the key of a request is made of: members of the request and of
// the run's input whose values are in it.
func (r *recorder) key(p *plan, d did) key {
	k := key{text: string(d.step.Call.Key), source: p.source()}
	rest := k.text
	var input []member
	input = leaves(input, "", decode(p.input))
	for _, m := range slices.Concat(sent(d.step.Call.Request), input) {
		value := fmt.Sprint(m.value)
		if m.name == "" || m.value == nil || value == "" || !contains(k.text, value) {
			continue
		}
		if !slices.Contains(k.members, m.name) {
			k.members = append(k.members, m.name)
		}
		rest = strings.ReplaceAll(rest, value, "")
	}
	slices.Sort(k.members)
	k.unexplained = strings.ContainsAny(rest, "0123456789") || contains(k.text, string(p.key))
	for _, name := range itemKey.FindAllString(d.item, -1) {
		k.unexplained = k.unexplained || contains(k.text, name[1:len(name)-1])
	}
	return k
}

// contains reports whether a value is in a key as a part of its own.
func contains(key, value string) bool {
	found, err := regexp.MatchString(`(^|[^\pL\pN])`+regexp.QuoteMeta(value)+`($|[^\pL\pN])`, key)
	return err == nil && found
}

// approved is the approval that covers a request, and why those that were given
// for its action do not.
func (r *recorder) approved(d did) (a *approval, uncovered string) {
	if d.step.Exempt {
		return nil, ""
	}
	for _, given := range r.approvals {
		of := given.step.Call
		if of.Action != d.step.Call.Action || of.Request.Connection != d.step.Call.Request.Connection || given.after > d.after {
			continue
		}
		a = &approval{ask: given.step.Ask, between: r.pauses[given.after:d.after]}
		switch {
		case differ(of.Request, d.step.Call.Request):
			uncovered = "the request that is sent is not the one that was approved, so the run is held"
		case of.Key != d.step.Call.Key:
			uncovered = fmt.Sprintf("key %q was approved, and %q is sent, so the run is held", of.Key, d.step.Call.Key)
		default:
			return a, ""
		}
	}
	return a, uncovered
}

// sent are the members of a request: of its JSON body, its query and its
// headers.
func sent(r semel.Request) []member {
	var all []member
	all = leaves(all, "", decode(r.Body))
	if u, err := url.Parse(r.URL); err == nil {
		for _, name := range slices.Sorted(maps.Keys(u.Query())) {
			all = append(all, member{name: snake(name), value: u.Query().Get(name)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		all = append(all, member{name: snake(name), value: r.Header[name]})
	}
	return all
}

// leaves are the values within a JSON value, with their last names.
func leaves(all []member, name string, v any) []member {
	switch v := v.(type) {
	case map[string]any:
		for _, n := range slices.Sorted(maps.Keys(v)) {
			all = leaves(all, snake(n), v[n])
		}
	case []any:
		for _, element := range v {
			all = leaves(all, name, element)
		}
	default:
		all = append(all, member{name: name, value: v})
	}
	return all
}

// decode reads JSON with every digit; nil where it is none.
func decode(data []byte) any {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil
	}
	return v
}
