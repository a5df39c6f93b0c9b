package workflowfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"go.yaml.in/yaml/v4"

	"github.com/semel-dev/semel"
)

// InputType is the type of an input.
type InputType string

// The types.
const (
	TypeString  InputType = "string"
	TypeInteger InputType = "integer"
	TypeNumber  InputType = "number"
	TypeBoolean InputType = "boolean"
	TypeArray   InputType = "array"
	TypeObject  InputType = "object"
)

var inputTypes = []string{"string", "integer", "number", "boolean", "array", "object"}

// Input is what a run is started with.
type Input struct {
	Name string
	Type InputType
	// Format of a string: date, date-time, or empty for any.
	Format string
	// Default is used where the starter gives nothing; nil makes the input
	// required. It may use run, tick and event.
	Default     *Value
	Description string
}

func (t InputType) cel() *cel.Type {
	switch t {
	case TypeString:
		return cel.StringType
	case TypeInteger:
		return cel.IntType
	case TypeBoolean:
		return cel.BoolType
	case TypeArray:
		return cel.ListType(cel.DynType)
	case TypeObject:
		return cel.MapType(cel.StringType, cel.DynType)
	case TypeNumber:
	}
	return cel.DynType // int or decimal, as it is written
}

// Check reports what is wrong with a value for the input; the error is an
// [semel.InputError].
func (in Input) Check(value any) error {
	wrong := func(problem, hint string) error {
		return &semel.InputError{Field: "inputs." + in.Name, Problem: problem, Hint: hint}
	}
	ok := false
	switch v := value.(type) {
	case string:
		ok = in.Type == TypeString
	case bool:
		ok = in.Type == TypeBoolean
	case json.Number:
		ok = in.Type == TypeNumber || in.Type == TypeInteger && !strings.ContainsAny(string(v), ".eE")
	case []any:
		ok = in.Type == TypeArray
	case map[string]any:
		ok = in.Type == TypeObject
	}
	if !ok {
		return wrong("is not of type "+string(in.Type), "give a value of this type")
	}
	text, _ := value.(string)
	switch in.Format {
	case "date":
		if _, err := time.Parse(time.DateOnly, text); err != nil {
			return wrong("is not a date", "write it as 2027-01-31")
		}
	case "date-time":
		if _, err := time.Parse(time.RFC3339, text); err != nil {
			return wrong("is not a point in time", "write it as 2027-01-31T09:00:00Z")
		}
	}
	return nil
}

// ResolveInputs returns the inputs of a run: what is given, and the defaults of
// the rest. vars hold run, and tick or event where they started it. Call it
// once for each run and record what it returns. The error is an
// [semel.InputError], or one of a default's expression.
func (d *Definition) ResolveInputs(ctx context.Context, given map[string]any, vars Vars) (map[string]any, error) {
	if err := d.checkInputs(given); err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, in := range d.Inputs {
		value, ok := given[in.Name]
		if !ok {
			var err error
			if value, err = in.Default.Eval(ctx, vars); err != nil {
				return nil, fmt.Errorf("default of input %s: %w", in.Name, err)
			}
			if err := in.Check(value); err != nil {
				return nil, err
			}
		}
		out[in.Name] = value
	}
	return out, nil
}

// checkInputs reports what is wrong with what is given.
func (d *Definition) checkInputs(given map[string]any) error {
	var names []string
	for _, in := range d.Inputs {
		names = append(names, in.Name)
		value, ok := given[in.Name]
		if !ok && in.Default == nil {
			return &semel.InputError{Field: "inputs." + in.Name, Problem: "is missing", Hint: "give it; it has no default"}
		}
		if !ok {
			continue
		}
		if err := in.Check(value); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(names, name) {
			return &semel.InputError{Field: "inputs." + name, Problem: "is unknown", Hint: Suggest(name, names)}
		}
	}
	return nil
}

