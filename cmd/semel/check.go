package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/semel-dev/semel/workflowfile"
)

const checkHelp = `Check workflow files before anything runs, and the semel.yaml that they use.
Everything that is wrong is shown at once, as FILE:LINE:COLUMN: what: how to mend
it. Nothing is sent and no database is asked.

Of a DIR everything is checked that semel serve would load there: the files
*.yaml and *.yml directly in it and in its directory workflows. A file named
semel.yaml, or by --config, is checked as one with connections. Connections are those of --config (env SEMEL_CONFIG), or of
the semel.yaml beside a workflow file, or in the directory above; where there is
none, a warning says what could not be checked.

Exit codes: 0 no errors, though warnings; 1 errors, with --strict warnings too;
2 something cannot be read.`

func newCheck(sh *shell) *cobra.Command {
	var strict bool
	cmd := &cobra.Command{
		Use: "check FILE|DIR...", Short: "Check workflow files and semel.yaml", Long: checkHelp,
		Example: "  semel check .\n  semel check --strict workflows semel.yaml\n  semel check billing.yaml --output json",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("%s needs what to check: files or directories, for example semel check .", cmd.CommandPath())
			}
			return nil
		},
		RunE: ours(func(_ *cobra.Command, args []string) error {
			c := &checking{sh: sh, seen: map[string]bool{}, projects: map[string]*project{}, Problems: []workflowfile.Problem{}, Unreadable: []string{}}
			for _, path := range args {
				c.path(path)
			}
			return c.end(strict)
		}),
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "warnings end with 1, too")
	return cmd
}

// checking is one call of check; its exported fields are what a program reads.
type checking struct {
	sh       *shell
	seen     map[string]bool
	projects map[string]*project // which know the names in a directory

	Problems   []workflowfile.Problem `json:"problems"`
	Unreadable []string               `json:"unreadable"`
	Files      int                    `json:"files"`
	Errors     int                    `json:"errors"`
	Warnings   int                    `json:"warnings"`
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
	c.Problems = append(c.Problems, problems...)
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
		c.Problems = append(c.Problems, problems...)
	}
	checks := checksWith(config)
	if from == "" {
		checks.Connection = nil // a warning says that it is not checked
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
		c.Problems = append(c.Problems, p.all()...)
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
func (c *checking) end(strict bool) error {
	for _, p := range c.Problems {
		if p.Severity == workflowfile.SeverityError {
			c.Errors++
		} else {
			c.Warnings++
		}
	}
	if err := c.show(); err != nil {
		return err
	}
	for _, text := range c.Unreadable {
		c.sh.say("%s", text)
	}
	c.sh.say("%s", c.summary())
	switch {
	case len(c.Unreadable) > 0:
		return &outcomeError{exitUsage}
	case c.Errors > 0, strict && c.Warnings > 0:
		return &outcomeError{exitFailed}
	}
	return nil
}

func (c *checking) show() error {
	if c.sh.json() {
		return c.sh.print(c)
	}
	if len(c.Problems) == 0 {
		return nil
	}
	return c.sh.write([]byte(problemLines(c.Problems)))
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
	return fmt.Sprintf("%s checked: %s, %s", counted(c.Files, "file"), counted(c.Errors, "error"), counted(c.Warnings, "warning"))
}

// counted is a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
