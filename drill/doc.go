// Package drill breaks workflows on purpose and counts what happens in the
// world. It stands around the two ports, store and destination, and needs no
// hooks in the engine.
//
// [Interrupt] executes a workflow again and again, and each time its worker
// dies at another call of a port: before it, or after it when nobody hears the
// answer any more. Another worker goes on then, and no intention may have
// happened twice or be lost.
package drill
