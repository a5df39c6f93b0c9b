// Package sqldest performs effects in a user's own database, PostgreSQL or
// SQLite, as transactions that leave a receipt: it implements
// [semel.Destination] and [semel.Looker].
//
// # One attempt is one transaction
//
// It inserts a row into the table semel_receipt, whose primary key is the
// destination key, runs one statement of the user, writes what it answered into
// the receipt, and commits. Effect and receipt are both there or neither is.
// An attempt that meets a committed receipt runs nothing and has the answer
// that is in it; one that meets a transaction under way waits for its end.
//
//	                                            evidence
//	the commit was answered                     confirmed
//	the receipt was there                       confirmed, with the first answer
//	the receipt is that of another request      lost, with an incident
//	anything before the commit was sent         refused: nothing happened
//	the commit was answered with an error       refused: nothing happened
//	the commit was sent, and not answered       lost
//
// What was refused for a lock, a deadlock or a full pool may be tried again.
//
// # Why a lookup is conclusive
//
// A receipt that is found is proof: it was committed with the effect. That none
// is there proves nothing by itself, since an attempt may be on its way. So a
// lookup rules out what it did not find: in a transaction of its own it inserts
// a bar, a receipt that says "not happened" and names the operation and the
// attempt it was asked about, and it answers only once the bar is committed.
//
//   - An attempt whose transaction holds the key came first: PostgreSQL makes
//     the insert of the bar wait for its end, and SQLite, which has one writer,
//     the whole transaction. If it commits, the lookup finds its receipt; if it
//     does not end in time, the lookup has no answer.
//   - An attempt that comes later, having slept between its last check of the
//     claim and its first write, meets the bar. It compares operation and
//     attempt in the transaction in which it would act, and is refused.
//   - The next attempt has a higher number, and replaces the bar in the
//     transaction of its effect. If that rolls back, the bar is back.
//
// No clock is part of this; law 7's instant comes on top of it. A bar is
// written only for an operation that is unknown, and only into semel_receipt:
// it is Semel's own record at the destination. A request names its database,
// and a connection that leads to another one neither sends nor looks.
//
// # The table of receipts
//
// It is made on first use, in the first schema of the search path. A role that
// may not make it is told the statement to have run, and needs select, insert
// and update on it. A receipt must live as long as Semel's record of the
// operation; older rows may be deleted by created_at.
//
// # Statements
//
// A statement is one statement, in the database's own spelling ($1 or ?), and
// begins with a word such as insert, update, with or select. It cannot end its
// transaction. A query runs in a transaction that cannot write. PostgreSQL reads
// each argument as text by the parameter's type, so that no digit is lost; in
// SQLite an integer that does not fit its 64 bits is refused. Bytes go as
// hexadecimal text.
//
// An answer is JSON: numbers in the database's digits (NaN and infinities as
// text), timestamps in RFC 3339 (one without a zone has none here either), bytes
// in base64, JSON as it is, anything else as text. It is never cut: one that has
// more rows than allowed or more bytes than semel.MaxResult is refused.
//
// # Boundaries
//
// What a statement sets in motion outside its database (dblink, a foreign
// table, NOTIFY's listeners) is not part of the transaction's promise. A
// database restored from a backup, or failed over with loss, has lost effects
// and receipts together. SQLite in WAL mode and PostgreSQL are asked to have
// each commit on disk before they answer; what pragmas or settings take back is
// the user's.
package sqldest
