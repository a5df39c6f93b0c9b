// Package sqlite keeps operations and runs in one SQLite file. [Open] returns a
// [Store], which implements [semel.Store] and [semel.Runs]. [StartTx] and
// [SendTx] start runs and send events inside a caller's own transaction on the
// same file.
//
// The file is opened in WAL mode with synchronous=FULL: what Commit answered is
// on disk. One connection per process writes, and concurrent commits share its
// transactions; other processes on the same machine take turns with it. The
// file must be on a local disk. What the file's directory shows beside it
// belongs to it: NAME-wal and NAME-shm are SQLite's, NAME-mark is how a
// restored backup is noticed (see [Store.Accept]), unless it is at most ten
// seconds older than its original, or came with its mark.
package sqlite
