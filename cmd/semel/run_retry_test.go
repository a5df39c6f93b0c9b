package main

import (
	"bytes"
	"testing"

	"github.com/semel-dev/semel"
)

// TestRetryManyLeavesWhatWasResolved: a run that somebody else retried or
// paused between the list and its turn is left alone, and counted.
func TestRetryManyLeavesWhatWasResolved(t *testing.T) {
	stores(t, func(t *testing.T, db string) {
		ctx := t.Context()
		var out bytes.Buffer
		sh := &shell{out: &out, err: new(bytes.Buffer), getenv: func(string) string { return "" }, db: db, output: "table"}
		if err := pass(db, bank{}, 0); err != nil {
			t.Fatal(err)
		}
		k, err := sh.openKeeper(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		for _, id := range []string{"refuse-1", "refuse-2", "refuse-3", "lose-4"} {
			n := semel.NewRun{Workflow: "nap", Version: 1, Key: semel.Key(id), Input: []byte(`{"id":"` + id + `"}`)}
			if _, _, err := k.Start(ctx, n, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := pass(db, bank{}, 0); err != nil {
			t.Fatal(err)
		}
		found, paused, err := retryable(ctx, k, semel.RunFilter{Workflow: "nap", State: semel.RunFailed})
		if err != nil || len(found) != 3 || paused != 0 {
			t.Fatalf("%d runs, %d paused, error %v, want 3 and none", len(found), paused, err)
		}
		c := semel.RunCommand{Verb: semel.RetryRun, By: "anna", Reason: "the card is free"}
		if _, err := k.ChangeRun(ctx, found[1].ID, c); err != nil {
			t.Fatal(err)
		}
		if err := sh.retryThese(ctx, k, found, 0, c); err != nil {
			t.Fatal(err)
		}
		if got, want := out.String(), "2 retried, 1 had been resolved meanwhile\n"; got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
		for _, r := range found {
			notes, err := k.Notes(ctx, r.ID)
			if err != nil {
				t.Fatal(err)
			}
			retries := 0
			for _, n := range notes {
				if n.Kind == string(semel.RetryRun) {
					retries++
				}
			}
			if retries != 1 {
				t.Errorf("run %s was retried %d times, want once", r.Key, retries)
			}
		}
	})
}
