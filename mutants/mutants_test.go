package main

import (
	"slices"
	"testing"
)

// Each mutant still finds what it breaks. Whether a test kills it, only running
// it tells.
func TestMutantsFitTheCode(t *testing.T) {
	t.Chdir("..")
	every := map[string][]edit{}
	for _, m := range slices.Concat(mutants, ofRuns) {
		every[m.name] = append(every[m.name], edit{m.file, m.old, m.new})
	}
	for _, w := range ofDrill {
		every[w.name] = append(every[w.name], w.edits...)
	}
	for name, edits := range every {
		dir, replace := t.TempDir(), map[string]string{}
		for _, e := range edits {
			if err := e.apply(dir, replace); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
