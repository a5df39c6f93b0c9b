package workflowfile_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
	"github.com/semel-dev/semel/store/sqlite"
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

// bank is where the actions of an example act.
type bank struct{}

func (bank) Call(connection, action string, with map[string]any) (semel.Call, error) {
	body, err := json.Marshal(with)
	send := semel.Perform(semel.Contract{Protection: semel.Keyed, Window: 24 * time.Hour},
		func(_ context.Context, _ *semel.Send, charge map[string]json.Number) (string, error) {
			fmt.Println("charged", charge["amount"])
			return "ch_1", nil
		})
	return semel.Call{
		Action: connection + "." + action, Contract: send.Contract, Destination: send.Destination,
		Request: semel.Request{Connection: connection, Action: connection + "." + action, Kind: "call", MediaType: "application/json", Body: body},
	}, err
}

func ExampleDefinition_Workflow() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "semel")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	store, err := sqlite.Open(ctx, filepath.Join(dir, "semel.db"), sqlite.Options{Create: true})
	if err != nil {
		panic(err)
	}
	defer func() { _ = store.Close() }()
	e, err := engine.New(ctx, store, engine.Options{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = e.Close(ctx) }()

	d, _ := workflowfile.Parse("charge.yaml", []byte(`
name: charging
version: 1
inputs: {amount: {type: number}}
steps:
  - {id: charge, uses: bank.charge, with: {amount: "${{ inputs.amount }}"}}
`), workflowfile.Checks{})
	worker, err := engine.NewWorker(ctx, e, engine.WorkerOptions{Workflows: []semel.WorkflowDefinition{d.Workflow(bank{})}})
	if err != nil {
		panic(err)
	}
	for range 2 { // twice under one key is once
		n, err := d.New("order-17", []byte(`{"amount": 0.10}`))
		if err != nil {
			panic(err)
		}
		run, existing, err := worker.Start(ctx, n)
		if err != nil {
			panic(err)
		}
		run, err = e.Await(ctx, run.ID)
		fmt.Println(run.State, existing, err)
	}
	// Output:
	// charged 0.10
	// completed false <nil>
	// completed true <nil>
}

func ExampleDefinition_New() {
	n, err := charging().New("order-17", []byte(`{"order": {"id": 17, "total": 0.10}}`))
	fmt.Println(n.Workflow, n.Version, n.Key, err)
	_, err = charging().New("order-17", []byte(`{"order": {}, "dya": "2027-01-31"}`))
	fmt.Println(err)
	// Output:
	// charging 1 order-17 <nil>
	// inputs.dya is unknown: did you mean day?
}

func ExampleLoad() {
	d, problems, err := workflowfile.Load("testdata/good/nightly_billing.yaml", workflowfile.Checks{
		Cron: func(string) error { return nil },
		Connection: func(string) (workflowfile.ConnectionInfo, bool) {
			return workflowfile.ConnectionInfo{Contract: &semel.Contract{Protection: semel.Keyed}}, true
		},
	})
	fmt.Println(d.Name, problems, err)
	statement, _ := d.Steps[0].Uses.With.Field("statement").Literal()
	fmt.Print(statement)
	// Output:
	// nightly_billing [] <nil>
	// select id, customer, email, amount
	// from invoices
	// where due <= $1 and not paid
	// order by id
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
