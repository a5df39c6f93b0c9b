// Package connection reads semel.yaml: who the tenant is, and which named
// destinations there are, with the contract and the secrets of each.
//
//	tenant: acme
//	connections:
//	  payments:
//	    kind: http
//	    base: https://api.stripe.com
//	    profile: stripe
//	    secret: env:STRIPE_KEY
//	    timeout: 30s
//	    max_processing: 2m
//	    lookup: /v1/charges/search?reference={body.reference}
//	    found_in: data
//	    limits: {at_once: 4, per_second: 20}
//	  ledger:
//	    kind: sql
//	    url: postgres://app@db.internal/ledger?sslmode=verify-full
//	    secret: env:LEDGER_PASSWORD
//	    timeout: 30s
//	    max_rows: 10000
//	    limits: {at_once: 4}
//
// The url of a database may be a reference itself (url: env:LEDGER_URL), or
// lead to an SQLite file (url: sqlite:ledger.db, from the directory of
// semel.yaml). Its password is asked for with each new connection.
//
// Reading is strict, and reports everything that is wrong at once, each with
// its place and its cure. A secret is a reference (env:NAME or file:PATH),
// resolved for each attempt; its value is never stored, fingerprinted, logged
// or part of an error.
package connection
