package drill_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/drill"
)

// Parcel is what a workflow sends.
type Parcel struct{ Number string }

// parcels charges for a parcel, under a key that the provider honours for a day,
// and sends a mail, which nobody can be asked about.
func parcels() semel.WorkflowDefinition {
	act := func(context.Context, *semel.Send, Parcel) (string, error) { return "", nil }
	charge := semel.Action[Parcel, string]{
		Name: "charge", Key: func(p Parcel) string { return p.Number },
		Send: semel.Perform(semel.Contract{Protection: semel.Keyed, Window: 24 * time.Hour, Timeout: 5 * time.Second}, act),
	}
	mail := semel.Action[Parcel, string]{
		Name: "mail", Key: func(p Parcel) string { return p.Number },
		Send: semel.Perform(semel.Contract{Protection: semel.Unprotected, Timeout: 5 * time.Second}, act),
	}
	return semel.Workflow[Parcel]{Name: "parcels", Func: func(ctx semel.Context, p Parcel) error {
		if _, err := semel.Do(ctx, charge, p); err != nil {
			return err
		}
		_, err := semel.Do(ctx, mail, p)
		return err
	}}.Definition()
}

func options() drill.Options {
	return drill.Options{
		Input: Parcel{Number: "P-17"}, Pairs: 20,
		Answers: map[string]any{"charge": "ch_1", "mail": "sent"},
	}
}

func ExampleRun() {
	v, err := drill.Run(context.Background(), parcels(), options())
	if err != nil {
		panic(err)
	}
	fmt.Println("twice or lost:", v.Twice+v.Lost)
	for _, row := range v.Rows {
		if row.Fault == drill.AnswerLost {
			fmt.Printf("%s: charge %s; mail %s\n", row.Words, row.Cells["charge"], row.Cells["mail"])
		}
	}
	// Output:
	// twice or lost: 0
	// answer lost: charge once; mail unknown, waits for a person
}

// screen stands for the *testing.T of a test.
type screen struct{}

func (screen) Context() context.Context          { return context.Background() }
func (screen) Helper()                           {}
func (screen) Log(...any)                        {} // the table
func (screen) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (screen) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func ExampleTest() {
	var t screen // in a test, its *testing.T
	v := drill.Test(t, parcels(), options())
	fmt.Println(v.OK())
	// Output: true
}

func ExampleParseSchedule() {
	s, err := drill.ParseSchedule("answer-lost@4")
	if err != nil {
		panic(err)
	}
	o := options()
	o.Replay, o.Naive = s, true
	v, err := drill.Run(context.Background(), parcels(), o)
	if err != nil {
		panic(err)
	}
	fmt.Println(strings.Join(v.Replay, "\n"))
	// Output:
	// 00:00:00  worker 1 sends charge, attempt 1
	//     00:00:00  it happens: charge
	//     00:00:00  the answer is lost
	//     00:00:00  worker 1 counts charge as failed, it is done again later: no answer came within the timeout
	//     00:00:01  worker 1 has no record of charge, and does it again
	//     00:00:01  worker 1 sends charge, attempt 2
	//     00:00:01  it happens: charge
	//     00:00:01  worker 1 records charge as done
	//     00:00:01  worker 1 sends mail, attempt 1
	//     00:00:01  it happens: mail
	//     00:00:01  worker 1 records mail as done
	//     00:00:01  worker 1 leaves the run completed
}

func ExampleVerdict_WriteTo() {
	o := options()
	o.Naive, o.Replay = true, drill.Schedule{{Fault: drill.DiesAfter, Call: 4}}
	v, err := drill.Run(context.Background(), parcels(), o)
	if err != nil {
		panic(err)
	}
	if _, err := v.WriteTo(os.Stdout); err != nil {
		panic(err)
	}
	// Output:
	// What happens: worker dies after a call
	//     00:00:00  worker 1 sends charge, attempt 1
	//     00:00:00  it happens: charge
	//     00:00:00  and nobody hears the answer of the request of charge
	//     00:00:00  worker 1 dies
	//     00:01:01  worker 2 takes the run over from worker 1, whose lease is over
	//     00:01:01  worker 2 has no record of charge, and does it again
	//     00:01:01  worker 2 sends charge, attempt 2
	//     00:01:01  it happens: charge
	//     00:01:01  worker 2 records charge as done
	//     00:01:01  worker 2 sends mail, attempt 1
	//     00:01:01  it happens: mail
	//     00:01:01  worker 2 records mail as done
	//     00:01:01  worker 2 leaves the run completed
	//
	// What came of it:
	//   charge  TWICE    it happened more often than it was asked for, or against what was allowed
	//   mail    once     it happened once, and the record says so
	//
	// TWICE charge: it happened 2 times
	//
	// Something happened twice, or was lost.
}

func ExampleWriteJUnit() {
	o := options()
	o.Naive, o.Replay = true, drill.Schedule{{Fault: drill.ResendRefused, Call: 8}}
	v, err := drill.Run(context.Background(), parcels(), o)
	if err != nil {
		panic(err)
	}
	if err := drill.WriteJUnit(os.Stdout, v); err != nil {
		panic(err)
	}
	// Output:
	// <?xml version="1.0" encoding="UTF-8"?>
	// <testsuites>
	//   <testsuite name="parcels" tests="2" failures="1">
	//     <testcase classname="parcels.charge" name="answer lost, resend refused"></testcase>
	//     <testcase classname="parcels.mail" name="answer lost, resend refused">
	//       <failure type="lost" message="LOST mail: it happened, and the record says that it failed"><![CDATA[when: answer lost, resend refused
	//     00:00:00  worker 1 sends charge, attempt 1
	//     00:00:00  it happens: charge
	//     00:00:00  worker 1 records charge as done
	//     00:00:00  worker 1 sends mail, attempt 1
	//     00:00:00  it happens: mail
	//     00:00:00  the answer is lost, and from now on every request is refused on its way
	//     00:00:00  worker 1 counts mail as failed, it is done again later: no answer came within the timeout
	//     00:00:01  worker 1 has no record of mail, and does it again
	//     00:00:01  worker 1 sends mail, attempt 2
	//     00:00:01  it is refused on its way
	//     00:00:01  worker 1 counts mail as failed, the step is given up: 403 Forbidden
	//     00:00:01  worker 1 leaves the run failed: step mail failed, nothing happened: 403 Forbidden
	// again with: drill.ParseSchedule("resend-refused@8") as Options.Replay
	// ]]></failure>
	//     </testcase>
	//     <system-out><![CDATA[Something happened twice, or was lost.
	// ]]></system-out>
	//   </testsuite>
	// </testsuites>
}
