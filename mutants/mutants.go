package main

var mutants = []mutant{
	{
		"timeout is a failure", "engine/attempt.go",
		`ev = semel.Event{Kind: semel.EvLost, Reason: fmt.Sprintf("the destination answered`,
		`ev = semel.Event{Kind: semel.EvRefused, Reason: fmt.Sprintf("the destination answered`,
		"./engine", "TestNonsenseIsLost",
	},
	{
		"a refused resend settles failed", "transition.go",
		`{From: InProgress, On: EvRefused, When: "by the current attempt, an older one or an incident open", To: Unknown,`,
		`{From: InProgress, On: EvRefused, When: "by the current attempt, an older one or an incident open", To: Failed,`,
		"./engine", "TestRefusedResendStaysUnknown",
	},
	{
		"the fence is dropped", "engine/attempt.go",
		`case h.fenced.Load():`, `case false:`,
		"./engine", "TestFencedWorkerSendsNothing",
	},
	{
		"send_by is ignored", "engine/attempt.go",
		`case over(h.sendBy, h.e.clock()) || h.until.over(h.e.clock()):`, `case false:`,
		"./engine", "TestTooLateToSend",
	},
	{
		"a cancel request is ignored before sending", "engine/attempt.go",
		`case h.cancel.Load():`, `case false:`,
		"./engine", "TestCancelBeforeSending",
	},
	{
		"one attempt sends twice", "engine/attempt.go",
		`case h.begun.Swap(true):`, `case h.begun.Swap(true) && false:`,
		"./engine", "TestOneAttemptBeginsOnce",
	},
	{
		"a resend after the window", "decide.go",
		"\tcase Keyed:\n\t\tif !now.Before(o.WindowEnd(c)) {", "\tcase Keyed:\n\t\tif false {",
		".", "TestMoveOfAnUnknownOutcome",
	},
	{
		"the window is anchored on the last attempt", "apply.go",
		`if o.KeySince.IsZero() {`, `if true {`,
		"./engine", "TestWindowIsAnchoredOnTheFirstClaim",
	},
	{
		"early absence is proof", "transition.go",
		`!ev.AskedAt.IsZero() && !ev.AskedAt.Before(at)`, `!ev.AskedAt.IsZero() && !at.IsZero()`,
		"./engine", "TestAbsenceNeedsTime",
	},
	{
		"an incident does not block the claim", "engine/do.go",
		`case o.Incident != "":`, `case false:`,
		"./engine", "TestEffectAfterFailureIsAnIncident",
	},
	{
		"a retry sends the caller's new bytes", "engine/attempt.go",
		"s := &semel.Send{\n\t\tOperation: &o,", "o.Request = p.call.Request\n\ts := &semel.Send{\n\t\tOperation: &o,",
		"./engine", "TestKeyedIsSentAgainUnderTheSameKey",
	},
	{
		"a key per attempt", "engine/attempt.go",
		`DestinationKey: o.DestinationKey(), Withheld: p.call.Withheld,`,
		`DestinationKey: o.DestinationKey() + fmt.Sprint(o.Attempt), Withheld: p.call.Withheld,`,
		"./engine", "TestKeyedIsSentAgainUnderTheSameKey",
	},
	{
		"late results are ignored", "engine/attempt.go",
		`if _, _, err := p.e.conclude(o, evidence(ev, o.Attempt, p.e.opt.Name)); err != nil {`,
		`if err := error(nil); err != nil {`,
		"./engine", "TestLateAnswerSettles",
	},
	{
		"another fingerprint is let through", "engine/do.go",
		`if err != nil || fp != o.Fingerprint {`, `if err != nil || fp == o.Fingerprint && false {`,
		"./engine", "TestConflictNamesTheFields",
	},
	{
		"an outcome that cannot be recorded is dropped", "engine/record.go",
		`if err == nil || e.opt.Spool == nil {`, `if true {`,
		"./engine", "TestOutcomeThatCannotBeRecordedIsSpooled",
	},
	{
		"a claim that cannot be confirmed is forgotten", "engine/attempt.go",
		"if errors.Is(err, semel.ErrUnconfirmed) {\n\t\tp.disown", "if false {\n\t\tp.disown",
		"./engine", "TestUnconfirmedClaimSendsNothing",
	},
	{
		"a lapsed lease reads as in progress", "operation.go",
		`if o.State == InProgress && !now.Before(o.LeaseUntil) {`, `if false {`,
		"./engine", "TestDeadWorkerLeavesAnUnknown",
	},
	{
		"credentials that are not there are not missed", "engine/do.go",
		`if p.sent || !p.canSend(&o) {`, `if p.sent {`,
		"./engine", "TestWithheldHeadersAreNeeded",
	},
	{
		"a second settlement overwrites the first", "transition.go",
		`{From: Completed, On: EvJoined, To: Completed},`,
		"{From: Completed, On: EvJoined, To: Completed},\n\t{From: Completed, On: EvDidNotHappen, To: Failed},",
		".", "TestEvidenceInEverySituation",
	},
	{
		"SQLite takes a stale change", "store/sqlite/change.go",
		"where id = ?1\n\t\t\tand version = ?2", "where id = ?1\n\t\t\tand ?2 = ?2",
		"./store/sqlite", "TestConformance",
	},
	{
		"PostgreSQL takes a stale change", "store/postgres/commit.go",
		`and o.version = $2::integer`, `and $2::integer = $2::integer`,
		"./store/postgres", "TestConformance",
	},
	{
		"PostgreSQL completes what is stale", "store/postgres/commit.go",
		`and o.version = 1`, `and o.version > 0`,
		"./store/postgres", "TestConformance",
	},
}
