package check

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/workflowfile"
)

// children checks the workflows whose runs a dry run started, each once for the
// step that starts it, with the input that the step gave.
func (p *plan) children(r *recorder) (steps []Step, found []Finding, err error) {
	seen := map[string]bool{}
	for _, s := range r.steps {
		child, ok := s.step.(*semel.ChildStep)
		at := plain(s.path)
		if !ok || seen[at] {
			continue
		}
		seen[at] = true
		ref := semel.WorkflowRef{Name: child.Run.Workflow, Version: child.Run.Version}
		i := slices.IndexFunc(p.o.Children, func(d semel.WorkflowDefinition) bool {
			return d.Name == ref.Name && max(d.Version, 1) == max(ref.Version, 1)
		})
		if i < 0 {
			found = append(found, Finding{
				Code: workflowfile.CodeNotChecked, Severity: Note, Step: at, Message: fmt.Sprintf("step %s starts workflow %s, which was not checked", at, ref),
				Fix: "check it, too, or name it in check.Options.Children",
			})
			continue
		}
		o := p.o
		o.Input, o.Key, o.Accept = json.RawMessage(child.Run.Input), child.Run.Key, nil
		o.Children = slices.Delete(slices.Clone(p.o.Children), i, i+1) // one that starts itself has no end
		inner, err := Workflow(p.o.Children[i], o)
		if err != nil {
			return nil, nil, fmt.Errorf("step %s: %w", at, err)
		}
		for _, s := range inner.Steps {
			s.Path = at + "/" + s.Path
			steps = append(steps, s)
		}
		for _, f := range inner.Findings {
			f.Step = at + "/" + f.Step
			found = append(found, f)
		}
	}
	return steps, found, nil
}