// checkDefaults refuses to leave out what only a schedule or an event gives.
func (d *Definition) checkDefaults(given map[string]any) error {
	for _, in := range d.Inputs {
		if _, ok := given[in.Name]; ok || in.Default == nil {
			continue
		}
		for _, ref := range in.Default.Refs() {
			switch variable, _, _ := strings.Cut(ref, "."); variable {
			case "tick", "event":
				return &semel.InputError{Field: "inputs." + in.Name, Problem: "is missing", Hint: "give it; its default is for runs that start with a " + map[string]string{"tick": "schedule", "event": "event"}[variable]}
			}
		}
	}
	return nil
}

// inputs reads the declarations; defaults are read once the language is known.
func (r *reader) inputs(n *yaml.Node) (inputs []Input, defaults []*yaml.Node) {
	if !r.isMapping(n, "inputs") {
		return nil, nil
	}
	for key, value := range r.pairs(n) {
		if odd := ambiguous(key); odd != "" {
			r.wrong(key, CodeAmbiguous, "use another name", "input %s could be read as %s", key.Value, odd)
			continue
		}
		if !r.isName(key, "input") {
			continue
		}
		in := Input{Name: key.Value}
		m, ok := r.shape(value, "input")
		if ok {
			in.Type, in.Format = r.inputType(key, m), r.format(m)
		}
		if d := m["description"]; d != nil {
			in.Description = r.prose(d, "description")
		}
		if ok && !r.has(value, "default") && (r.triggers.Schedule != nil || r.triggers.Event != nil) {
			r.warn(key, CodeMissing, "add a default, such as ${{ tick.date }} or ${{ event.data }}", "a schedule or an event gives no inputs, so a run that it starts fails without %s", key.Value)
		}
		inputs, defaults = append(inputs, in), append(defaults, m["default"])
	}
	return inputs, defaults
}

func (r *reader) inputType(key *yaml.Node, m members) InputType {
	n := m["type"]
	if n == nil {
		r.wrong(key, CodeMissing, "add type: "+strings.Join(inputTypes, ", "), "input %s has no type", key.Value)
		return ""
	}
	return InputType(r.oneOf(n, "type", inputTypes...))
}

func (r *reader) format(m members) string {
	n := m["format"]
	if n == nil {
		return ""
	}
	if t := m["type"]; t != nil && t.Value != string(TypeString) {
		r.wrong(n, CodeValue, "use type: string", "only a string has a format")
		return ""
	}
	return r.oneOf(n, "format", "date", "date-time")
}

// defaults reads the default of each input.
func (r *reader) defaults(inputs []Input, nodes []*yaml.Node) {
	for i, n := range nodes {
		in := &inputs[i]
		if n == nil || in.Type == "" {
			continue
		}
		s := &scope{event: r.triggers.Event != nil, tick: r.triggers.Schedule != nil}
		u := use{what: "default of " + in.Name, scope: s}
		if in.Type != TypeNumber {
			u.types, u.wants = []*cel.Type{in.Type.cel()}, "of type "+string(in.Type)
		} else {
			u.types, u.wants = []*cel.Type{cel.IntType, cel.UintType, cel.DoubleType}, "a number"
		}
		in.Default = r.value(n, u)
		if in.Default == nil {
			continue
		}
		if value, ok := in.Default.Literal(); ok {
			if e, ok := errors.AsType[*semel.InputError](in.Check(value)); ok {
				r.wrong(n, CodeType, e.Hint, "default of %s %s", in.Name, e.Problem)
			}
			continue
		}
		kind := types.DynKind
		switch {
		case in.Default.list != nil:
			kind = types.ListKind
		case in.Default.fields != nil:
			kind = types.MapKind
		}
		if kind != types.DynKind && !accepts(u.types, kind) {
			r.wrong(n, CodeType, "give a value of this type", "default of %s is not of type %s", in.Name, in.Type)
		}
	}
}
