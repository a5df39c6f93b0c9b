package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"os/user"

	"golang.org/x/term"
)

// shell is the surroundings of one invocation and its global flags.
type shell struct {
	in       io.Reader
	out, err io.Writer
	getenv   func(string) string
	terminal bool // stdout is one
	colour   bool // a person reads stdout and stderr, and wants colour
	uid      int

	db, config, output string
	create             bool
	wrote              bool // something to stdout
}

func osShell() *shell {
	plain := os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb"
	terminal := term.IsTerminal(int(os.Stdout.Fd()))
	return &shell{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.Getenv, uid: os.Getuid(),
		terminal: terminal, colour: !plain && terminal && term.IsTerminal(int(os.Stderr.Fd())),
	}
}

// json reports whether the output is for a program.
func (sh *shell) json() bool { return sh.output == "json" }

// person is who runs this command: user@host.
func person() string {
	name, host := "unknown", "localhost"
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil && h != "" {
		host = h
	}
	return name + "@" + host
}

// command is a command line that a person can type as it is shown: it names
// the same database and connections as this invocation.
func (sh *shell) command(line string) string {
	text := "semel " + line
	if sh.db != "" {
		text += " --db " + quoteForShell(redacted(sh.db))
	}
	if sh.config != "" {
		text += " --config " + quoteForShell(sh.config)
	}
	return text
}

// scope is the scope that was given, or the one of this environment.
func (sh *shell) scope(given string) string {
	return cmp.Or(given, sh.getenv("SEMEL_SCOPE"), "default")
}

// write writes data to stdout.
func (sh *shell) write(b []byte) error {
	sh.wrote = true
	if _, err := sh.out.Write(b); err != nil {
		return fmt.Errorf("write to stdout: %w", err)
	}
	return nil
}

// tolerant remembers the first error of a writer and takes the rest silently:
// a reader that went away changes no outcome.
type tolerant struct {
	to  io.Writer
	err error
}

func (t *tolerant) Write(b []byte) (int, error) {
	if t.err == nil {
		_, t.err = t.to.Write(b)
	}
	return len(b), nil
}

// shut closes something at the end of a command, and does not wait for it for
// ever.
func (sh *shell) shut(what string, closeIt func() error) {
	if err := atMost(leaving, closeIt); err != nil {
		sh.say("close %s: %v", what, err)
	}
}
