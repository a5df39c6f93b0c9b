// Command peers is what Semel is measured against: the two durable writes of a
// guarded effect, a claim before it and an outcome after it, with no engine
// around them. It is a module of its own and shares no code with Semel.
//
//	peers raw   each caller has a connection and makes two commits for each effect
//	peers bare  callers hand single writes to committers, which commit what is
//	            queued together: the most that the database can give
//
// Package bench of the main module builds it, starts it and reads its counters.
package main
