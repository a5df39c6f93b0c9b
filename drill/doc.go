// Package drill breaks workflows on purpose and counts what happens in the
// world.
//
// A first try that succeeds says little about recovery. [Run] executes a
// workflow in a world of its own: the real engine, a real store whose clock the
// drill moves, and destinations that are simulated from the contracts of the
// workflow's actions. Nothing is sent. The workflow is executed once with
// nothing broken, which says how many calls of the store, of destinations and
// of its own code there are; then once for each call and each [Fault] that fits
// it, and then with two faults, chosen by a seed. Afterwards each effect is
// counted in the world and compared with the record. An [Outcome] is once,
// never, held (for no reason of the fault's), unknown (nobody can know, and a
// person is asked), twice or lost; the last two must never be.
//
// [Test] is that for a test:
//
//	func TestOrdersSurvive(t *testing.T) {
//		drill.Test(t, orders.Definition(), drill.Options{Input: Order{ID: "o-1"}})
//	}
//
// A [Verdict] holds a table of faults and steps, and a [Story] for each bad
// cell: what happened, line by line, and a seed. [ParseSchedule] reads the seed,
// and Options.Replay has the story told again. The same workflow, options and
// seed give the same verdict, to the byte.
//
// What destinations answer and events bring is in Options; for a workflow that
// is a YAML file, package workflowfile infers it, and the command semel drill
// does both.
//
// # What a drill does not show
//
// Simulated destinations keep the contract that is declared, to its limits, and
// do nothing beyond it: that a contract is wrong does not show. Options.Adverse
// has its promises broken, one at a time, which shows what depends on them; what
// a real destination does, package probe finds out. Steps of one worker take
// turns, and the items of a list are executed one after the other, so that one
// schedule has one story: what many do at the same instant, only the other
// worker in a schedule shows. Real time, real networks, and a database that
// itself loses what it acknowledged are not simulated.
package drill
