package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/connection"
	"github.com/semel-dev/semel/schedule"
	"github.com/semel-dev/semel/workflowfile"
)

const (
	configName = "semel.yaml"
	// defaultWorkflows is where workflow files are looked for, if it is there.
	defaultWorkflows = "workflows"
)

// project is a directory of workflow files, with the connections that they use.
type project struct {
	dir      string
	config   *connection.Config // nil where it cannot be used
	from     string             // its file; empty where there is none
	problems []workflowfile.Problem
	files    []workflowText
	names    map[semel.WorkflowRef]string // where each was found first
}

// workflowText is one workflow file as it was read.
type workflowText struct {
	path       string
	definition *workflowfile.Definition // nil where it has errors
	problems   []workflowfile.Problem
}

const projectHelp = `The workflows are the files *.yaml and *.yml that lie directly in DIR, one workflow
each; texts that their steps name lie beside them or below. Without DIR it is
the directory workflows, if there is one here, and else the current directory.

Their connections are those of --config (env SEMEL_CONFIG), or of the semel.yaml
in DIR, or in the directory above it.`

// projectDir is the directory that the arguments name, or the default.
func projectDir(args []string) (string, error) {
	dir := "."
	if len(args) > 0 {
		dir = args[0]
	} else if info, err := os.Stat(defaultWorkflows); err == nil && info.IsDir() {
		dir = defaultWorkflows
	}
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return "", usagef("%s cannot be read: %v", dir, errors.Unwrap(err))
	case !info.IsDir():
		return "", usagef("%s is a file: name the directory of the workflows", dir)
	}
	return dir, nil
}

// readProject reads a directory. The error says what cannot be read at all;
// all else that is wrong is in problems.
func (sh *shell) readProject(dir string) (*project, error) {
	paths, err := workflowPaths(dir)
	if err != nil {
		return nil, err
	}
	p := &project{dir: dir}
	if p.config, p.from, p.problems, err = sh.readConfig(dir); err != nil {
		return nil, err
	}
	if p.from == "" {
		p.config = &connection.Config{}
	}
	if err := p.read(paths, checksWith(p.config)); err != nil {
		return nil, err
	}
	return p, nil
}

// read reads workflow files, and finds those that say the same name twice.
func (p *project) read(paths []string, checks workflowfile.Checks) error {
	if p.names == nil {
		p.names = map[semel.WorkflowRef]string{}
	}
	for _, path := range paths {
		d, problems, err := workflowfile.Load(path, checks)
		if err != nil {
			return err
		}
		if d != nil {
			ref := semel.WorkflowRef{Name: d.Name, Version: d.Version}
			if other, twice := p.names[ref]; twice {
				problems = append(problems, workflowfile.Problem{
					File: path, Line: 1, Column: 1, Severity: workflowfile.SeverityError, Code: workflowfile.CodeDuplicate,
					Message: fmt.Sprintf("%s is in %s already", ref, other), Fix: "give one of them another name or version",
				})
				d = nil
			} else {
				p.names[ref] = path
			}
		}
		p.files = append(p.files, workflowText{path, d, problems})
	}
	return nil
}

// all are the problems of semel.yaml and of the files.
func (p *project) all() []workflowfile.Problem {
	problems := slices.Clone(p.problems)
	for _, f := range p.files {
		problems = append(problems, f.problems...)
	}
	return problems
}

// definitions are the workflows without errors.
func (p *project) definitions() (all []*workflowfile.Definition) {
	for _, f := range p.files {
		if f.definition != nil {
			all = append(all, f.definition)
		}
	}
	return all
}

// workflowPaths lists the workflow files of a directory.
func workflowPaths(dir string) (paths []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := e.Name()
		ext := filepath.Ext(name)
		if e.IsDir() || name == configName || strings.HasPrefix(name, ".") || ext != ".yaml" && ext != ".yml" {
			continue
		}
		paths = append(paths, filepath.Join(dir, name))
	}
	return paths, nil
}

// configBeside is the file with the connections of workflows in a directory;
// empty where there is none.
func (sh *shell) configBeside(dir string) string {
	if path := cmp.Or(sh.config, sh.getenv("SEMEL_CONFIG")); path != "" {
		return path
	}
	for _, path := range []string{filepath.Join(dir, configName), filepath.Join(dir, "..", configName)} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

// readConfig reads the connections of workflows in a directory. Where the file
// has errors, they are problems and the configuration is nil.
func (sh *shell) readConfig(dir string) (*connection.Config, string, []workflowfile.Problem, error) {
	path := sh.configBeside(dir)
	if path == "" {
		return nil, "", nil, nil
	}
	c, problems, err := loadConfig(path)
	return c, path, problems, err
}

func loadConfig(path string) (*connection.Config, []workflowfile.Problem, error) {
	c, err := connection.Load(path)
	wrong, ok := errors.AsType[connection.Errors](err)
	if !ok {
		return c, nil, err
	}
	problems := make([]workflowfile.Problem, len(wrong))
	for i, e := range wrong {
		problems[i] = workflowfile.Problem{
			File: e.File, Line: e.Line, Column: e.Column, Severity: workflowfile.SeverityError, Code: workflowfile.CodeConfiguration, Message: e.Problem, Fix: e.Fix,
		}
	}
	return nil, problems, nil
}

// checksWith are the checks of workflows over connections. Without any, since
// their file has errors, every use of one passes.
func checksWith(c *connection.Config) workflowfile.Checks {
	checks := workflowfile.Checks{Connection: func(string) (workflowfile.ConnectionInfo, bool) {
		return workflowfile.ConnectionInfo{Contract: &semel.Contract{}}, true
	}}
	if c != nil {
		checks = c.Checks()
	}
	checks.Cron = checkCron
	return checks
}

func checkCron(text string) error {
	_, err := schedule.Parse(text, "UTC")
	if input, ok := errors.AsType[*semel.InputError](err); ok {
		field := strings.TrimPrefix(strings.TrimPrefix(input.Field, "cron"), " ")
		return errors.New(strings.TrimSpace(field+" "+input.Problem) + " (" + input.Hint + ")")
	}
	return err
}

// unreadable is why a file cannot be read, in words.
func unreadable(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Path + " cannot be read: " + e.Err.Error()
	}
	return err.Error()
}
