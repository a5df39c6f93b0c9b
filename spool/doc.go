// Package spool keeps evidence that could not reach the store yet.
//
// A spool is a directory with one file per piece of evidence. What Put
// acknowledged survives the death of the process and of the machine, and any
// process that opens the same directory can hand it on: files are locked while
// they are handed on, so several processes share the work. The locks end with
// their process.
//
// Evidence is handed on at least once: a process that dies after the store took
// it and before the file is gone leaves the file, and the store meets the same
// evidence again.
//
// The directory must lie on a local file system, and nobody but its owner may
// write to it, since whoever can write evidence decides what happened.
package spool
