package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/connection"
	"github.com/semel-dev/semel/drill"
	"github.com/semel-dev/semel/workflowfile"
)

// drillTarget is a workflow to be drilled, with what its run gets.
type drillTarget struct {
	drilled
	definition *workflowfile.Definition
	actions    workflowfile.Actions
	sample     workflowfile.Sample
	run        semel.NewRun
}

// drilled is what a program reads of one workflow.
type drilled struct {
	File    string `json:"file"`
	Version int    `json:"version"`
	// Sample is the file with values of one's own; without one all are inferred.
	Sample string          `json:"sample,omitzero"`
	Input  json.RawMessage `json:"input"`
	Event  json.RawMessage `json:"event,omitzero"` // the data of the one that starts the run
	Unsure []string        `json:"unsure"`
	*drill.Verdict
}

// targets reads the workflows at a path. All that is wrong is shown at once, and
// then nothing is drilled.
func (d *drilling) targets(path string) ([]*drillTarget, error) {
	groups, err := drillPaths(path)
	if err != nil {
		return nil, err
	}
	var targets []*drillTarget
	var problems []workflowfile.Problem
	told := map[string]bool{}
	for _, group := range groups {
		p := &project{}
		if p.config, p.from, p.problems, err = d.sh.readConfig(group.dir); err != nil {
			return nil, badPath(err)
		}
		if p.from == "" {
			p.config = &connection.Config{}
		}
		if err := p.read(group.paths, checksWith(p.config)); err != nil {
			return nil, badPath(err)
		}
		if !told[p.from] {
			problems = append(problems, p.problems...)
			told[p.from] = true
		}
		for _, f := range p.files {
			problems = append(problems, f.problems...)
			if f.definition == nil || p.config == nil {
				continue
			}
			t := &drillTarget{drilled: drilled{File: f.path, Version: f.definition.Version}, definition: f.definition, actions: p.config.Simulated()}
			wrong, err := t.read()
			if err != nil {
				return nil, badPath(err)
			}
			problems = append(problems, wrong...)
			targets = append(targets, t)
		}
	}
	problems = slices.DeleteFunc(problems, func(p workflowfile.Problem) bool { return p.Severity != workflowfile.SeverityError })
	if len(problems) > 0 {
		fmt.Fprint(d.sh.err, problemLines(problems))
		return nil, usagef("nothing was drilled: mend %s first; semel check %s explains more", counted(len(problems), "error"), quoteForShell(path))
	}
	return targets, nil
}

// drillGroup is workflow files of one directory.
type drillGroup struct {
	dir   string
	paths []string
}

// drillPaths finds the workflow files that semel check would check.
func drillPaths(path string) ([]drillGroup, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, badPath(err)
	}
	if !info.IsDir() {
		if filepath.Base(path) == configName {
			return nil, usagef("%s holds connections: name a workflow file, or its directory", path)
		}
		return []drillGroup{{filepath.Dir(path), []string{path}}}, nil
	}
	var groups []drillGroup
	for _, dir := range []string{path, filepath.Join(path, defaultWorkflows)} {
		paths, err := workflowPaths(dir)
		if errors.Is(err, fs.ErrNotExist) && dir != path {
			continue
		}
		if err != nil {
			return nil, badPath(err)
		}
		if len(paths) > 0 {
			groups = append(groups, drillGroup{dir, paths})
		}
	}
	if len(groups) == 0 {
		return nil, usagef("%s holds no workflow file: they end in .yaml", path)
	}
	return groups, nil
}

// badPath is bad input: what was named cannot be read.
func badPath(err error) error { return usagef("%s", unreadable(err)) }

// read makes the sample: with the values in drill/NAME.yaml, if there is one.
func (t *drillTarget) read() ([]workflowfile.Problem, error) {
	own := filepath.Join(filepath.Dir(t.File), t.definition.SampleFile())
	text, err := os.ReadFile(own)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		t.sample = t.definition.Sample()
	case err != nil:
		return nil, err
	default:
		var problems []workflowfile.Problem
		if t.sample, problems = t.definition.ReadSample(own, text); workflowfile.HasErrors(problems) {
			return problems, nil
		}
		t.Sample = own
	}
	t.Unsure = append([]string{}, t.sample.Unsure...)
	t.run, err = t.definition.SampleRun("drill", t.sample)
	t.Input = t.run.Input
	if e := t.run.Trigger.Event; e != nil {
		t.Event = e.Data
	}
	if input, ok := errors.AsType[*semel.InputError](err); ok {
		return []workflowfile.Problem{{
			File: t.File, Line: 1, Column: 1, Severity: workflowfile.SeverityError, Code: workflowfile.CodeValue,
			Message: "no run can begin with what is inferred: " + input.Error(), Fix: "give input in " + own,
		}}, nil
	}
	return nil, err
}

// options are the sample as the drill takes it.
func (t *drillTarget) options() drill.Options {
	o := drill.Options{Key: t.run.Key, Input: t.Input, Trigger: t.run.Trigger, Answers: map[string]any{}, Events: map[string]any{}}
	for path, answer := range t.sample.Answers {
		o.Answers[path] = answer
	}
	for path, step := range steps(t.definition) {
		if step.Wait != nil {
			o.Events[path] = nil // it never comes, but for those of the sample
		}
	}
	for _, e := range t.sample.Events {
		o.Events[e.Path] = e.Data
	}
	return o
}

// missed are the steps with an effect that the run does not come to, and that no
// warning names.
func (t *drillTarget) missed() (paths []string) {
	if len(t.Unsure) > 0 {
		return nil
	}
	for path, step := range steps(t.definition) {
		if step.Uses != nil && !strings.HasPrefix(path, aside) && !slices.Contains(t.Steps, path) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// aside begins the paths of what is done after a failure.
const aside = "on_failure/"

// steps are those of a workflow by their path, without items.
func steps(d *workflowfile.Definition) map[string]*workflowfile.Step {
	all := map[string]*workflowfile.Step{}
	var add func(prefix string, steps []*workflowfile.Step)
	add = func(prefix string, steps []*workflowfile.Step) {
		for _, step := range steps {
			all[prefix+step.ID] = step
			if step.Each != nil {
				add(prefix+step.ID+"/", step.Each.Steps)
			}
		}
	}
	add("", d.Steps)
	add(aside, d.OnFailure)
	return all
}
