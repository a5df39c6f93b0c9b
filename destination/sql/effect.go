package sqldest

import "github.com/semel-dev/semel"

// Written is the answer of Exec: how many rows the statement changed, and the
// rows of its returning clause.
type Written[Row any] struct {
	Affected int64 `json:"affected"`
	Rows     []Row `json:"rows"`
}

// Verdict is the answer of ClaimOnce. Won means that this operation changed
// the row; otherwise somebody else had.
type Verdict[Row any] struct {
	Won      bool  `json:"won"`
	Affected int64 `json:"affected"`
	Rows     []Row `json:"rows"`
}

// Found is the answer of Query.
type Found[Row any] struct {
	Rows []Row `json:"rows"`
}

// Exec is an effect that runs one statement and leaves a receipt in the same
// transaction. However often it is tried, the statement takes effect once, and
// every try has the answer of the one that did. A nil args gives no arguments.
func Exec[In, Row any](d *Database, statement string, args func(In) []any) semel.Effect[In, Written[Row]] {
	return effect[In, Written[Row]](d, VerbExec, d.Contract(), statement, args)
}

// ClaimOnce is an effect that changes one row under a condition, as in "update
// seat set holder = $1 where id = $2 and holder is null". It wins if it changed
// one row, and has lost if it changed none; both are completed, and a retry has
// the same verdict. If it would change more, nothing is changed and it fails.
func ClaimOnce[In, Row any](d *Database, statement string, args func(In) []any) semel.Effect[In, Verdict[Row]] {
	return effect[In, Verdict[Row]](d, VerbClaim, d.Contract(), statement, args)
}

// Query is an effect that reads. Too many rows, or more bytes than
// semel.MaxResult, are a failure and not a cut answer.
func Query[In, Row any](d *Database, statement string, args func(In) []any) semel.Effect[In, Found[Row]] {
	return effect[In, Found[Row]](d, VerbQuery, d.QueryContract(), statement, args)
}

func effect[In, Out any](d *Database, verb Verb, c semel.Contract, statement string, args func(In) []any) semel.Effect[In, Out] {
	return semel.Effect[In, Out]{
		Connection: d.options.Name, Contract: c, Destination: d,
		Request: func(in In) (semel.Request, error) {
			var given []any
			if args != nil {
				given = args(in)
			}
			return d.NewRequest(verb, statement, given...)
		},
	}
}
