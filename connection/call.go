package connection

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/semel-dev/semel"
	sqldest "github.com/semel-dev/semel/destination/sql"
	"github.com/semel-dev/semel/workflowfile"
)

// Call is what an action of a connection asks, complete but for scope and key.
// with is its input; numbers in it (json.Number, *big.Int and Go's own) keep
// their digits.
//
// An HTTP action sends with as its JSON body, none where with is nil. Members
// that its path names are in the body as well: a lookup may need them. A get
// and a delete send no body, so the path must name every member. Where the
// action has a template, with.template is the rendered text.
//
// Built in are sql.query and sql.exec, which run with.statement with the list
// with.args in the database that with.at names, and claim.once, which changes
// one row. Their Request.Connection is the database.
//
// The error is *semel.InputError where with does not fit.
func (c *Config) Call(connection, action string, with map[string]any) (semel.Call, error) {
	if verb, ok := builtIn[connection+"."+action]; ok {
		return c.statement(connection+"."+action, verb, with)
	}
	s, a, err := c.action(connection, action)
	if err != nil {
		return semel.Call{}, err
	}
	d, err := c.HTTP(connection)
	if err != nil {
		return semel.Call{}, err
	}
	with, err = a.input(s.name+"."+action, with)
	if err != nil {
		return semel.Call{}, err
	}
	var body []byte
	if with != nil {
		if body, err = encode(with); err != nil {
			return semel.Call{}, err
		}
	}
	target, err := d.Fill(a.path, body)
	if err != nil {
		return semel.Call{}, err
	}
	if a.bare() {
		body = nil
	}
	r, _, err := d.NewRequest(a.method, target, nil, body)
	if err != nil {
		return semel.Call{}, err
	}
	r.Action = action
	return semel.Call{Action: action, Request: r, Contract: a.contract, Destination: d}, nil
}

func (c *Config) action(connection, name string) (*settings, *action, error) {
	s, err := c.find(connection)
	if err != nil {
		return nil, nil, err
	}
	if a, ok := s.actions[name]; ok {
		return s, a, nil
	}
	hint := "add it to actions: of the connection"
	if len(s.actions) > 0 {
		hint = workflowfile.Suggest(name, slices.Sorted(maps.Keys(s.actions)))
	}
	return nil, nil, &semel.InputError{Field: "action", Problem: fmt.Sprintf("%s is none of %s", shown(name), connection), Hint: hint}
}

// input is what the action sends, and checks that it is all there.
func (a *action) input(name string, with map[string]any) (map[string]any, error) {
	if text, ok := with["template"]; ok && a.template != "" {
		if _, twice := with[a.template]; twice && a.template != "template" {
			return nil, &semel.InputError{Field: "with", Problem: fmt.Sprintf("has both template and %s", a.template), Hint: "give one of them"}
		}
		with = maps.Clone(with)
		delete(with, "template")
		with[a.template] = text
	}
	for _, member := range a.required {
		if _, ok := with[member]; !ok {
			return nil, &semel.InputError{Field: "with", Problem: fmt.Sprintf("has no %s, which %s needs", member, name), Hint: "add it"}
		}
	}
	if !a.bare() {
		return with, nil
	}
	for _, member := range slices.Sorted(maps.Keys(with)) {
		if !slices.Contains(a.inPath, member) {
			return nil, &semel.InputError{
				Field: "with", Problem: fmt.Sprintf("has %s, and %s sends no body", shown(member), name),
				Hint: "name it in the path of the action, as in {body." + member + "}, or leave it out",
			}
		}
	}
	return with, nil
}

// encode is with as JSON, every number to its digit.
func encode(with map[string]any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(with); err != nil {
		return nil, &semel.InputError{Field: "with", Problem: "cannot be written as JSON: " + err.Error(), Hint: "give text, numbers, truth values, lists and mappings"}
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// builtIn are the actions on databases.
var builtIn = map[string]sqldest.Verb{
	"sql.query": sqldest.VerbQuery, "sql.exec": sqldest.VerbExec, "claim.once": sqldest.VerbClaim,
}

// statement is the call of a built-in action.
func (c *Config) statement(name string, verb sqldest.Verb, with map[string]any) (semel.Call, error) {
	for _, member := range slices.Sorted(maps.Keys(with)) {
		if !slices.Contains([]string{"at", "statement", "args"}, member) {
			return semel.Call{}, &semel.InputError{Field: "with", Problem: fmt.Sprintf("has %s, which %s does not take", shown(member), name), Hint: "give at, statement and args"}
		}
	}
	at, ok := with["at"].(string)
	text, okText := with["statement"].(string)
	if !ok || !okText {
		return semel.Call{}, &semel.InputError{Field: "with", Problem: name + " needs at and statement, both text", Hint: "name the database in at, and write one statement"}
	}
	args, ok := with["args"].([]any)
	if !ok && with["args"] != nil {
		return semel.Call{}, &semel.InputError{Field: "args", Problem: "is not a list", Hint: "write it as [1, 2]"}
	}
	d, err := c.SQL(at)
	if err != nil {
		return semel.Call{}, err
	}
	r, err := d.NewRequest(verb, text, args...)
	if err != nil {
		return semel.Call{}, err
	}
	r.Action = name
	contract := d.Contract()
	if verb == sqldest.VerbQuery {
		contract = d.QueryContract()
	}
	return semel.Call{Action: name, Request: r, Contract: contract, Destination: d}, nil
}
