// Package postgres keeps operations and runs in PostgreSQL, for many workers on
// many machines. [Open] returns a [Store], which implements [semel.Store] and
// [semel.Runs].
//
// A program that only starts runs or sends events needs no Store: [StartTx] and
// [SendTx] do it inside its own transaction.
//
// Everything lives in schema semel. A claim is one insert, its outcome one
// update in place; changes of concurrent callers share commits, and the first
// never waits for company. What an execution of a run makes durable at a time is
// one round trip in such a commit, unless it begins to wait for an event, an
// approval or another run: that locks what it waits for. All time is the
// database's.
//
// # Guarantees and their boundary
//
// A commit is acknowledged after the server has flushed it to disk: sessions
// set synchronous_commit=on. A server with fsync or full_page_writes off can
// lose acknowledged claims when its machine loses power; [Store.Warnings] says
// so. A restored backup or a failover to a standby that lacked the last
// commits can too. The store notices a new timeline or another system
// identifier and refuses claims until [Store.Accept]; a copy of the files, as
// a snapshot of a volume makes it, carries neither and cannot be noticed.
//
// # Connection poolers
//
// Correctness needs no session state, so a transaction pooler may stand in
// between, if it passes prepared statements on (PgBouncer 1.21 with
// max_prepared_statements) or the URL says default_query_exec_mode=exec, which
// is slower. Where the pooler refuses start-up settings, each commit sets
// synchronous_commit itself, and a blocked row is waited for without limit
// unless the role sets lock_timeout. Statement poolers cannot work.
package postgres
