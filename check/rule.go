package check

import (
	"slices"

	"github.com/semel-dev/semel/workflowfile"
)

// Rule explains a code.
type Rule struct {
	Code workflowfile.Code
	// Severity is the gravest that it is found with.
	Severity workflowfile.Severity
	// Title says in a few words what is wrong, Help why that matters, and Fix
	// how to mend it.
	Title, Help, Fix string
	// Acceptable: a step may accept it for a reason.
	Acceptable bool
}

// RuleOf explains one code; ok is false for a code that there is not.
func RuleOf(code workflowfile.Code) (r Rule, ok bool) {
	i := slices.IndexFunc(Rules(), func(r Rule) bool { return r.Code == code })
	if i < 0 {
		return Rule{}, false
	}
	return Rules()[i], true
}

// Rules lists all codes: first those of risks, then those of files that cannot
// be used.
func Rules() []Rule {
	const (
		wrong = workflowfile.SeverityError
		risky = workflowfile.SeverityWarning
	)
	all := []Rule{
		{
			workflowfile.CodeRelative, wrong, "A change by an amount may be counted twice",
			"After a lost answer the value does not tell whether the change is in it. Sent again, it counts again.",
			"Set the value that it shall have, or use a key that the destination enforces, or a transaction.", true,
		},
		{
			workflowfile.CodeContradiction, wrong, "Sent again, it would happen again",
			"A charge, a mail or a new order is another one each time. Protection absolute or commutes has it sent again after a lost answer, with no key that anybody looks at.",
			"Use a key that the destination enforces, or a lookup, or protection none. Where the same request leaves one effect however often it is made, say kind: absolute.", true,
		},
		{
			workflowfile.CodeWeakKey, risky, "A key that two pieces of work can share",
			"Two orders of one customer over one amount on one day are two orders. Under one key the second is never done, and nobody notices.",
			"Use the number of the invoice or order, or a key that is minted with it.", true,
		},
		{
			workflowfile.CodeKey, wrong, "A key that does not name the work",
			"A key must be the same for the same work, whenever it is asked for, and another for other work.",
			"Use inputs, the item, or run.key.", true,
		},
		{
			workflowfile.CodeUnstableKey, wrong, "A key that differs from try to try",
			"A key made of the time, of chance or of the run's id makes each try another piece of work, which acts again.",
			"Make it of what names the work, or keep what was computed with semel.Compute.", true,
		},
		{
			workflowfile.CodeSecretKey, wrong, "A secret in a key",
			"Keys are stored, shown in lists and sent to the destination.", "Name the work instead.", true,
		},
		{
			workflowfile.CodeRetry, risky, "Tried again where no repeat is recognised",
			"A further attempt after a known failure is as safe as the destination's word that nothing happened. It knows no key and cannot be asked.",
			"Leave retry out, or use a destination that knows a key or can be asked.", true,
		},
		{
			workflowfile.CodeAfterWait, risky, "Tried again after a wait, where no repeat is recognised",
			"As unprotected_retry, but hours or days after somebody started the run, when nobody is looking.",
			"Leave retry out, or put the step before the wait, or use a destination that knows a key or can be asked.", true,
		},
		{
			workflowfile.CodeWindow, risky, "A key that is forgotten before a person looks",
			"The destination knows a key for its window. When all attempts are made and a person comes in the morning, the request can only be sent again inside it.",
			"Declare a lookup, or the window that the destination grants, or see to it that somebody looks sooner.", true,
		},
		{
			workflowfile.CodeRetryWindow, risky, "Attempts that come after the key is forgotten",
			"Semel sends nothing again once the destination may have forgotten the key. Attempts beyond that are never made.",
			"Make fewer attempts, or shorter pauses, or declare a lookup.", true,
		},
		{
			workflowfile.CodeTimeout, risky, "Waits less than the destination may take",
			"A success that is slow becomes an outcome that nobody knows.", "Wait as long as max_processing, or longer.", true,
		},
		{
			workflowfile.CodeOwner, risky, "Left to a person, and nobody is named",
			"An outcome that only a person can settle waits for as long as nobody is told.", "Add owner to the workflow or to the connection.", true,
		},
		{
			workflowfile.CodeExpires, wrong, "An approval that ends before it is used",
			"An approval holds for a time. What is sent after that is not approved, so it is not sent.",
			"Approve after the wait, or let the approval hold longer.", true,
		},
		{
			workflowfile.CodeApproval, risky, "An approval that does not cover what is sent",
			"An approval is for one exact request. Another request, or the same kind of request elsewhere in the workflow, is not covered by it.",
			"Approve exactly what is sent, wherever it is sent.", true,
		},
		{
			workflowfile.CodeTwoEffects, risky, "One step with two effects",
			"One outcome cannot tell that the first effect happened and the second did not, and a retry repeats both.",
			"Make two steps of it, each with a key of its own.", true,
		},
		{
			workflowfile.CodeStatusNotes, risky, "A change of a value that tells somebody, too",
			"Setting a value may be repeated. The message that goes with it may not.",
			"Set the value without it, and send the message in a step of its own.", true,
		},
		{
			workflowfile.CodeDelays, risky, "A lookup that proves nothing",
			"Not found means nothing while the request may still be under way, or its effect cannot be seen yet.",
			"Declare max_processing, visible_after and absence_is_proof, as the destination promises or as they were measured.", true,
		},
		{
			workflowfile.CodeLookup, wrong, "A lookup that may find another one's effect",
			"What a lookup finds counts as done. If it can find what another request did, this one is never made, and nobody notices.",
			"Look up by {key}, {destination_key}, or a member of the body that names the work.", true,
		},
		{
			workflowfile.CodeSingleWriter, risky, "A late write over somebody else's",
			"After a lost answer the value is set again. If somebody has set another one meanwhile, that is gone.",
			"Send the version that it replaces, such as if_match, or accept this and say who the only writer is.", true,
		},
		{
			workflowfile.CodeDefer, wrong, "An effect of a deferred function",
			"A deferred function runs however the workflow ends: after its last step, after a failure, and after a panic.",
			"Call the step where it belongs.", true,
		},
		{
			workflowfile.CodeSharedKey, wrong, "Two steps under one key",
			"The same key is the same work: one of the two is made, and the other gets its answer. Where they ask for different things, the run is held.",
			"Give each of them a key of its own.", true,
		},
		{
			workflowfile.CodeUnstableSteps, wrong, "Other steps when a run goes on",
			"A run that goes on after a crash or a wait is gone through from its beginning. It must come to the same steps in the same order.",
			"Decide by inputs and answers alone, and sort what comes from a map.", false,
		},
		{
			workflowfile.CodeUnstableRequest, wrong, "Another request when a run goes on",
			"A run that goes on asks for its steps again. A request that is not the recorded one holds it.",
			"Keep the time, chance and ids with semel.Now, semel.Random or semel.Compute.", false,
		},
		{
			workflowfile.CodeWrongContext, wrong, "Steps at once on one Context",
			"A Context takes one step after the other, from the goroutine of its function or branch. A run that does otherwise is held.",
			"Use Each or Parallel, with the Context that they hand on.", false,
		},
		{
			workflowfile.CodeContract, wrong, "A contract that is refused",
			"What it declares is incomplete or contradicts itself. The step fails, and nothing is ever sent.",
			"Declare what the message names.", false,
		},
		{
			workflowfile.CodeNotReached, risky, "An action that no dry run came to",
			"What was not reached was not checked.", "Give an input and answers that lead to it.", true,
		},
		{workflowfile.CodeUnusedAccept, risky, "An acceptance of nothing", "What it accepts is not found any more.", "Leave it out.", false},
	}
	for _, file := range []struct {
		code        workflowfile.Code
		title, help string
		fix         string
	}{
		{workflowfile.CodeEffect, "An action that says nothing about repeating it", "Neither the step nor its connection says how it may be repeated.", "Add effect to the step, or protection to the connection."},
		{workflowfile.CodeConfiguration, "A problem of semel.yaml", "The file with the connections cannot be used.", "Mend what the message names."},
		{workflowfile.CodeNotChecked, "Something that nobody could tell", "The check had no semel.yaml, or no text or workflow that a step names.", "Check it together with semel.yaml, or name the workflow in check.Options.Children."},
		{workflowfile.CodeReference, "A name that leads nowhere", "It names what does not exist, or not yet.", "Mend the name, or move the step."},
		{workflowfile.CodeType, "An expression of the wrong type", "It cannot give what is needed there.", "Convert it."},
		{workflowfile.CodeField, "An unknown member", "There is no member of this name.", "Mend the name, or leave it out."},
		{workflowfile.CodeMissing, "A missing member", "A required member is not there, or is empty.", "Add it."},
		{workflowfile.CodeDuplicate, "Said twice", "One of the two would be ignored.", "Keep one."},
		{workflowfile.CodeValue, "A value outside what is accepted", "The member does not take this value.", "Use one that it takes."},
		{workflowfile.CodeStructure, "Another structure than expected", "A mapping stands where a list belongs, or the like.", "Write it as the message says."},
		{workflowfile.CodeAmbiguous, "YAML readers disagree", "One reads a number or a truth value, another a text.", "Put it in quotes if it is a text."},
		{workflowfile.CodeYAML, "YAML with a surprise", "A tag, an anchor or a cut comment changes what the file says.", "Write it plainly."},
		{workflowfile.CodeSyntax, "Not YAML, or not CEL", "The file or an expression cannot be read.", "Mend it where the message points."},
	} {
		severity := wrong
		if file.code == workflowfile.CodeNotChecked {
			severity = risky
		}
		all = append(all, Rule{Code: file.code, Severity: severity, Title: file.title, Help: file.help, Fix: file.fix})
	}
	return all
}
