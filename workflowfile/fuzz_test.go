package workflowfile_test

import (
	"slices"
	"testing"

	"github.com/semel-dev/semel/workflowfile"
)

// FuzzParse: whatever the file holds, Parse returns, every problem has a place
// in order, and a definition comes with no error.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/bad/*.yaml"} {
		for _, data := range files(f, pattern) {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, problems := workflowfile.Parse("fuzz.yaml", data, checks)
		if (d == nil) != workflowfile.HasErrors(problems) {
			t.Errorf("definition %v with problems:\n%s", d, lines(problems))
		}
		for _, p := range problems {
			if p.Line < 1 || p.Column < 1 || p.Message == "" || p.Code == "" {
				t.Errorf("problem without place, message or code: %#v", p)
			}
		}
		if !slices.IsSortedFunc(problems, func(a, b workflowfile.Problem) int { return a.Line - b.Line }) {
			t.Errorf("problems out of order:\n%s", lines(problems))
		}
		if d != nil {
			if again, _ := workflowfile.Parse("fuzz.yaml", data, checks); again == nil || again.Digest != d.Digest || len(workflowfile.Diff(d, again)) > 0 {
				t.Error("the same file has two digests")
			}
		}
	})
}
