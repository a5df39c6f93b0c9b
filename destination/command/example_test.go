package command_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/destination/command"
)

func ExampleNewRequest() {
	r, err := command.NewRequest([]string{"charge", "--invoice", "4417"}, []byte("EUR 12.00\n"))
	fmt.Printf("%s %q %q %v\n", r.Kind, r.Args, r.Body, err)
	_, err = command.NewRequest(nil, nil)
	fmt.Println(err)
	// Output:
	// command ["charge" "--invoice" "4417"] "EUR 12.00\n" <nil>
	// program is missing: give it after --, for example -- ./charge 4417
}

func ExampleDestination_Send() {
	d, err := command.New(command.Options{Stdout: os.Stdout, NoEffectExit: []int{3}})
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close(context.Background())

	for _, script := range []string{"echo charged $SEMEL_KEY", "echo card declined >&2; exit 3", "exit 4"} {
		ev := d.Send(context.Background(), &semel.Send{ // an engine does this, after the claim
			Operation: &semel.Operation{Identity: semel.Identity{
				Scope: "billing", Key: "invoice-4417", Request: semel.Request{Kind: command.Kind, Args: []string{"sh", "-c", script}},
			}},
			Attempt: 1,
			Begin:   func() error { return nil },
		})
		fmt.Printf("%s %q\n", ev.Kind, ev.Reason)
	}
	// Output:
	// charged invoice-4417
	// confirmed ""
	// refused "exit code 3, by which the program says that nothing happened: card declined"
	// lost "exit code 4 does not tell whether it happened"
}

func ExampleDestination_Look() {
	d, err := command.New(command.Options{Check: `test "$SEMEL_KEY" = invoice-4417`})
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close(context.Background())

	for _, key := range []semel.Key{"invoice-4417", "invoice-4418"} {
		ev := d.Look(context.Background(), &semel.Send{Operation: &semel.Operation{Identity: semel.Identity{Scope: "billing", Key: key}}})
		fmt.Println(key, ev.Kind)
	}
	// Output:
	// invoice-4417 found
	// invoice-4418 absent
}
