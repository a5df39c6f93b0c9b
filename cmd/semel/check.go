package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/semel-dev/semel/check"
	"github.com/semel-dev/semel/workflowfile"
)

const checkHelp = `Check workflow files before anything runs, and the semel.yaml that they use.
For each step with an effect a table answers what it does, what names it, what
happens if two arrive at once, where the evidence is, what happens if it stops in
between, what the limits are, and how a person recovers. Then everything that is
wrong or risky is shown, as FILE:LINE:COLUMN: what: how to mend it [code]. Nothing
is sent and no database is asked.

A step that says accept: [{code: CODE, reason: WHY}] takes a risk: it is shown with
the reason, and does not count.

Of a DIR everything is checked that semel serve would load there: the files
*.yaml and *.yml directly in it and in its directory workflows. A file named
semel.yaml, or by --config, is checked as one with connections. Connections are those of --config (env SEMEL_CONFIG), or of
the semel.yaml beside a workflow file, or in the directory above; where there is
none, a warning says what could not be checked.

Exit codes: 0 no errors, though warnings; 1 errors, with --strict warnings too;
2 something cannot be read. Notes and accepted risks never fail.`

func newCheck(sh *shell) *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use: "check FILE|DIR...", Short: "Check workflow files and semel.yaml", Long: checkHelp,
		Example: "  semel check .\n  semel check --strict workflows semel.yaml\n  semel check billing.yaml --output json\n  semel check --sarif semel.sarif .",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("%s needs what to check: files or directories, for example semel check .", cmd.CommandPath())
			}
			return nil
		},
		RunE: ours(func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("operator-time") && o.operator == 0 {
				return usagef("--operator-time 0s leaves a person no time to look: give a time such as 5m")
			}
			c := &checking{sh: sh, seen: map[string]bool{}, projects: map[string]*project{}, options: o, Workflows: []check.Report{}, Findings: []check.Finding{}, Unreadable: []string{}}
			for _, path := range args {
				c.path(path)
			}
			return c.end()
		}),
	}
	cmd.Flags().BoolVar(&o.strict, "strict", false, "warnings end with 1, too")
	cmd.Flags().BoolVar(&o.brief, "brief", false, "show the findings alone, without the tables")
	cmd.Flags().StringVar(&o.sarif, "sarif", "", "also write the findings to this file, for code hosts")
	cmd.Flags().Var(&span{to: &o.operator}, "operator-time", "how long a person may take to look (default 12h)")
	return cmd
}

type checkOptions struct {
	strict   bool
	brief    bool
	sarif    string
	operator time.Duration
}

// checking is one call of check; its exported fields are what a program reads.
type checking struct {
	sh       *shell
	options  checkOptions
	seen     map[string]bool
	projects map[string]*project // which know the names in a directory

	Workflows  []check.Report  `json:"workflows"`
	Findings   []check.Finding `json:"findings"`
	Unreadable []string        `json:"unreadable"`
	Files      int             `json:"files"`
	check.Counts
}

// path checks a file or a directory.
func (c *checking) path(path string) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		c.unreadable(err)
	case !info.IsDir() && (filepath.Base(path) == configName || path == c.sh.config):
		c.config(path)
	case !info.IsDir():
		c.workflows(filepath.Dir(path), []string{path})
	default:
		c.dir(path)
	}
}

func (c *checking) dir(dir string) {
	paths, err := workflowPaths(dir)
	if err != nil {
		c.unreadable(err)
		return
	}
	own := filepath.Join(dir, configName)
	below := filepath.Join(dir, defaultWorkflows)
	_, err = os.Stat(own)
	configured := err == nil
	if configured {
		c.config(own)
	}
	if info, err := os.Stat(below); err == nil && info.IsDir() {
		c.dir(below)
	} else if len(paths) == 0 && !configured {
		c.Unreadable = append(c.Unreadable, dir+" holds no workflow file: they end in .yaml")
	}
	if len(paths) > 0 {
		c.workflows(dir, paths)
	}
}

// config checks a file with connections, once.
func (c *checking) config(path string) {
	if !c.first(path) {
		return
	}
	_, problems, err := loadConfig(path) // which opens nothing
	if err != nil {
		c.unreadable(err)
		return
	}
	c.Files++
	c.problems(problems)
}

