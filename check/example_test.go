package check_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/check"
	"github.com/semel-dev/semel/workflowfile"
)

const reminder = `name: reminder
version: 1
inputs: {invoice: {type: string}}
steps:
  - id: remind
    uses: mail.send
    effect: {key: "remind-${{ inputs.invoice }}", kind: external}
`

// mails are checks over one connection, which promises nothing.
var mails = workflowfile.Checks{Connection: func(string) (workflowfile.ConnectionInfo, bool) {
	return workflowfile.ConnectionInfo{Contract: &semel.Contract{Protection: semel.Unprotected}}, true
}}

func ExampleFile() {
	d, problems := workflowfile.Parse("reminder.yaml", []byte(reminder), mails)
	r := check.File(d, problems, mails, check.FileOptions{})
	fmt.Println(r.Steps[0].Interruption)
	for _, f := range r.Findings {
		fmt.Println(f)
	}
	// Output:
	// Nothing is sent again. The run waits, and a person is asked what happened.
	// reminder.yaml:5:5: warning: after a lost answer of step remind only a person can tell what happened, and nobody is named: add owner: who is told [no_owner]
}

func ExampleReport_Text() {
	d, problems := workflowfile.Parse("reminder.yaml", []byte(reminder), mails)
	r := check.File(d, problems, mails, check.FileOptions{})
	fmt.Print(r.Text())
	// Output:
	// reminder@1, in reminder.yaml
	//
	//   remind uses mail.send, line 5
	//     What it does    It acts in the outside world, as a mail or a charge does. It
	//                     cannot be taken back.
	//     What names it   The key "remind-${{ inputs.invoice }}": the same key is the
	//                     same work, in every run.
	//     Two at once     One acts; the other waits and gets the recorded answer. If
	//                     both reached the destination, it would act twice: nothing
	//                     there recognises a repeat.
	//     Evidence        In Semel's record: the request before it is sent, and the
	//                     answer. Beyond that only a person can look, at the
	//                     destination.
	//     If it stops     Nothing is sent again. The run waits, and a person is asked
	//                     what happened.
	//     Limits          Known by its key within this connection and action; one
	//                     attempt waits as long as it takes.
	//     A person        Nobody is told: no owner is named. See it with semel op show
	//                     ID, look at the destination, and say what is true with semel
	//                     op settle ID --happened or --did-not-happen.
}

func ExampleWorkflow() {
	type invoice struct{ Number string }
	charge := semel.Action[invoice, string]{
		Name: "charge",
		Key:  func(i invoice) string { return "invoice-" + i.Number },
		Send: semel.Perform(semel.Contract{Effect: semel.External, Protection: semel.Keyed, Window: time.Hour, Timeout: 5 * time.Second},
			func(context.Context, *semel.Send, invoice) (string, error) { return "", nil }),
	}
	bill := semel.Workflow[invoice]{Name: "bill", Owner: "billing", Func: func(ctx semel.Context, i invoice) error {
		_, err := semel.Do(ctx, charge, i)
		return err
	}}
	r, err := check.Workflow(bill.Definition(), check.Options{
		Input:  invoice{Number: "A-17"},
		Accept: []check.Accept{{Step: "charge", Code: workflowfile.CodeWindow, Reason: "somebody looks every half hour"}},
	})
	if err != nil {
		panic(err)
	}
	for _, f := range r.Findings {
		fmt.Println(f.Code, "accepted because", f.Accepted)
	}
	// Output:
	// window_too_short accepted because somebody looks every half hour
}

func ExampleSARIF() {
	d, problems := workflowfile.Parse("reminder.yaml", []byte(reminder), mails)
	r := check.File(d, problems, mails, check.FileOptions{})
	log, err := check.SARIF(r.Findings, ".")
	if err != nil {
		panic(err)
	}
	_, result, _ := strings.Cut(string(log), `"results"`)
	fmt.Println(strings.Contains(result, `"ruleId": "no_owner"`), strings.Contains(result, `"uri": "reminder.yaml"`))
	// Output:
	// true true
}

func ExampleRuleOf() {
	rule, _ := check.RuleOf(workflowfile.CodeTimeout)
	fmt.Println(rule.Title + ". " + rule.Help)
	// Output:
	// Waits less than the destination may take. A success that is slow becomes an outcome that nobody knows.
}

func ExampleCount() {
	c := check.Count([]check.Finding{
		{Severity: workflowfile.SeverityWarning},
		{Severity: workflowfile.SeverityWarning, Accepted: "it is wanted"},
	})
	fmt.Println(c.Warnings, "warning,", c.Accepted, "accepted")
	// Output:
	// 1 warning, 1 accepted
}
