package drill

import (
	"context"
	"strings"

	"github.com/semel-dev/semel"
)

// TB is what Test needs of a *testing.T.
type TB interface {
	Context() context.Context
	Helper()
	Log(args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Test is Run for a test: it fails where something happened twice or was lost,
// and logs the table and the stories. An effect that may end unknown, and waits
// for a person then, is no failure.
func Test(t TB, def semel.WorkflowDefinition, o Options) *Verdict {
	t.Helper()
	v, err := Run(t.Context(), def, o)
	if err != nil {
		t.Fatalf("drill: %v", err)
		return nil
	}
	var text strings.Builder
	_, _ = v.WriteTo(&text)
	t.Log("\n" + text.String())
	if !v.OK() {
		t.Errorf("drill: of %d schedules %d ended with an effect twice, and %d with one lost", v.Schedules, v.Twice, v.Lost)
	}
	return v
}
