// Package postgrestest is a PostgreSQL server for tests: a real one, spawned
// from the binaries installed on this machine, on loopback, in a directory of
// its own, gone when the test process is gone.
//
// Most tests want a fresh database on the server their process shares:
//
//	func TestMain(m *testing.M) { postgrestest.Main(m) }
//
//	func TestClaim(t *testing.T) {
//		url := postgrestest.Shared(t).Database(t)
//		...
//	}
//
// A test that stops, crashes or reconfigures the server starts its own:
//
//	server := postgrestest.Start(t, postgrestest.Options{Durable: true})
//	server.Crash(ctx)
//	server.Start(ctx)
//
// Programs that are no tests, such as benchmarks, use [Run] and [Server.Close].
//
// The server is deliberately not the friendliest one: it sorts text by the
// rules of a language and its zone is not UTC, because servers of users do and
// are. A store that leans on either default fails here first.
//
// Where no server binaries are installed the test fails; it is never skipped.
package postgrestest
