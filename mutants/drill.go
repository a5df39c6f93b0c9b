package main

// ofDrill are engines that are wrong in one way each, as engines are. The
// drill must tell a story of each: the tests of the engine are not asked.
var ofDrill = []wrong{
	{
		"drill 1: an effect begins although its claim was not committed", "unprotected",
		[]edit{{
			"engine/branch.go",
			"if answer.ClaimErr != nil {\n\t\treturn change.Before, answer.ClaimErr", "if answer.ClaimErr != nil {\n\t\treturn change.After, nil",
		}},
	},
	{
		"drill 1b: the claim is committed after the effect", "unprotected",
		[]edit{{
			"engine/attempt.go", "\tclaimed, err := p.commitClaim(patient, o, ev, change)\n",
			"\tif ev.Attempt == 1 {\n\t\tev := ev\n\t\tev.At = p.e.estimate()\n\t\tearly, _ := o.Apply(ev)\n\t\tanswer := p.call.Destination.Send(ctx, &semel.Send{Operation: &early, Attempt: 1, DestinationKey: early.DestinationKey(), Begin: func() error { return nil }})\n\t\tc := *p.call\n\t\tc.Destination = sentBefore{answer}\n\t\tp.call = &c\n\t}\n\tclaimed, err := p.commitClaim(patient, o, ev, change)\n",
		}, {
			"engine/attempt.go", "// held is a claim in the hands", "type sentBefore struct{ ev semel.Event }\n\nfunc (s sentBefore) Send(context.Context, *semel.Send) semel.Event { return s.ev }\n\n// held is a claim in the hands",
		}},
	},
	{
		"drill 2: an answer that did not come is a failure", "unprotected",
		[]edit{{
			"engine/attempt.go", "\tev.Attempt, ev.By = attempt, by\n\treturn ev", "\tif ev.Kind == semel.EvLost {\n\t\tev.Kind = semel.EvRefused\n\t}\n\tev.Attempt, ev.By = attempt, by\n\treturn ev",
		}},
	},
	{
		"drill 3: a refused resend settles failed", "keyed",
		[]edit{{
			"transition.go", `{From: InProgress, On: EvRefused, When: "by the current attempt, an older one or an incident open", To: Unknown,`,
			`{From: InProgress, On: EvRefused, When: "by the current attempt, an older one or an incident open", To: Failed,`,
		}},
	},
	{
		"drill 4: the refusal of an older attempt settles failed", "keyed",
		[]edit{{
			"transition.go", `{From: InProgress, On: EvRefused, When: "by an older attempt", To: InProgress},`, `{From: InProgress, On: EvRefused, When: "by an older attempt", To: Failed},`,
		}},
	},
	{
		"drill 5: a worker that lost its claim sends on", "lookup",
		[]edit{{"engine/attempt.go", "case h.fenced.Load():\n\t\treturn errFenced", "case false:\n\t\treturn errFenced"}, {
			"engine/attempt.go", `case over(h.sendBy, h.e.clock()) || h.until.over(h.e.clock()):`, `case false:`,
		}, {"engine/act.go", "case b.x.fenced.Load(), b.poisoned.Load():\n\t\treturn errFenced", "case false:\n\t\treturn errFenced"}},
	},
	{
		"drill 6: an open incident does not block a claim", "keyed",
		[]edit{{"decide.go", `if o.Incident != "" {`, `if o.Incident == "no" {`}, {
			"transition.go", `return o.Incident == "" && !o.Expired`, `return !o.Expired`,
		}, {"store/sqlite/change.go", "case o.Incident != \"\":\n\t\treturn int64(never)", "case false:\n\t\treturn int64(never)"}},
	},
	{
		"drill 7: the window is anchored on the last attempt", "keyed",
		[]edit{{"apply.go", `if o.KeySince.IsZero() {`, `if true {`}},
	},
	{
		"drill 8: a resend after the window", "keyed",
		[]edit{{"operation.go", `return o.KeySince.Add(c.Window).Add(-c.Margin()).Add(-c.processing())`, `return o.KeySince.Add(1000 * c.Window)`}},
	},
	{
		"drill 9: absence is trusted although the request may be sent later", "lookup",
		[]edit{{"operation.go", `sent = a.SendBy.Add(c.writeTimeout())`, `sent = a.ClaimedAt`}},
	},
	{
		"drill 10: an early \"not found\" is proof", "lookup",
		[]edit{{"transition.go", `!ev.AskedAt.IsZero() && !ev.AskedAt.Before(at)`, `!ev.AskedAt.IsZero() && !at.IsZero()`}},
	},
	{
		"drill 10b: absence is trusted before an effect is visible", "lookup",
		[]edit{{"operation.go", `return at.Add(c.MaxProcessing).Add(c.VisibleAfter).Add(c.skew()), true`, `return at.Add(c.MaxProcessing).Add(c.skew()), true`}},
	},
	{
		"drill 10c: absence is trusted while a request may still be processed", "lookup",
		[]edit{{"operation.go", `return at.Add(c.MaxProcessing).Add(c.VisibleAfter).Add(c.skew()), true`, `return at.Add(c.VisibleAfter).Add(c.skew()), true`}},
	},
	{
		"drill 12: a destination key per attempt", "keyed",
		[]edit{{
			"engine/attempt.go", `DestinationKey: o.DestinationKey(), Withheld: p.call.Withheld,`,
			`DestinationKey: o.DestinationKey() + fmt.Sprint(o.Attempt), Withheld: p.call.Withheld,`,
		}},
	},
	{
		"drill 13: a retry sends the caller's new bytes", "retry",
		[]edit{{"engine/attempt.go", "s := &semel.Send{\n\t\tOperation: &o,", "o.Request = p.call.Request\n\ts := &semel.Send{\n\t\tOperation: &o,"}},
	},
	{
		"drill 14: a claim whose acknowledgement is lost is read as made", "unprotected",
		[]edit{{
			"engine/branch.go", "if answer.ClaimErr != nil {\n\t\treturn change.Before, answer.ClaimErr",
			"if errors.Is(answer.ClaimErr, semel.ErrUnconfirmed) {\n\t\treturn change.After, nil\n\t}\n\tif answer.ClaimErr != nil {\n\t\treturn change.Before, answer.ClaimErr",
		}},
	},
	{
		"drill 14b: an outcome whose acknowledgement is lost is read as absent", "unprotected",
		[]edit{{
			"engine/branch.go", `conclude(p.before, p.event); err`,
			`conclude(p.before, semel.Event{Kind: semel.EvRefused, Attempt: p.event.Attempt, Unsent: true}); err`,
		}},
	},
	{
		"drill 15: a claim does not look whether the run must stop", "unprotected",
		[]edit{{"store/sqlite/run_commit.go", `case h.cancel || h.pausedBy.Valid:`, `case h.pausedBy.Valid:`}},
	},
	{
		"drill 16: an approval is read before the claim, and not in it", "approval",
		[]edit{{"store/sqlite/change.go", `if err := c.approved(w); err != nil {`, `if err := error(nil); err != nil {`}},
	},
	{
		"drill 17: late results are ignored", "unprotected",
		[]edit{{"engine/attempt.go", `if _, _, err := p.e.conclude(o, evidence(ev, o.Attempt, p.e.opt.Name)); err != nil {`, `if err := error(nil); err != nil {`}},
	},
	{
		"drill 18: the time to send is not looked at before sending", "approval",
		[]edit{{"engine/attempt.go", `case over(h.sendBy, h.e.clock()) || h.until.over(h.e.clock()):`, `case h.until.over(h.e.clock()):`}},
	},
	{
		"drill 19: the outcome before is dropped when the next claim fails", "unprotected",
		[]edit{{"engine/branch.go", `if answer.OutcomeErr != nil {`, `if answer.OutcomeErr != nil && c.Claim == nil {`}},
	},
	{
		"drill 20: what a run has recorded is not read when it goes on", "random",
		[]edit{{"engine/execution.go", `if x.run.Attempt == 1 && x.run.Crashes == 0 {`, `if true {`}},
	},
	{
		"drill 21: an event that came before the run is lost", "event",
		[]edit{{"store/sqlite/event.go", "\t\t\tand at <= ?4\n", "\t\t\tand at <= ?4\n\t\t\tand at > (select min(created_at) from run where workflow = ?3)\n"}},
	},
	{
		"drill 22: retention forgets an operation altogether", "unprotected",
		[]edit{{"store/sqlite/expire.go", "\t\tupdate operation\n\t\tset body = null,\n\t\t\tfirst = ?2,\n\t\t\tsecond = ?3\n\t\twhere id = ?1`", "\t\tdelete from operation\n\t\twhere id = ?1\n\t\t\tand coalesce(?2, ?3, '') is not null`"}},
	},
	{
		"drill 23: what nobody knows is handed to the workflow as a failure", "unprotected",
		[]edit{{
			"engine/act.go", "case semel.StatusUnknown, semel.StatusInProgress:\n",
			"case semel.StatusUnknown:\n\t\treturn rec, &semel.FailedError{Path: p.path, Reason: o.Reason, Operation: *o}\n\tcase semel.StatusInProgress:\n",
		}},
	},
	{
		"drill 24: a store that does not answer is handed to the workflow as a failure", "unprotected",
		[]edit{{"engine/act.go", "case err != nil:\n\t\tb.x.abort(err)\n\t\tb.exit()", "case err != nil:\n\t\treturn rec, err"}},
	},
	{
		"drill 25: the first item of a list is left out after a crash", "each",
		[]edit{{"engine/each.go", `if recorded && (rec.Outcome == semel.StepCompleted`, `if i == 0 && x.run.Crashes > 0 || recorded && (rec.Outcome == semel.StepCompleted`}},
	},
}
