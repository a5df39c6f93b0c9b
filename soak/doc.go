// Command soak is the verdict on a soak: what happened to every intention, as
// counted at the destination.
//
//	go run ./soak DIR
//
// It reads what a soak left in DIR: the intentions, written before the first
// worker started; the ledgers of the destination; when which worker was
// frozen; and what Semel says about each operation. Effects are counted in the
// ledgers alone. What Semel says is held against them, and explains only why
// an outcome is unknown. The command is made of the standard library and
// shares no code with what it judges.
//
// The soak itself is a test of this package: separate worker processes on one
// database and one destination, and everything that can be done to them. Run it
// with `make soak`; TestSoak describes what is done.
//
// # Runs
//
// `make soak-runs` does the same to runs; TestSoakRuns describes what is done.
// Before the first worker starts, it writes a plan of each run: which intentions
// it has, in which order, in which items of lists and in which child runs. In
// the end
//
//   - a completed run has all of its plan in the ledger, each intention once;
//   - whatever follows a step that is not done has not happened;
//   - a fallback happened only where the first way is known to have failed;
//   - no run is lost or still moving, a failed one has a failure, and one that
//     is held or waits has an outcome that nobody can know, or another such run;
//   - no item of a list that is not done lacks a reason of its own;
//   - no claim of a run was given to two workers, and once a later claim is
//     executed, an earlier one claims no operation any more. Workflow functions
//     note begin and end, and label their requests, for that.
//
// # Boundaries
//
//   - A process frozen between the check before sending and the write is
//     stopped by nothing but a key that the destination still honours (law 7).
//     Such a second effect is counted apart, and only with proof: its request
//     arrived after the moment up to which it might leave, and the worker that
//     sent it was frozen over that moment.
//   - SQLite has no server to restart or cut off. There, the soak takes the
//     database's write lock for longer than a lease, cuts a worker off and
//     loses acknowledgements at the store's port, in the worker, and kills all
//     workers at once.
//   - All clocks are the clock of one machine.
package main
