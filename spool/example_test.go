package spool_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/spool"
)

// The answer came, but the database is away: it goes to the spool, and a later
// process hands it to the store.
func Example() {
	state, err := os.MkdirTemp("", "semel")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(state) }()

	s, err := spool.Open(filepath.Join(state, "spool"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	err = s.Put(semel.Evidence{
		Scope: "billing", Key: "invoice-4417-charge",
		Event: semel.Event{Kind: semel.EvConfirmed, Attempt: 1, Reference: "ch_1"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	n, err := s.Len()
	fmt.Println("waiting:", n, err)
	err = s.Each(context.Background(), func(e semel.Evidence) error {
		fmt.Println(e.Key, e.Event.Kind, e.Event.Reference)
		return nil // the store took it: it is forgotten
	})
	fmt.Println("handed on:", err)
	n, err = s.Len()
	fmt.Println("waiting:", n, err)
	// Output:
	// waiting: 1 <nil>
	// invoice-4417-charge confirmed ch_1
	// handed on: <nil>
	// waiting: 0 <nil>
}
