// Package check says what could go wrong with a workflow before it runs. It
// sends nothing, opens nothing and waits for nothing.
//
// A [Report] answers seven questions for each step with an effect, in words for
// somebody who does not read code: what it does, what names it, what happens if
// two arrive at once, where the evidence is, what happens if it stops between
// the effect and its record, what the limits are, and how a person recovers.
// The answers follow the rules that the engine follows: what becomes of an
// interrupted step is what [semel.Decide] says.
//
// Beside them stand findings: a code that is stable, how bad it is, where, what
// is wrong and how to mend it. [Rules] explains the codes. A finding that is
// known and wanted is accepted with a reason; it is still shown, with the
// reason, and no longer counts.
//
// [File] checks a workflow that is a YAML file, from its text alone. [Workflow]
// checks one that is written in Go, from dry runs that record every step and
// perform none.
//
// # What is not seen
//
// A check reads declarations: a connection that promises a window of a day is
// believed. That a destination keeps its promise shows only when it is asked.
// Whether a request has a second effect is visible in its names and members
// alone. A dry run follows the path that its input and its answers lead to; an
// action that it does not come to is a finding. Code that depends on something
// else than its input and its steps is found where a few dozen dry runs differ.
package check