func (c *checking) problems(problems []workflowfile.Problem) {
	for _, p := range problems {
		c.Findings = append(c.Findings, check.Problem(p))
	}
}

// workflows checks files of one directory, with the connections there.
func (c *checking) workflows(dir string, paths []string) {
	paths = slices.DeleteFunc(paths, func(path string) bool { return !c.first(path) })
	config, from, problems, err := c.sh.readConfig(dir)
	if err != nil {
		c.unreadable(err)
		return
	}
	if len(problems) > 0 && c.first(from) {
		c.Files++
		c.problems(problems)
	}
	checks := checksWith(config)
	if from == "" {
		checks.Connection = nil // a warning says that it is not checked
	}
	known := checks
	if config == nil {
		known.Connection = nil // what its file says is not known before it can be read
	}
	p := c.projects[filepath.Clean(dir)]
	if p == nil {
		p = &project{}
		c.projects[filepath.Clean(dir)] = p
	}
	for _, path := range paths {
		p.files = nil
		if err := p.read([]string{path}, checks); err != nil {
			c.unreadable(err)
		}
		c.Files += len(p.files)
		c.problems(p.problems)
		for _, f := range p.files {
			c.workflow(f, known)
		}
	}
}

// workflow checks one workflow file that was read.
func (c *checking) workflow(f workflowText, checks workflowfile.Checks) {
	r := check.File(f.definition, f.problems, checks, check.FileOptions{OperatorTime: c.options.operator})
	c.Findings = append(c.Findings, r.Findings...)
	if f.definition != nil {
		r.Findings = nil // they are shown with those of the other files
		c.Workflows = append(c.Workflows, r)
	}
}

// first reports whether a file is met for the first time.
func (c *checking) first(path string) bool {
	abs, err := filepath.Abs(path)
	if err != nil {
		abs = path
	}
	met := c.seen[abs]
	c.seen[abs] = true
	return !met
}

func (c *checking) unreadable(err error) { c.Unreadable = append(c.Unreadable, unreadable(err)) }

// end shows what was found, and ends with the code that says so.
func (c *checking) end() error {
	c.Counts = check.Count(c.Findings)
	if err := c.show(); err != nil {
		return err
	}
	if err := c.log(); err != nil {
		return err
	}
	for _, text := range c.Unreadable {
		c.sh.say("%s", text)
	}
	c.sh.say("%s", c.summary())
	switch {
	case len(c.Unreadable) > 0:
		return &outcomeError{exitUsage}
	case c.Errors > 0, c.options.strict && c.Warnings > 0:
		return &outcomeError{exitFailed}
	}
	return nil
}

// show prints the tables, and then the findings.
func (c *checking) show() error {
	if c.sh.json() {
		return c.sh.print(c)
	}
	var b strings.Builder
	if !c.options.brief {
		for i := range c.Workflows {
			b.WriteString(c.Workflows[i].Text() + "\n")
		}
	}
	for _, f := range c.Findings {
		fmt.Fprintln(&b, oneLine(f.String()))
	}
	return c.sh.write([]byte(b.String()))
}

// log writes what a code host reads.
func (c *checking) log() error {
	if c.options.sarif == "" {
		return nil
	}
	data, err := check.SARIF(c.Findings, ".")
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.options.sarif, append(data, '\n'), 0o644); err != nil { //nolint:gosec // it is made to be read
		return usagef("%s cannot be written: %v", c.options.sarif, errors.Unwrap(err))
	}
	return nil
}

// problemLines is one line for each problem.
func problemLines(problems []workflowfile.Problem) string {
	var b strings.Builder
	for _, p := range problems {
		fmt.Fprintln(&b, oneLine(p.String()))
	}
	return b.String()
}

func (c *checking) summary() string {
	s := fmt.Sprintf("%s checked: %s, %s", counted(c.Files, "file"), counted(c.Errors, "error"), counted(c.Warnings, "warning"))
	if c.Notes > 0 {
		s += ", " + counted(c.Notes, "note")
	}
	if c.Accepted > 0 {
		s += fmt.Sprintf(", %d accepted", c.Accepted)
	}
	return s
}

// counted is a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
