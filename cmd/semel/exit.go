package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/connection"
	"github.com/semel-dev/semel/engine"
)

// The exit codes. Scripts branch on them: they are part of the interface.
const (
	exitCompleted   = 0
	exitFailed      = 1 // nothing happened
	exitUsage       = 2 // nothing was recorded or sent
	exitUnknown     = 3
	exitRefused     = 4 // conflict, expired, unsafe, incident
	exitInProgress  = 5
	exitUnavailable = 6 // Semel itself could not work, and this call sent nothing
	exitBug         = 70
)

// usageError says what is wrong with the command line, and the cure.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// refusedError says that Semel will not do what was asked.
type refusedError struct {
	code int
	text string
}

func (e *refusedError) Error() string { return e.text }

// outcomeError ends a command whose outcome has been shown already.
type outcomeError struct{ code int }

func (e *outcomeError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// commandError is an error that a command returned, in contrast to one that
// the command line parser found.
type commandError struct{ err error }

func (e *commandError) Error() string { return e.err.Error() }
func (e *commandError) Unwrap() error { return e.err }

// codeOf is the exit code that tells what err means.
func codeOf(err error) int {
	var outcome *outcomeError
	var refused *refusedError
	var ours *commandError
	switch {
	case errors.As(err, &outcome):
		return outcome.code
	case errors.As(err, &refused):
		return refused.code
	case !errors.As(err, &ours):
		return exitUsage // the command line parser
	case errors.Is(err, semel.ErrUnavailable): // also where a socket of its server is missing like a file
		return exitUnavailable
	case isBadInput(err), errors.Is(err, semel.ErrNotFound):
		return exitUsage
	case errors.As(err, new(*engine.SettledError)):
		return exitRefused
	}
	return exitUnavailable
}

func isBadInput(err error) bool {
	return errors.As(err, new(*usageError)) || errors.As(err, new(*semel.InputError)) || errors.As(err, new(connection.Errors)) || errors.Is(err, fs.ErrNotExist)
}

// codeOfOutcome is the exit code of a request for an operation.
func codeOfOutcome(out *semel.Outcome) int {
	switch out.Status {
	case semel.StatusCompleted:
		return exitCompleted
	case semel.StatusFailed:
		return exitFailed
	case semel.StatusUnknown:
		return exitUnknown
	case semel.StatusInProgress:
		return exitInProgress
	case semel.StatusConflict, semel.StatusExpired, semel.StatusIncident, semel.StatusUnsafe:
		return exitRefused
	}
	return exitBug
}

// errorJSON is what a program reads when a command ends with nothing else to
// print.
type errorJSON struct {
	Error string `json:"error"`
	Exit  int    `json:"exit"`
}

// printError prints the one object of a command that failed. One that had begun
// to print its own ends as it is.
func (sh *shell) printError(args []string, text string, code int) {
	if !sh.wrote && (sh.json() || wantsJSON(args)) {
		_ = sh.print(errorJSON{text, code}) // stderr has it too
	}
}

// wantsJSON reports whether JSON was asked for, on a command line that may have
// been refused before its flags were read.
func wantsJSON(args []string) bool {
	for i, arg := range args {
		switch {
		case arg == "--":
			return false
		case arg == "--output=json", arg == "json" && i > 0 && args[i-1] == "--output":
			return true
		}
	}
	return false
}

// flagOf names the flag by which an input is given.
var flagOf = map[string]string{
	"scope": "--scope", "key": "--key", "protection": "--protection", "window": "--window", "lookup": "--lookup",
	"on-failed": "--on-failed", "max-processing": "--max-processing", "visible-after": "--visible-after",
	"absence-is-proof": "--absence-is-proof", "timeout": "--timeout", "body": "--body", "url": "--post", "path": "--post", "key-header": "--key-header", "reason": "--reason",
}

// explain is the sentence that is printed for err, with which cmd ended; empty if
// all is said.
func (sh *shell) explain(cmd *cobra.Command, err error) string {
	var input *semel.InputError
	var asked *semel.NotAskedError
	switch {
	case errors.As(err, new(*outcomeError)):
		return ""
	case errors.As(err, &input):
		named := *input
		if flag, ok := flagOf[input.Field]; ok {
			named.Field = flag
		}
		return visible(named.Error())
	case errors.As(err, &asked) && errors.Is(err, semel.ErrRestored):
		return visible(fmt.Sprintf("%v\nThis call sent nothing.", asked.Err))
	case errors.As(err, &asked):
		return visible(fmt.Sprintf("%v\nThis call sent nothing. Earlier calls may have: run the same command again, under the same key.", asked.Err))
	}
	text := visible(err.Error())
	if !errors.As(err, new(*commandError)) && !errors.As(err, new(*usageError)) {
		text += "\nSee: " + cmd.CommandPath() + " --help" // the parser names no cure
	}
	return text
}
