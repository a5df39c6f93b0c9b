package main

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/semel-dev/semel/demo"
)

// TestDemoCommand: flags, the last line of JSON, and exit codes.
func TestDemoCommand(t *testing.T) {
	stores(t, func(t *testing.T, db string) {
		dir := t.TempDir()
		run := func(wantCode int, args ...string) (r demo.Report, stderr string) {
			t.Helper()
			var out, messages strings.Builder
			cmd := exec.Command("semel", append([]string{"demo", "--dir", dir, "--db", db, "--exit", "--output", "json"}, args...)...)
			cmd.Stdout, cmd.Stderr = &out, &messages
			err := cmd.Run()
			if got := cmd.ProcessState.ExitCode(); got != wantCode {
				t.Fatalf("exit code %d (%v), want %d\n%s", got, err, wantCode, &messages)
			}
			if out.Len() > 0 {
				lines := strings.Split(strings.TrimSpace(out.String()), "\n")
				if err := json.Unmarshal([]byte(lines[len(lines)-1]), &r); err != nil {
					t.Fatalf("last line of %q: %v", &out, err)
				}
			}
			return r, messages.String()
		}

		first, screen := run(0, "--invoices", "6", "--lose", "0.5", "--kill", "1", "--seed", "2")
		if first.Invoices != 6 || first.Charges != 6 || first.WorkersKilled != 1 || first.RequestsThisRun < 12 {
			t.Errorf("the night: %+v", first)
		}
		if !strings.Contains(screen, "semel demo --dir") || !strings.Contains(screen, "with semel") {
			t.Errorf("the screen is not on stderr:\n%s", screen)
		}
		if again, _ := run(0); again.RequestsThisRun != 0 || again.Counts != first.Counts {
			t.Errorf("run again: %+v", again)
		}
		for flag, value := range map[string]string{"--invoices": "7", "--lose": "2", "--kill": "-1", "--seed": "3"} {
			if _, why := run(exitUsage, flag, value); !strings.Contains(why, flag) {
				t.Errorf("%s %s: %s", flag, value, why)
			}
		}
		if fresh, _ := run(0, "--fresh", "--invoices", "2", "--lose", "0", "--kill", "0"); fresh.Invoices != 2 || fresh.RequestsThisRun != 4 {
			t.Errorf("a fresh night in the same database: %+v", fresh)
		}
	})
}
