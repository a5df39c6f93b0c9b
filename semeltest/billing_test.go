package semeltest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/semeltest"
)

type invoice struct {
	ID    string `json:"id"`
	Cents int64  `json:"cents"`
}

type charged struct {
	ID string `json:"id"`
}

func unreachable(context.Context, *semel.Send, invoice) (charged, error) {
	return charged{}, errors.New("a test reached the real destination")
}

// action is one whose real destination no test may reach.
func action(name string, c semel.Contract) semel.Action[invoice, charged] {
	return semel.Action[invoice, charged]{Name: name, Key: func(i invoice) string { return i.ID }, Send: semel.Perform(c, unreachable)}
}

var (
	keyed    = semel.Contract{Protection: semel.Keyed, Window: 24 * time.Hour}
	lookedUp = semel.Contract{
		Protection: semel.Lookup, CanLookUp: true, AbsenceIsProof: true,
		VisibleAfter: time.Minute, MaxProcessing: 30 * time.Second,
	}
	unprotected = semel.Contract{Protection: semel.Unprotected}
	commutes    = semel.Contract{Protection: semel.Commutes}

	charge = action("charge", keyed)
	mail   = action("mail", unprotected)
	order  = action("order", lookedUp)
	tag    = action("tag", commutes)
)

// workflow is one whose runs have the invoice's number as key.
func workflow(fn func(ctx semel.Context, in invoice) error) semel.Workflow[invoice] {
	return semel.Workflow[invoice]{Name: "billing", Key: func(i invoice) string { return i.ID }, Func: fn}
}

var one = invoice{ID: "4417", Cents: 1200}

// wantRun fails the test unless the run is in the state, with a reason that
// holds the words.
func wantRun(t *testing.T, run semel.Run, state semel.RunState, words ...string) {
	t.Helper()
	if run.State != state {
		t.Fatalf("run is %s (%s), want %s", run.State, run.Reason, state)
	}
	for _, s := range words {
		if !strings.Contains(run.Reason, s) {
			t.Errorf("reason %q lacks %q", run.Reason, s)
		}
	}
}

// wantCount fails the test unless an action was asked for and happened so often.
func wantCount(t *testing.T, w *semeltest.World, action string, requests, effects int) {
	t.Helper()
	if r, e := len(w.Requests(action)), len(w.Effects(action)); r != requests || e != effects {
		t.Errorf("%s: %d requests and %d effects, want %d and %d", action, r, e, requests, effects)
	}
}
