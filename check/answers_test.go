package check_test

import (
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/check"
)

// TestWhatBecomesOfAnInterruptedStep: the answers say what Decide does.
func TestWhatBecomesOfAnInterruptedStep(t *testing.T) {
	window := semel.Contract{Effect: semel.External, Protection: semel.Keyed, Window: 24 * time.Hour, Timeout: 5 * time.Second}
	keyedAndAsked := window
	keyedAndAsked.CanLookUp = true
	tests := map[string]struct {
		contract     semel.Contract
		interruption string
		together     string
	}{
		"transactional":    {semel.Contract{Protection: semel.Transactional}, "The receipt is read.", "finds the receipt"},
		"absolute":         {semel.Contract{Protection: semel.Absolute, Attempts: 4}, "The same value is set again, in at most 4 attempts by itself. After that nothing is sent, and a person is asked.", "both set the same value"},
		"commutes":         {semel.Contract{Effect: semel.SetsValue, Protection: semel.Commutes}, "It is done again. That changes nothing.", "the second changes nothing"},
		"keyed":            {window, "until 23h54m55s after it was first sent. After that nothing is sent, and a person is asked.", "it knows the key and acts once"},
		"keyed and lookup": {keyedAndAsked, "After that the destination is asked, and then a person.", "it knows the key and acts once"},
		"lookup":           {semel.Contract{Protection: semel.Lookup, CanLookUp: true}, "\"Not found\" proves nothing here: then a person is asked.", "it would act twice"},
		"lookup with proof": {
			semel.Contract{Protection: semel.Lookup, CanLookUp: true, AbsenceIsProof: true, MaxProcessing: 10 * time.Second, VisibleAfter: time.Minute},
			"counts from 1m10s after the last moment it could still arrive; then it is safe to send again.", "it would act twice",
		},
		"none": {byNobody, "Nothing is sent again. The run waits, and a person is asked what happened.", "it would act twice"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			act := with[payment, string]("act", test.contract, byID)
			w := semel.Workflow[payment]{Name: "w", Owner: "desk", Func: func(ctx semel.Context, p payment) error {
				_, err := semel.Do(ctx, act, p)
				return err
			}}
			r, err := check.Workflow(w.Definition(), check.Options{Input: anns})
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Steps[0].Interruption; !strings.Contains(got, test.interruption) {
				t.Errorf("if it stops: %s", got)
			}
			if got := r.Steps[0].Together; !strings.Contains(got, test.together) {
				t.Errorf("two at once: %s", got)
			}
		})
	}
}
