package cases

import (
	"fmt"
	"os"
	"testing"

	"github.com/semel-dev/semel/store/postgres/postgrestest"
)

// TestMain also is the child process of the crash cases, and the worker
// process of those with runs.
func TestMain(m *testing.M) {
	for name, run := range map[string]func(string) error{"SEMEL_CASE_CHILD": runChild, "SEMEL_CASE_WORKER": runWorker} {
		args := os.Getenv(name)
		if args == "" {
			continue
		}
		if err := run(args); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	postgrestest.Main(m)
}
