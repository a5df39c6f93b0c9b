package workflowfile_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel/workflowfile"
)

// sampled checks what holds for the sample of every definition.
func sampled(t *testing.T, d *workflowfile.Definition) {
	t.Helper()
	s := d.Sample()
	if diff := cmp.Diff(s, d.Sample()); diff != "" {
		t.Errorf("another time it differs:\n%s", diff)
	}
	for path, answer := range s.Answers {
		if !json.Valid(answer) {
			t.Errorf("the answer to %s is %s", path, answer)
		}
	}
	if _, err := d.SampleRun("sample", s); err != nil {
		t.Errorf("no run begins with %s: %v", s.Input, err)
	}
	if again, problems := d.ReadSample("drill/w.yaml", nil); problems != nil || cmp.Diff(s, again) != "" {
		t.Errorf("with no own values it differs: %s", lines(problems))
	}
}

// FuzzSample: a definition that is accepted has a sample.
func FuzzSample(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/sample/*.yaml"} {
		for _, data := range files(f, pattern) {
			f.Add(data, []byte("answers: {a: {}}"))
		}
	}
	for _, data := range files(f, "testdata/sample/drill/*.yaml") {
		f.Add([]byte(teams), data)
	}
	f.Fuzz(func(t *testing.T, data, own []byte) {
		d, _ := workflowfile.Parse("fuzz.yaml", data, workflowfile.Checks{})
		if d == nil {
			return
		}
		sampled(t, d)
		if _, problems := d.ReadSample("own.yaml", own); cmp.Diff(problems, again(d, own)) != "" {
			t.Error("the same values have other problems")
		}
	})
}

func again(d *workflowfile.Definition, own []byte) []workflowfile.Problem {
	_, problems := d.ReadSample("own.yaml", own)
	return problems
}

// TestSampleOfLargeExpressions: the effort stays bounded, counted in pieces of
// memory that were taken. One without bounds does not end.
func TestSampleOfLargeExpressions(t *testing.T) {
	const most = 15_000_000
	mallocs := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.Mallocs
	}
	var chained strings.Builder
	chained.WriteString("\nsteps:\n  - {id: s0, if: run.key != '', uses: a.b}\n")
	for i := range 300 {
		fmt.Fprintf(&chained, "  - {id: s%d, if: \"has(steps.s%d) && has(steps.s%d) || !has(steps.s%d)\", uses: a.b}\n", i+1, i, i, i)
	}
	var many strings.Builder
	many.WriteString("\ninputs: {x: {type: integer}}\nsteps:\n")
	for i := range 2000 {
		fmt.Fprintf(&many, "  - {id: s%d, if: inputs.x != %d, uses: a.b}\n", i, i)
	}
	step := func(text string) string {
		return "\ninputs: {x: {type: object}}\nsteps:\n  - {id: a, uses: a.b, with: {v: '${{ " + text + " }}'}}\n  - {id: b, if: '" + text + " == 1', uses: a.b}\n"
	}
	list := "[" + strings.TrimSuffix(strings.Repeat("1,", 500), ",") + "].map(i, string(i) + \"x\")"
	nested := "\nsteps:\n  - id: a\n    each: {in: '" + list + "', as: a, key: a}\n    steps:\n      - {id: b, uses: a.b}\n"
	for name, text := range map[string]string{
		"sum":      step("inputs.x.a" + strings.Repeat(" + inputs.x.a", 100)),
		"indexes":  step("inputs.x.a" + strings.Repeat("[0]", 20)),
		"members":  step("inputs.x" + strings.Repeat(".m", 150)),
		"ternary":  step(strings.Repeat("(inputs.x.a ? ", 20) + "1" + strings.Repeat(" : 2)", 20)),
		"sizes":    step("inputs.x.a.filter(i, i.b.exists(j, j.c.exists(k, k.d == 1))).size()"),
		"chained":  chained.String(),
		"many":     many.String(),
		"repeated": nested,
		"huge":     "\ninputs: {x: {type: array}}\nsteps:\n  - {id: a, if: inputs.x.size() > 1000000000000, uses: a.b}\n",
		"deep":     "\ninputs: {x: {type: array}}\nsteps:\n  - {id: a, if: 'inputs.x.all(a, a.all(b, b.all(c, c.all(d, d.all(e, e.size() > 90)))) && inputs.x.size() > 90)', uses: a.b}\n",
	} {
		d, problems := workflowfile.Parse(name+".yaml", []byte("name: w\nversion: 1"+text), workflowfile.Checks{})
		if d == nil {
			t.Errorf("%s: %s", name, lines(problems))
			continue
		}
		before := mallocs()
		sampled(t, d)
		if n := mallocs() - before; n > most {
			t.Errorf("%s: memory was taken %d times", name, n)
		}
	}
}
