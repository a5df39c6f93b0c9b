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
//	    actions:
//	      charge: {post: /v1/charges, required: [customer, amount, reference]}
//	      status: {put: "/v1/tickets/{body.id}/status", effect: absolute, protection: absolute}
//	      find: {get: "/v1/charges?reference={body.reference}"}
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
// # Actions
//
// An action of an HTTP connection is what a workflow's file uses as
// payments.charge. It goes by one method to one path, has the contract of its
// connection but for what it says itself, and [Config.Call] makes it from an
// input. A get is a read: it has no effect and may be repeated. Recovery goes by
// the action's contract of today. The databases have built-in actions: sql.query,
// sql.exec and claim.once.
//
// # Limits
//
// They hold for all workers over one store, which keeps their places under the
// connection's name; see engine.Limited.
//
// # Secrets and mistakes
//
// Reading is strict, and reports everything that is wrong at once, each with
// its place and its cure. A secret is a reference (env:NAME or file:PATH),
// resolved for each attempt; its value is never stored, fingerprinted, logged
// or part of an error.
package connection
