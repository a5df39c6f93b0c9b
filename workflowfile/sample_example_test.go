package workflowfile_test

import (
	"fmt"
	"maps"
	"slices"

	"github.com/semel-dev/semel/workflowfile"
)

// reminders has two lists of ways to go.
func reminders() *workflowfile.Definition {
	d, _ := workflowfile.Parse("reminders.yaml", []byte(`
name: reminders
version: 1
inputs:
  day: {type: string, format: date}
steps:
  - {id: due, uses: billing.due, with: {day: "${{ inputs.day }}"}}
  - id: remind
    each: {in: steps.due.rows, as: invoice, key: invoice.id}
    steps:
      - {id: letter, if: invoice.amount > 500, uses: post.letter, with: {to: "${{ invoice.customer }}"}}
      - {id: mail, if: invoice.amount <= 500, uses: mail.send, with: {to: "${{ invoice.email }}"}}
`), workflowfile.Checks{})
	return d
}

func show(s workflowfile.Sample) {
	fmt.Println("input", string(s.Input))
	for _, path := range slices.Sorted(maps.Keys(s.Answers)) {
		fmt.Println(path, string(s.Answers[path]))
	}
	for _, unsure := range s.Unsure {
		fmt.Println(unsure)
	}
}

func ExampleDefinition_Sample() {
	show(reminders().Sample())
	// Output:
	// input {"day":"2040-01-02"}
	// due {"rows":[{"amount":501,"customer":"customer-1","email":"email-1@example.com","id":"invoice-1"},{"amount":102,"customer":"customer-2","email":"email-2@example.com","id":"invoice-2"}]}
	// remind/letter {}
	// remind/mail {}
}

func ExampleDefinition_ReadSample() {
	s, problems := reminders().ReadSample("drill/reminders.yaml", []byte(`
answers:
  due: {rows: [{id: "4417", customer: ann, amount: 600}]}
`))
	show(s)
	fmt.Println(problems)
	_, problems = reminders().ReadSample("drill/reminders.yaml", []byte(`
input: {dya: "2027-01-31"}
answers:
  remind: {}
`))
	for _, p := range problems {
		fmt.Println(p)
	}
	// Output:
	// input {"day":"2040-01-02"}
	// due {"rows":[{"amount":600,"customer":"ann","id":"4417"}]}
	// remind/letter {}
	// reminders.yaml:12:9: step remind/mail is not reached, as its if is not true: invoice.amount <= 500: write answers.due in drill/reminders.yaml
	// []
	// drill/reminders.yaml:2:9: there is no input "dya": did you mean day?
	// drill/reminders.yaml:4:3: step remind asks no destination, so there is no answer to it: leave it out
}

func ExampleDefinition_SampleRun() {
	d := reminders()
	n, err := d.SampleRun("drill-1", d.Sample())
	fmt.Println(n.Workflow, n.Key, string(n.Input), n.Trigger.Kind, err)
	// Output: reminders drill-1 {"day":"2040-01-02"} person <nil>
}
