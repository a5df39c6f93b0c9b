// Command bench measures how many guarded effects Semel makes per second, and
// how long each takes, beside the bare database in the same run; the same of
// runs of such steps, beside other engines; and runs that sleep.
//
//	go run ./bench -store postgres              1 to 256 callers on PostgreSQL
//	go run ./bench -store sqlite                the same on SQLite
//	go run ./bench -store postgres -set growth  on a store of ten million operations
//	go run ./bench -set slow                    with 1 ms added to each fsync
//	go run ./bench -set runs                    beside DBOS, River and go-workflows
//	go run ./bench -set sleep                   10,000 runs that sleep, and a million
//
// bench/run does all of it and keeps the output. README.md says what the
// columns and the targets mean.
package main
