package cases

import (
	"fmt"
	"os"
	"testing"

	"github.com/semel-dev/semel/store/postgres/postgrestest"
)

// TestMain also is the child process of the crash cases.
func TestMain(m *testing.M) {
	if args := os.Getenv("SEMEL_CASE_CHILD"); args != "" {
		if err := runChild(args); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	postgrestest.Main(m)
}
