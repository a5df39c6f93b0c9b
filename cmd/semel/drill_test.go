package main

import (
	"errors"
	"io"
	"testing"
)

// M38: what is twice or lost counts, whatever else could not be drilled.
func TestDrillExitCodes(t *testing.T) {
	for _, test := range []struct {
		drilling drilling
		code     int
	}{
		{drilling{Unknown: 3}, 0},
		{drilling{Twice: 1}, exitFailed},
		{drilling{Lost: 1, idle: 1}, exitFailed},
		{drilling{idle: 1}, exitUsage},
	} {
		d := test.drilling
		d.sh = &shell{out: io.Discard, err: io.Discard}
		code := 0
		if outcome, ok := errors.AsType[*outcomeError](d.end(nil)); ok {
			code = outcome.code
		}
		if code != test.code {
			t.Errorf("%d twice, %d lost, %d not drilled: exit code %d, want %d", d.Twice, d.Lost, d.idle, code, test.code)
		}
	}
}
