package check

import (
	"time"

	"github.com/semel-dev/semel/workflowfile"
)

// approvalExpires: an approval that ends before the request can leave is asked
// for in vain, and one that ends during recovery leaves it to a person.
func approvalExpires(_ *workflow, e *effect) (Finding, bool) {
	if e.approval == nil || e.approval.ask.Valid == 0 {
		return Finding{}, false
	}
	const fix = "approve after the wait, or let it hold longer"
	valid := e.approval.ask.Valid
	var least, most time.Duration
	endless := ""
	for _, p := range e.approval.between {
		least, most = least+p.least, most+p.most
		if p.most == 0 {
			endless = p.step
		}
	}
	switch {
	case least >= valid:
		return found(workflowfile.CodeExpires, workflowfile.SeverityError, fix,
			"the approval of step %s holds for %s, but the waits after it take %s: it is over before anything is sent", e.path, span(valid), span(least))
	case endless != "":
		return found(workflowfile.CodeExpires, workflowfile.SeverityWarning, fix,
			"the approval of step %s holds for %s, but the wait %s after it may take longer", e.path, span(valid), endless)
	case most >= valid:
		return found(workflowfile.CodeExpires, workflowfile.SeverityWarning, fix,
			"the approval of step %s holds for %s, but the waits after it may take %s", e.path, span(valid), span(most))
	case e.contract.Protection.Repeatable() && most+e.automatic() > valid:
		return found(workflowfile.CodeExpires, workflowfile.SeverityWarning, "let it hold longer, or make fewer attempts",
			"the approval of step %s holds for %s, but its attempts may take %s: the last ones are not allowed any more, and a person is asked", e.path, span(valid), span(e.automatic()))
	}
	return Finding{}, false
}

// approvalNotCovering: an approval is for one exact request.
func approvalNotCovering(_ *workflow, e *effect) (Finding, bool) {
	if e.uncovered == "" {
		return Finding{}, false
	}
	return found(workflowfile.CodeApproval, workflowfile.SeverityWarning, "approve exactly what is sent, wherever it is sent", "step %s: %s", e.path, e.uncovered)
}
