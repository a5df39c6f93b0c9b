// Command mutants breaks Semel on purpose, one line at a time, and checks that
// a test turns red each time. A mutant that survives is a hole in the tests.
//
//	go run ./mutants            # all of them
//	go run ./mutants fence      # those whose name contains "fence"
//	go run ./mutants drill      # wrong engines, and what the drill says of each
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// mutant is one break: in file, old becomes new, and the tests of pkg that
// match run must fail.
type mutant struct {
	name, file, old, new, pkg, run string
}

// wrong is an engine that is wrong in one way: where more than one place holds
// that way shut, in all of them. The drill of a subject of drill/corpus_test.go
// must tell a story of it.
type wrong struct {
	name, subject string
	edits         []edit
}

type edit struct{ file, old, new string }

func main() {
	filter := strings.Join(os.Args[1:], " ")
	tried, survived := 0, 0
	report := func(name string, err error, by string) {
		tried++
		if err != nil {
			survived++
			fmt.Printf("SURVIVED  %s: %v\n", name, err)
			return
		}
		fmt.Printf("killed    %s (%s)\n", name, by)
	}
	for _, m := range slices.Concat(mutants, ofRuns) {
		if strings.Contains(m.name, filter) {
			_, err := try([]edit{{m.file, m.old, m.new}}, m.pkg, m.run)
			report(m.name, err, m.pkg+" "+m.run)
		}
	}
	for _, w := range ofDrill {
		if !strings.Contains(w.name, filter) {
			continue
		}
		run := "TestCorpusSubjects/^" + w.subject + "$"
		out, err := try(w.edits, "./drill", run)
		story := cmp.Or(twice.FindString(string(out)), lost.FindString(string(out)))
		if err == nil && story == "" {
			err = fmt.Errorf("the drill of %s tells no story of it\n%s", w.subject, out)
		}
		report(w.name, err, run)
		if err == nil {
			fmt.Printf("          %s\n", strings.TrimSpace(story))
		}
	}
	if tried == 0 {
		fmt.Printf("no mutant has %q in its name\n", filter)
		os.Exit(2)
	}
	if survived > 0 {
		fmt.Printf("%d mutants survived\n", survived)
		os.Exit(1)
	}
}

// The first line of what a drill says of a bad outcome.
var (
	twice = regexp.MustCompile(`(?m)^ *TWICE [^ ].*: .*$`)
	lost  = regexp.MustCompile(`(?m)^ *LOST [^ ].*: .*$`)
)

// try makes the edits, and returns what the tests print that catch them.
func try(edits []edit, pkg, run string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "semel-mutant-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	replace := map[string]string{}
	for _, e := range edits {
		if err := e.apply(dir, replace); err != nil {
			return nil, err
		}
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return nil, err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return nil, err
	}
	args := []string{"test", "-count=1", "-vet=off", "-timeout=120s", "-overlay", list, "-run", run, pkg}
	if strings.HasPrefix(pkg, "./store/") {
		args = append(args, "-rapid.nofailfile") // a mutant's history is no seed for the real thing
	}
	out, err := exec.Command("go", args...).CombinedOutput()
	switch {
	case err == nil:
		return nil, fmt.Errorf("every test of %s that matches %q passed", pkg, run)
	case bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("[setup failed]")):
		return nil, fmt.Errorf("it does not compile: mend the mutant\n%s", out)
	}
	return out, nil
}

// apply writes the file as it is after the edit to dir, and puts it in the
// place of the original.
func (e edit) apply(dir string, replace map[string]string) error {
	original, err := filepath.Abs(e.file)
	if err != nil {
		return err
	}
	broken, again := replace[original]
	if !again {
		broken = original
	}
	source, err := os.ReadFile(broken)
	if err != nil {
		return err
	}
	if n := bytes.Count(source, []byte(e.old)); n != 1 {
		return fmt.Errorf("%s holds %d times what is to be broken, want 1: mend the mutant", e.file, n)
	}
	if !again {
		broken = filepath.Join(dir, fmt.Sprint(len(replace))+filepath.Base(e.file))
		replace[original] = broken
	}
	return os.WriteFile(broken, bytes.Replace(source, []byte(e.old), []byte(e.new), 1), 0o600)
}
