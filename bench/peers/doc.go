// Command peers is what Semel is measured against. It is a module of its own
// and shares no code with Semel.
//
// The two durable writes of a guarded effect, a claim before it and an outcome
// after it, with no engine around them:
//
//	peers raw   each caller has a connection and makes two commits for each effect
//	peers bare  callers hand single writes to committers, which commit what is
//	            queued together: the most that the database can give
//
// Other engines, with runs of steps that do nothing:
//
//	peers dbos          github.com/dbos-inc/dbos-transact-golang, called directly
//	peers river         github.com/riverqueue/river, whose jobs are runs of one step
//	peers go-workflows  github.com/cschleiden/go-workflows, on SQLite
//
// Package bench of the main module builds it, starts it and reads its counters.
package main
