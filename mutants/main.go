// Command mutants breaks Semel on purpose, one line at a time, and checks that
// a test turns red each time. A mutant that survives is a hole in the tests.
//
//	go run ./mutants            # all of them
//	go run ./mutants fence      # those whose name contains "fence"
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is one break: in file, old becomes new, and the tests of pkg that
// match run must fail.
type mutant struct {
	name, file, old, new, pkg, run string
}

func main() {
	filter := strings.Join(os.Args[1:], " ")
	survived := 0
	for _, m := range slices.Concat(mutants, ofRuns) {
		if !strings.Contains(m.name, filter) {
			continue
		}
		if err := m.try(); err != nil {
			survived++
			fmt.Printf("SURVIVED  %s: %v\n", m.name, err)
			continue
		}
		fmt.Printf("killed    %s (%s %s)\n", m.name, m.pkg, m.run)
	}
	if survived > 0 {
		fmt.Printf("%d mutants survived\n", survived)
		os.Exit(1)
	}
}

// try returns nil when the tests catch the mutant.
func (m mutant) try() error {
	source, err := os.ReadFile(m.file)
	if err != nil {
		return err
	}
	if n := bytes.Count(source, []byte(m.old)); n != 1 {
		return fmt.Errorf("%s holds %d times what is to be broken, want 1: mend the mutant", m.file, n)
	}
	dir, err := os.MkdirTemp("", "semel-mutant-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	broken := filepath.Join(dir, filepath.Base(m.file))
	if err := os.WriteFile(broken, bytes.Replace(source, []byte(m.old), []byte(m.new), 1), 0o600); err != nil {
		return err
	}
	original, err := filepath.Abs(m.file)
	if err != nil {
		return err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {original: broken}})
	if err != nil {
		return err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return err
	}
	args := []string{"test", "-count=1", "-timeout=120s", "-overlay", list, "-run", m.run, m.pkg}
	if strings.HasPrefix(m.pkg, "./store/") {
		args = append(args, "-rapid.nofailfile") // a mutant's history is no seed for the real thing
	}
	out, err := exec.Command("go", args...).CombinedOutput()
	switch {
	case err == nil:
		return fmt.Errorf("every test of %s that matches %q passed", m.pkg, m.run)
	case bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("[setup failed]")):
		return fmt.Errorf("it does not compile: mend the mutant\n%s", out)
	}
	return nil
}
