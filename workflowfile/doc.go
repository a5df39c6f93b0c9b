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
// plain data, with every expression compiled.
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
