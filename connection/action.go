package connection

import (
	"net/http"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
)

// action is one action of a connection of kind http.
type action struct {
	method, path string
	contract     semel.Contract // complete
	inherits     bool           // somebody said how it may be repeated
	required     []string       // members of its input
	inPath       []string       // members that the path names
	template     string         // the member that a rendered template becomes
}

// verbs are the members that say where an action goes.
var verbs = map[string]string{
	"get": http.MethodGet, "post": http.MethodPost, "put": http.MethodPut, "patch": http.MethodPatch, "delete": http.MethodDelete,
}

// reads reports whether the action has no effect.
func (a *action) reads() bool { return a.method == http.MethodGet }

// bare reports whether the action sends no body, so that its whole input is in
// its path.
func (a *action) bare() bool { return a.method == http.MethodGet || a.method == http.MethodDelete }

// current is an operation's own contract under what the action promises now, its
// protection too: whoever learns that a destination honours no keys says so here,
// and nothing is sent again by the word of yesterday.
func (a *action) current(own semel.Contract) semel.Contract {
	now := current(own, a.contract)
	now.Protection = a.contract.Protection
	if own.Protection == semel.Keyed && now.Protection == semel.Keyed && (own.KeyHeader != a.contract.KeyHeader || own.KeyQuoted != a.contract.KeyQuoted) {
		now.Protection = inferred(semel.Contract{LookupURL: own.LookupURL}) // its attempts carried the key where nobody reads it
	}
	return now
}

// actions reads the actions of a connection, whose own contract is complete
// unless something is wrong with it.
func (r *reader) actions(n *yaml.Node, s *settings) {
	if slices.Contains([]string{"sql", "claim"}, s.name) {
		r.wrong(n, "give the connection another name", "actions of a connection named %s cannot be reached: %s.* are built in", s.name, s.name)
	}
	r.members(n, "actions", func(key, value *yaml.Node) {
		if !connectionName.MatchString(key.Value) {
			r.wrong(key, "use lower-case letters, digits and _, at most 63 of them, beginning with a letter",
				"%s is not a name for an action", shown(key.Value))
		}
		s.actions[key.Value] = r.action(key, value, s)
	})
}

// action reads one action, whose contract is that of the connection but for
// what it says itself.
func (r *reader) action(key, value *yaml.Node, s *settings) *action {
	a := &action{}
	d := declared{contract: s.contract}
	fields := r.contractFields(&d)
	if reading(value) {
		d.contract = asked(s.contract)
		for name := range fields {
			if !slices.Contains([]string{"timeout", "owner", "metered", "attempts", "backoff"}, name) {
				delete(fields, name) // there is no effect to protect
			}
		}
	}
	var template *yaml.Node
	for verb, method := range verbs {
		fields[verb] = func(n *yaml.Node) { r.target(n, a, method) }
	}
	fields["required"] = func(n *yaml.Node) { a.required = r.names(n, "required") }
	fields["template"] = func(n *yaml.Node) { template = n; r.words(&a.template, "template")(n) }
	what := "action " + s.name + "." + key.Value
	before := len(r.errs)
	r.mapping(value, what, fields)
	if value.Kind != yaml.MappingNode || len(r.errs) > before {
		return a
	}
	if a.method == "" {
		r.wrong(key, "add post: /path, or put, patch, delete or get", "%s goes nowhere", what)
		return a
	}
	if a.bare() && template != nil {
		r.wrong(template, "leave it out", "%s sends no body, so it takes no template", what)
	}
	if a.bare() && d.lookup != nil && strings.Contains(d.contract.LookupURL, "{body.") {
		r.wrong(d.lookup, "use {key} or {destination_key}", "%s sends no body, so its lookup cannot name members of one", what)
	}
	if s.contract.Protection == "" {
		return a // what is wrong with the connection was said
	}
	if a.reads() {
		a.contract, a.inherits = d.contract, true
		return a
	}
	if a.bare() && d.lookup == nil && strings.Contains(d.contract.LookupURL, "{body.") {
		d.contract.LookupURL, d.contract.FoundIn, d.contract.AbsenceIsProof = "", "", false
		if d.contract.Protection == semel.Lookup && d.protection == nil {
			d.contract.Protection = semel.Unprotected
		}
	}
	if !r.promise(key, s, &d) {
		return a
	}
	a.contract = d.contract
	a.inherits = d.protection != nil || !s.inferred || a.contract.Protection != semel.Unprotected || a.contract.Effect != ""
	return a
}

// reading reports whether an action is a get, which takes fewer members.
func reading(value *yaml.Node) bool {
	for i := 0; value.Kind == yaml.MappingNode && i+1 < len(value.Content); i += 2 {
		if value.Content[i].Value == "get" {
			return true
		}
	}
	return false
}

// asked is what a read promises: it changes nothing, so it may be repeated, and
// no key goes with it.
func asked(c semel.Contract) semel.Contract {
	return semel.Contract{
		Protection: semel.Commutes, Profile: c.Profile, Owner: c.Owner, Metered: c.Metered,
		Timeout: c.Timeout, WriteTimeout: c.WriteTimeout, Attempts: c.Attempts, Backoff: c.Backoff,
	}
}

// target reads where an action goes.
func (r *reader) target(n *yaml.Node, a *action, method string) {
	path, ok := r.text(n, strings.ToLower(method))
	if !ok {
		return
	}
	if a.method != "" {
		r.wrong(n, "keep one of them", "the action goes elsewhere already, by %s", strings.ToLower(a.method))
		return
	}
	a.method, a.path = method, path
	members, err := httpdest.CheckPath(path)
	if err != nil {
		r.wrong(n, "write a path such as /v1/tickets/{body.id}/status", "the path cannot be used: %v", err)
		return
	}
	for _, m := range members {
		first, _, _ := strings.Cut(m, ".")
		if !slices.Contains(a.inPath, first) {
			a.inPath = append(a.inPath, first)
		}
	}
}

// names reads a list of names.
func (r *reader) names(n *yaml.Node, what string) []string {
	if n.Kind != yaml.SequenceNode {
		r.wrong(n, "write a list, as in [customer, amount]", "%s is not a list", what)
		return nil
	}
	var names []string
	for _, item := range n.Content {
		name, ok := r.text(item, what)
		switch {
		case ok && slices.Contains(names, name):
			r.wrong(item, "keep one of them", "%s has %s already", what, shown(name))
		case ok:
			names = append(names, name)
		}
	}
	return names
}
