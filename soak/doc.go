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
