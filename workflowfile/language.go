package workflowfile

import (
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/ext"
)

// Bounds of one expression.
const (
	maxExpression = 4000      // characters
	maxCost       = 2_000_000 // CEL's units, about one for each value that is touched
	interruptible = 100       // steps of a loop between two looks at the context
)

// known are the members of the variables that have a fixed shape.
var known = map[string][]string{
	"run":     {"key", "workflow"},
	"tick":    {"date", "at", "label"},
	"event":   {"id", "name", "data"},
	"failure": {"step", "message"},
}

// reserved are the names that an item cannot have.
var reserved = []string{
	"inputs", "steps", "run", "tick", "event", "failure",
	"as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package", "namespace",
	"return", "var", "void", "while",
	"bool", "bytes", "double", "duration", "dyn", "has", "int", "list", "map", "matches", "null_type", "size", "string",
	"timestamp", "type", "uint",
	"attempt", "now", "random",
}

// language is CEL with the variables of one file.
type language struct {
	env     *cel.Env
	program []cel.ProgramOption
}

// newLanguage declares every variable that some expression of the file may
// use. Which one may use which is for scope to say.
func newLanguage(inputs []Input, items []string) (*language, error) {
	object := cel.MapType(cel.StringType, cel.DynType)
	options := []cel.EnvOption{
		cel.CustomTypeAdapter(adapter{types.DefaultTypeAdapter}),
		ext.Strings(),
		cel.CrossTypeNumericComparisons(true),
		cel.DefaultUTCTimeZone(true),
		cel.ParserExpressionSizeLimit(maxExpression),
		cel.Variable("inputs", object),
		cel.Variable("steps", object),
	}
	for _, in := range inputs {
		options = append(options, cel.Variable("inputs."+in.Name, in.Type.cel()))
	}
	for variable, names := range known {
		options = append(options, cel.Variable(variable, object))
		for _, name := range names {
			if name == "data" {
				continue
			}
			options = append(options, cel.Variable(variable+"."+name, cel.StringType))
		}
	}
	slices.Sort(items)
	for _, item := range slices.Compact(items) {
		options = append(options, cel.Variable(item, cel.DynType))
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		return nil, err
	}
	return &language{env: env, program: []cel.ProgramOption{
		cel.CostLimit(maxCost),
		cel.InterruptCheckFrequency(interruptible),
		cel.CustomDecoratorV2(exactly),
	}}, nil
}
