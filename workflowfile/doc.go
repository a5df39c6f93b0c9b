// Package workflowfile reads a workflow from a YAML file: one file, one
// workflow.
//
//	name: nightly_billing
//	version: 1
//	owner: billing-ops
//	on:
//	  schedule: {cron: "0 2 * * *", zone: Europe/Berlin, missed: once}
//	inputs:
//	  day: {type: string, format: date, default: "${{ tick.date }}"}
//	steps:
//	  - id: due
//	    uses: sql.query
//	    with: {at: ledger, file: due.sql, args: ["${{ inputs.day }}"]}
//	  - id: bill
//	    each: {in: steps.due.rows, as: invoice, key: invoice.id, at_once: 20}
//	    steps:
//	      - id: charge
//	        uses: payments.charge
//	        with: {customer: "${{ invoice.customer }}", amount: "${{ invoice.amount }}"}
//	        effect: {key: "invoice-${{ invoice.id }}-charge"}
//
// Reading is strict, and reports everything that is wrong at once, each with
// its place and its cure, before anything runs. The result is a [Definition]:
// plain data, with every expression compiled. [Load] reads a file, and [Parse]
// its content.
//
// A step may accept a risk that package check finds, for a reason. That changes
// nothing about a run.
//
// A step on a database names a file with its statement, which is sent as it is:
// what differs goes into args. with.template of any other step names a text
// with ${{ }} in it. Both are in the directory of the workflow file or below,
// are read and checked with it, and are part of its digest.
//
// # Running
//
// [Definition.Workflow] makes a workflow for a worker, and [Definition.New] asks
// for a run. One Go function interprets every definition, with the records that
// a workflow written in Go has:
//
//   - Inputs are resolved once. A run that an event starts has its defaults
//     alone. Inputs that do not fit fail the run before anything is done.
//   - A step that if leaves out is not in steps: ask with has(steps.ID).
//   - The result of a step that acts or reads is what the destination answered:
//     JSON with every digit, a text, or null. rows is the answer's list of rows.
//     An answer that cannot be read holds the run: the effect is there.
//   - The result of an each has total and failed, of an approval by and reason,
//     of a wait the event, or null after its timeout.
//   - A step without effect.key is named by the key of the run and its path.
//   - effect.on_unknown: ask leaves an unknown outcome to a person at once, with
//     neither resend nor lookup.
//   - approve: {step: LATER} asks for the exact request that the later step will
//     make; if that one turns out to be another, the run is held.
//   - An expression that fails, a refused approval and a failure whose attempts
//     are used up end the run with FILE:LINE and the step. What is unknown
//     never does.
//   - on_failure runs after a known failure, and the run fails or is held all
//     the same. It runs once for a run: one that a person retries tells nobody a
//     second time. The failed step can be retried afterwards.
//
// A run keeps the definition it began with. A file that changed without a new
// version holds its runs, and [Diff] says what changed.
//
// # Expressions
//
// An expression is CEL. if, each.in and each.key hold one as it is; any other
// value holds it between ${{ and }}. A value that is one whole
// ${{ }} keeps its type; among other text it becomes part of that text, which
// null, a list or a mapping cannot.
//
//	inputs.NAME               what the run was started with
//	steps.ID.result, .rows    what an earlier step of this or an outer list brought
//	NAME                      the item, as each.as calls it
//	run.key, run.workflow     never run.id: it differs each time
//	tick.date, .at, .label    of the schedule
//	event.id, .name, .data    of the event that started the run
//	failure.step, .message    in on_failure
//
// Numbers are exact. A number that is only handed on keeps its digits, and
// decimals and large integers are computed with exactly; a result without an
// exact decimal is an error. Only double() brings floating point.
package workflowfile
