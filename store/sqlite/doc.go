// Package sqlite keeps operations in one SQLite file.
//
// The file is opened in WAL mode with synchronous=FULL: what Commit answered is
// on disk. One connection per process writes, and concurrent commits share its
// transactions; other processes on the same machine take turns with it. The
// file must be on a local disk. What the file's directory shows beside it
// belongs to it: NAME-wal and NAME-shm are SQLite's, NAME-mark is how a
// restored backup is noticed (see Store.Accept).
package sqlite
