// Command semel performs consequential actions that are safe to retry.
//
// Package main is wiring: it reads flags, opens the store, the spool and the
// connections, hands them to the engine and prints what the engine says. What
// is safe to do is decided by package semel alone.
//
// stdout carries data, stderr carries messages. The exit code is the outcome:
// see "semel help".
package main

import (
	"fmt"
	"os"
	"runtime/debug"
)

func main() { os.Exit(run(osShell(), os.Args[1:])) }

// run performs one invocation and returns its exit code.
func run(sh *shell, args []string) (code int) {
	defer func() {
		if r := recover(); r != nil {
			fmt.Fprintf(sh.err, "semel: this is a bug in Semel, please report it with the lines below: %v\n"+
				"What was sent, if anything, is on record: semel op list\n\n%s", r, debug.Stack())
			code = exitBug
			sh.printError(args, fmt.Sprintf("this is a bug in Semel: %v", r), code)
		}
	}()
	root := newRoot(sh)
	root.SetArgs(args)
	cmd, err := root.ExecuteC()
	if err == nil {
		return exitCompleted
	}
	code = codeOf(err)
	if told := sh.explain(cmd, err); told != "" {
		fmt.Fprintf(sh.err, "semel: %s\n", told)
		sh.printError(args, told, code)
	}
	return code
}
