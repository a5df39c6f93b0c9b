package workflowfile_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/workflowfile"
)

var update = flag.Bool("update", false, "write the problems that are found into testdata")

// checks know four connections.
var checks = workflowfile.Checks{
	Cron: func(text string) error {
		if len(strings.Fields(text)) != 5 {
			return errors.New("it has not five fields")
		}
		return nil
	},
	Connection: func(name string) (workflowfile.ConnectionInfo, bool) {
		keyed := &semel.Contract{Protection: semel.Keyed}
		switch name {
		case "payments":
			return workflowfile.ConnectionInfo{Contract: keyed}, true
		case "stock":
			return workflowfile.ConnectionInfo{Actions: map[string]workflowfile.ActionInfo{
				"reserve": {Contract: keyed, Required: []string{"sku"}, Optional: []string{"count"}},
				"list":    {Read: true},
			}}, true
		case "mail", "ledger":
			return workflowfile.ConnectionInfo{}, true
		}
		return workflowfile.ConnectionInfo{}, false
	},
	File: func(name string) ([]byte, error) { return os.ReadFile("testdata/good/" + name) },
}

func files(t testing.TB, pattern string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	all := map[string][]byte{}
	for _, path := range paths {
		if all[path], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func lines(problems []workflowfile.Problem) string {
	var b strings.Builder
	for _, p := range problems {
		fmt.Fprintf(&b, "%s [%s]\n", p, p.Code)
	}
	return b.String()
}

func TestGoodFilesHaveNoProblems(t *testing.T) {
	for path, data := range files(t, "testdata/good/*.yaml") {
		d, problems := workflowfile.Parse(path, data, checks)
		if len(problems) > 0 || d == nil {
			t.Errorf("%s:\n%s", path, lines(problems))
		}
	}
}

// M37: all problems at once, each with its place and its cure.
func TestBadFiles(t *testing.T) {
	total := 0
	for path, data := range files(t, "testdata/bad/*.yaml") {
		d, problems := workflowfile.Parse(filepath.Base(path), data, checks)
		if d != nil {
			t.Errorf("%s was accepted", path)
		}
		total += len(problems)
		got, golden := lines(problems), strings.TrimSuffix(path, ".yaml")+".problems"
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	if total < 120 {
		t.Errorf("the files show %d mistakes, want at least 120", total)
	}
}
