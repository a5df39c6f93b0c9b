package workflowfile_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/workflowfile"
)

func ExampleParse() {
	_, problems := workflowfile.Parse("hello.yaml", []byte(`
name: hello
version: 1
steps:
  - id: send
    uses: mail.send
    with: {to: "${{ input.to }}", text: ${{ inputs.text }}}
`), workflowfile.Checks{})
	for _, p := range problems {
		fmt.Println(p)
	}
	_, problems = workflowfile.Parse("hello.yaml", []byte(`
name: hello
version: 1
steps:
  - id: send
    uses: mail.send
    with: {to: "${{ input.to }}", count: 010}
    timeout: 30
`), workflowfile.Checks{})
	for _, p := range problems {
		fmt.Println(p)
	}
	// Output:
	// hello.yaml:7:41: ${{ }} stands unquoted where YAML takes its braces for its own: put it in quotes: "${{ ... }}"
	// hello.yaml:6:11: warning: connection mail was not checked: check it together with semel.yaml
	// hello.yaml:7:21: with.to: there is no "input": did you mean inputs?
	// hello.yaml:7:42: with.count 010 could be read as a number or a text: put it in quotes if it is a text, else write it plainly
	// hello.yaml:8:14: timeout has no unit: write it with its unit, for example 30s or 30m
}

// charging is a workflow with one step.
func charging() *workflowfile.Definition {
	d, _ := workflowfile.Parse("charge.yaml", []byte(`
name: charging
version: 1
inputs:
  order: {type: object}
  day: {type: string, format: date, default: "2027-01-31"}
steps:
  - id: charge
    if: inputs.order.total > 0.05
    uses: payments.charge
    with: {amount: "${{ inputs.order.total }}", note: "order ${{ inputs.order.id }}"}
    effect: {key: "order-${{ inputs.order.id }}"}
`), workflowfile.Checks{
		Connection: func(string) (workflowfile.ConnectionInfo, bool) {
			return workflowfile.ConnectionInfo{Contract: &semel.Contract{Protection: semel.Keyed}}, true
		},
	})
	return d
}

func ExampleValue_Eval() {
	step := charging().Steps[0]
	vars := workflowfile.Vars{"inputs": map[string]any{
		"order": map[string]any{"id": json.Number("17"), "total": json.Number("0.10")},
	}}
	ctx := context.Background()
	due, err := step.If.Bool(ctx, vars)
	fmt.Println(due, err)
	with, err := step.Uses.With.Eval(ctx, vars)
	fmt.Println(with, err)
	key, err := step.Uses.Effect.Key.Key(ctx, vars)
	fmt.Println(key, err)
	// Output:
	// true <nil>
	// map[amount:0.10 note:order 17] <nil>
	// order-17 <nil>
}

func ExampleDefinition_ResolveInputs() {
	order := map[string]any{"id": json.Number("17")}
	inputs, err := charging().ResolveInputs(context.Background(), map[string]any{"order": order}, nil)
	fmt.Println(inputs, err)
	_, err = charging().ResolveInputs(context.Background(), map[string]any{"order": "17"}, nil)
	fmt.Println(err)
	// Output:
	// map[day:2027-01-31 order:map[id:17]] <nil>
	// inputs.order is not of type object: give a value of this type
}

func ExampleDiff() {
	old := charging()
	text := []byte("name: charging\nversion: 2\ninputs:\n  order: {type: object}\nsteps:\n  - id: pause\n    sleep: {for: 1h}\n")
	changed, _ := workflowfile.Parse("charge.yaml", text, workflowfile.Checks{})
	for _, line := range workflowfile.Diff(old, changed) {
		fmt.Println(line)
	}
	// Output:
	// version changed from 1 to 2
	// input day removed
	// step charge removed
	// step pause added
}

func ExampleSchema() {
	var schema struct{ Title string }
	fmt.Println(json.Unmarshal(workflowfile.Schema(), &schema), schema.Title)
	// Output: <nil> Semel workflow
}
