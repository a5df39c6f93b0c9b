package main

// ofRuns breaks what is promised of runs. Where the rule lives in SQL, each
// store is broken.
var ofRuns = []mutant{
	{
		"an effect begins before its claim is acknowledged", "engine/branch.go",
		"c.Claim = &change\n\tanswer := b.commit(ctx, c)",
		"c.Claim = &change\n\tanswer := semel.RunCommitted{Claim: change.After}\n\tgo b.commit(ctx, c)",
		"./engine", "TestAStepBeginsAfterItsClaim/sqlite",
	},
	{
		"an effect begins although its claim failed", "engine/branch.go",
		"if answer.ClaimErr != nil {\n\t\treturn change.Before, answer.ClaimErr", "if answer.ClaimErr != nil {\n\t\treturn change.After, nil",
		"./engine", "TestAStepBeginsAfterItsClaim/sqlite",
	},
	{
		"records of steps are not in the next claim", "engine/branch.go",
		"c := b.take()\n\tc.Claim = &change", "c := semel.RunCommit{RunFence: b.x.fence()}\n\tc.Claim = &change",
		"./engine", "TestAStepBeginsAfterItsClaim/sqlite",
	},
	{
		"a suspension drops the outcome before it", "engine/branch.go",
		`c.Next = n`, `c.Outcome, c.Next = nil, n`,
		"./engine", "TestAnswerIsKeptHoweverTheRunEnds/sqlite",
	},
	{
		"a worker that lost its run drops the outcome", "engine/branch.go",
		`if c := b.take(); c.Outcome != nil {`, `if c := b.take(); c.Outcome != nil && !b.x.fenced.Load() {`,
		"./engine", "TestAnswerIsKeptHoweverTheRunEnds/sqlite",
	},
	{
		"a stop is not noticed before sending: cancel", "engine/act.go",
		`case b.x.cancel.Load():`, `case false:`,
		"./engine", "TestStopBeforeSending/sqlite",
	},
	{
		"a stop is not noticed before sending: pause", "engine/act.go",
		`case b.x.pause.Load():`, `case false:`,
		"./engine", "TestStopBeforeSending/sqlite",
	},
	{
		"an effect that commutes and was stopped has failed", "engine/act.go",
		`case ev.Kind == semel.EvCancelled, ev.Unsent:`, `case ev.Kind == semel.EvCancelled:`,
		"./engine", "TestStopBeforeSending/sqlite",
	},
	{
		"a suspended branch begins another step", "engine/branch.go",
		`if b.poisoned.Load() {`, `if false {`,
		"./semeltest", "TestHabitsThatAreHarmless",
	},
	{
		"what a suspended branch returns counts", "engine/branch.go",
		`case b.poisoned.Swap(true):`, `case false:`,
		"./semeltest", "TestHabitsThatAreHarmless",
	},
	{
		"a misused Context is not held", "engine/branch.go",
		`if !b.busy.CompareAndSwap(nil, &path) {`, `if !b.busy.CompareAndSwap(nil, &path) && false {`,
		"./semeltest", "TestMisuseIsHeld",
	},
	{
		"a failure that the code dealt with is tried again", "engine/act.go",
		`if x.later(b.path) || p.call`, `if p.call`,
		"./engine", "TestAFailureThatTheCodeDealtWithStays/sqlite",
	},
	{
		"a person's retry has no attempts of its own", "engine/act.go",
		`if x.run.RetriedAt.After(asked) {`, `if false {`,
		"./engine", "TestRetriesAreForKnownFailures/sqlite",
	},
	{
		"a sleep begins anew", "engine/wait.go",
		`waited && was.Kind == semel.WaitTime {`, `waited && was.Kind == "" {`,
		"./engine", "TestRunPerformsItsStepsOnce/sqlite",
	},
	{
		"the time for an event begins anew", "engine/wait.go",
		`waited && was.Kind == semel.WaitEvent {`, `waited && was.Kind == "" {`,
		"./engine", "TestEventsWakeRuns/sqlite",
	},
	{
		"SQLite gives an event twice", "store/sqlite/event.go",
		`where event = event.seq and workflow = ?3)`, `where event = event.seq and workflow = ?3 and false)`,
		"./store/sqlite", "TestConformanceRuns/Events",
	},
	{
		"PostgreSQL gives an event twice", "store/postgres/event.go",
		`where taken.event_id = e.id and taken.workflow = $4::text)`, `where taken.event_id = e.id and taken.workflow = $4::text and false)`,
		"./store/postgres", "TestConformanceRuns/Events",
	},
	{
		"SQLite gives no event from before the wait", "store/sqlite/event.go",
		`and at <= ?4`, "and at <= ?4\n\t\t\tand at >= (select min(since) from wait where wait.event = event.name and wait.match = event.match)",
		"./engine", "TestEventsWakeRuns/sqlite",
	},
	{
		"PostgreSQL gives no event from before the wait", "store/postgres/event.go",
		"and not exists (\n    select from semel.event_taken as taken\n    where taken.event_id = e.id and",
		"and e.at >= (select min(w.since) from semel.wait as w where w.event = e.name and w.match = e.match)\n  and not exists (\n    select from semel.event_taken as taken\n    where taken.event_id = e.id and",
		"./engine", "TestEventsWakeRuns/postgres",
	},
	{
		"SQLite waits for what is settled", "store/sqlite/wait.go",
		`over, err = exists(ctx, s, newerOperation`, `_, err = exists(ctx, s, newerOperation`,
		"./store/sqlite", "TestConformanceRuns/WaitOperation",
	},
	{
		"SQLite waits for an event that is there", "store/sqlite/wait.go",
		`_, over, err = nextEvent(`, `_, _, err = nextEvent(`,
		"./store/sqlite", "TestConformanceRuns/(Events|EventLimit|WakeRace)$",
	},
	{
		"PostgreSQL waits for what is settled", "store/postgres/wait.go",
		`o.version > w.version`, `o.version < 0`,
		"./store/postgres", "TestConformanceRuns/WaitOperation",
	},
	{
		"PostgreSQL waits for an event that is there", "store/postgres/wait.go",
		`where w.run_id = r.id and w.kind = 'event'`, `where w.run_id = r.id and w.kind = 'none'`,
		"./store/postgres", "TestConformanceRuns/(Events|EventLimit|WakeRace)$",
	},
	{
		"PostgreSQL commits a batch in no order", "store/postgres/group.go",
		"slices.SortFunc(batch, byPlace)", "_ = slices.Clone(batch)",
		"./store/postgres", "TestBatchesDoNotDeadlock/susp",
	},
	{
		"PostgreSQL locks the operations of a batch in no order", "store/postgres/order.go",
		"bytes.Compare(a.there[:], b.there[:]))", "0)",
		"./store/postgres", "TestBatchesDoNotDeadlock/susp",
	},
	{
		"PostgreSQL renews leases while it waits for others", "store/postgres/run_claim.go",
		`fences, lease, " skip locked")`, `fences, lease, "")`,
		"./store/postgres", "TestBatchesDoNotDeadlock/renewals",
	},
	{
		"PostgreSQL wakes nobody for a batch", "store/postgres/group.go",
		"if s.wakes {", "if s.refused != nil {",
		"./store/postgres", "TestConformanceRuns/WakeOperation|TestNoLostWakeUp/operation",
	},
	{
		"SQLite takes the end of an older attempt", "store/sqlite/run_commit.go",
		"where id = ?\n\t\tand attempt = ?", "where id = ?\n\t\tand 0 < ?",
		"./store/sqlite", "TestConformanceRuns/RunFence",
	},
	{
		"PostgreSQL takes the end of an older attempt", "store/postgres/run_next.go",
		"where r.id = $1::uuid\n    and r.attempt = $2::integer", "where r.id = $1::uuid\n    and 0 < $2::integer",
		"./store/postgres", "TestConformanceRuns/RunFence",
	},
	{
		"PostgreSQL takes the claim of an older attempt", "store/postgres/guard.go",
		`and r.attempt = $%[2]d::integer`, `and 0 < $%[2]d::integer`,
		"./store/postgres", "TestConformanceRuns/RunFence",
	},
	{
		"PostgreSQL takes the step of an older attempt", "store/postgres/step.go",
		`and r.attempt = $2::integer`, `and 0 < $2::integer`,
		"./store/postgres", "TestConformanceRuns/RunFence",
	},
	{
		"SQLite claims for a run that was asked to stop", "store/sqlite/run_commit.go",
		`case h.cancel || h.pausedBy.Valid:`, `case false:`,
		"./store/sqlite", "TestConformanceRuns/RunOutcome",
	},
	{
		"PostgreSQL claims for a cancelled run", "store/postgres/guard.go",
		"\n      and r.cancel_asked is null", "",
		"./store/postgres", "TestConformanceRuns/RunOutcome",
	},
	{
		"PostgreSQL claims for a paused run", "store/postgres/guard.go",
		"\n      and r.paused_by is null", "",
		"./store/postgres", "TestConformanceRuns/RunOutcome",
	},
	{
		"SQLite claims under another request's approval", "store/sqlite/approval.go",
		`a.Covers(semel.ApprovalDigest(c.Before.Scope, c.Before.Key, c.Before.Fingerprint),`, `a.Covers(a.Digest,`,
		"./store/sqlite", "TestConformanceRuns/ApprovedClaim",
	},
	{
		"PostgreSQL claims under another request's approval", "store/postgres/guard.go",
		`and a.digest = $%[4]d::text`, `and $%[4]d::text <> ''`,
		"./store/postgres", "TestConformanceRuns/ApprovedClaim",
	},
	{
		"SQLite claims under an approval that has ended", "approval.go",
		` && (a.Until.IsZero() || now.Before(a.Until))`, ``,
		"./store/sqlite", "TestConformanceRuns/ApprovedClaim",
	},
	{
		"PostgreSQL claims under an approval that has ended", "store/postgres/guard.go",
		"\n      and (a.until is null or a.until > clock.now)", "",
		"./store/postgres", "TestConformanceRuns/ApprovedClaim",
	},
	{
		"a resend is due after the approval's end", "decide.go",
		`return !o.Unapproved && (o.ApprovedUntil.IsZero() || now.Before(o.ApprovedUntil))`, `return true`,
		"./cases", "TestC34ApprovalEndsBeforeAResend",
	},
	{
		"a stale approval covers", "engine/act.go",
		"if other == nil {\n\t\treturn nil", "if other == nil || true {\n\t\treturn nil",
		"./engine", "TestApprovalCoversOneExactRequest/sqlite",
	},
	{
		"an approval outlives the request that it was asked for", "engine/approve.go",
		`if a.Digest != digest {`, `if false {`,
		"./engine", "TestChangedRequestHoldsAtItsApproval/sqlite",
	},
	{
		"a recorded approval outlives its request", "engine/approve.go",
		`if rec.What != digest {`, `if false {`,
		"./engine", "TestChangedRequestHoldsAtItsApproval/sqlite",
	},
	{
		"a new step before recorded ones is executed", "engine/branch.go",
		`case len(skipped) > 0:`, `case false:`,
		"./semeltest", "TestRestartGoesOn",
	},
	{
		"steps that the code lost are not missed", "engine/execution.go",
		`if missed := x.missed(); len(missed) > 0 {`, `if missed := x.missed(); len(missed) < 0 {`,
		"./engine", "TestCodeThatLostAStepIsHeld/sqlite",
	},
	{
		"a list is made anew", "engine/each.go",
		"switch {\n\tcase !recorded:", "switch {\n\tcase true:",
		"./engine", "TestAListIsMadeOnce/sqlite",
	},
	{
		"failed items are not tried again", "engine/each.go",
		`rec.Outcome == semel.StepFailed && !x.retried(&rec)) {`, `rec.Outcome == semel.StepFailed) {`,
		"./engine", "TestAListIsMadeOnce/sqlite",
	},
	{
		"items that ended are executed again", "engine/each.go",
		`(rec.Outcome == semel.StepCompleted || rec.Outcome == semel.StepFailed && `, `(rec.Outcome == semel.StepFailed && `,
		"./engine", "TestAListIsMadeOnce/sqlite",
	},
	{
		"an item that kills workers is executed for ever", "engine/each.go",
		`if seen == suspect && rec.What == suspect {`, `if false {`,
		"./engine", "TestAnItemThatKillsWorkersIsHeld/sqlite",
	},
	{
		"a run that kills workers is executed for ever", "engine/execution.go",
		`case x.run.Crashes >= maxCrashes+2*x.suspects():`, `case false:`,
		"./engine", "TestARunThatKillsWorkersIsHeld/sqlite",
	},
	{
		"SQLite counts no deaths", "store/sqlite/run_claim.go",
		`crashes = crashes + ?2,`, `crashes = crashes + 0 * ?2,`,
		"./store/sqlite", "TestConformanceRuns/Crashes",
	},
	{
		"SQLite never forgets deaths", "store/sqlite/run_end.go",
		`crashes = 0,`, `crashes = crashes,`,
		"./store/sqlite", "TestConformanceRuns/Crashes",
	},
	{
		"PostgreSQL counts no deaths", "store/postgres/run_claim.go",
		`crashes = r.crashes + taken.lapsed::integer,`, `crashes = r.crashes,`,
		"./store/postgres", "TestConformanceRuns/Crashes",
	},
	{
		"PostgreSQL never forgets deaths", "store/postgres/run_next.go",
		`crashes = 0,`, `crashes = r.crashes,`,
		"./store/postgres", "TestConformanceRuns/Crashes",
	},
	{
		"a child with another input is shared", "engine/wait.go",
		`if fields := r.DiffInput(n.Input); len(fields) > 0 {`, `if fields := r.DiffInput(n.Input); len(fields) < 0 {`,
		"./engine", "TestChildOfAnotherInputIsHeld/sqlite",
	},
	{
		"SQLite shares a child with another input", "store/sqlite/wait.go",
		`if w.child.run.Fingerprint != w.child.fingerprint {`, `if false {`,
		"./store/sqlite", "TestConformanceRuns/ChildConflict",
	},
	{
		"PostgreSQL shares a child with another input", "store/postgres/run_next.go",
		`if existing && child.Fingerprint != b.fingerprint {`, `if existing && false {`,
		"./store/postgres", "TestConformanceRuns/ChildConflict",
	},
	{
		"a run key hides another input", "engine/start.go",
		`if existing && r.Fingerprint != fp {`, `if existing && r.Fingerprint != fp && false {`,
		"./engine", "TestRunPerformsItsStepsOnce/sqlite",
	},
	{
		"SQLite fires a tick twice", "store/sqlite/schedule.go",
		`and seen = ?3`, `and ?3 is not null`,
		"./store/sqlite", "TestConformanceRuns/Fire",
	},
	{
		"PostgreSQL fires a tick twice", "store/postgres/schedule.go",
		"and seen = $3::timestamptz\n  and not paused", "and $3::timestamptz is not null\n  and not paused",
		"./store/postgres", "TestConformanceRuns/Fire",
	},
	{
		"SQLite fires a paused schedule", "store/sqlite/schedule.go",
		"and seen = ?3\n\t\t\tand paused_by is null", "and seen = ?3",
		"./store/sqlite", "TestConformanceRuns/(Fire|Schedules)",
	},
	{
		"PostgreSQL fires a paused schedule", "store/postgres/schedule.go",
		"and seen = $3::timestamptz\n  and not paused", "and seen = $3::timestamptz",
		"./store/postgres", "TestConformanceRuns/(Fire|Schedules)",
	},
	{
		"every missed tick is made up for", "engine/trigger.go",
		`spec.Due(s.Seen, now, schedule.Missed(s.Missed), fireBatch)`, `spec.Due(s.Seen, now, "all", fireBatch)`,
		"./engine", "TestMissedTicksFollowTheirPolicy/sqlite",
	},
	{
		"a place is not given back", "engine/place.go",
		`s.keeper.Release(ctx, s.limit, s.holder)`, `s.keeper.Release(ctx, s.limit, semel.ID{})`,
		"./engine", "TestStepWaitsForAPlace/sqlite",
	},
	{
		"SQLite has places without end", "store/sqlite/limit.go",
		`err != nil || taken < a.AtOnce {`, `err != nil || taken >= 0 {`,
		"./store/sqlite", "TestConformanceRuns/AtOnce",
	},
	{
		"another definition is executed under the same version", "engine/execution.go",
		`case x.def == nil || x.run.Definition != x.def.Digest:`, `case x.def == nil:`,
		"./workflowfile", "TestEditedFileHoldsTheRun/sqlite",
	},
	{
		"an unknown outcome is an error", "engine/act.go",
		`b.suspend(b.x.operationWait(p.path, o))`, `return rec, &semel.FailedError{Path: p.path, Reason: o.Reason, Operation: *o}`,
		"./engine", "TestUnknownOutcomeSuspendsTheRunUntilItIsSettled/sqlite",
	},
	{
		"an incident is not held", "engine/act.go",
		`case o.Incident != "":`, `case false:`,
		"./engine", "TestAnIncidentHoldsTheRun/sqlite",
	},
	{
		"a run ends over an outcome that was lost while its code went on", "engine/branch.go",
		"if b.x.aborted.Load() && n.State.Ended() {", "if false {",
		"./engine", "TestNothingFollowsAnOutcomeThatIsLostMeanwhile/end",
	},
	{
		"the next effect follows an outcome that was lost", "engine/branch.go",
		"\tif b.x.aborted.Load() {\n\t\treturn change.Before, errOutcomeLost\n\t}\n", "",
		"./engine", "TestNothingFollowsAnOutcomeThatIsLostMeanwhile/effect",
	},
	{
		"what a cancelled run began is sent again", "engine/suspend.go",
		"append(x.cancelChildren(), x.cancelOperations()...)", "append(x.cancelChildren(), func() (open []semel.RunWait) {\n\t\tfor path, r := range x.records {\n\t\t\tif o := r.Effect; o != nil && o.State == semel.Unknown {\n\t\t\t\topen = append(open, x.operationWait(path, o))\n\t\t\t}\n\t\t}\n\t\treturn open\n\t}()...)",
		"./engine", "TestCancelledRunHasNothingSentAgain",
	},
	{
		"a cancelled run stops what another run waits for", "engine/suspend.go",
		"\t\tif other.ID != x.run.ID && !other.Cancel {\n\t\t\treturn *o, nil", "\t\tif other.ID == x.run.ID {\n\t\t\tcontinue\n\t\t}\n\t\tif false {\n\t\t\treturn *o, nil",
		"./engine", "TestCancelledRunHasNothingSentAgain",
	},
	{
		"a late answer without an operation fills the spool", "engine/attempt.go",
		"if h.attempt == 0 {", "if false {",
		"./engine", "TestLateAnswerWithoutOperationIsDropped",
	},
	{
		"a claim in doubt counts as a refusal", "engine/attempt.go",
		"so nothing was sent\", Unsent: true}", "so nothing was sent\"}",
		"./engine", "TestStepWhoseClaimIsInDoubtIsMadeAgain",
	},
}
