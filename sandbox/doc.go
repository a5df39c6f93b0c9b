// Package sandbox is a provider that loses your answers.
//
// It is a real HTTP server with a charge, a transfer and a message resource,
// and it misbehaves the way real providers do: it acts and then drops the
// connection, it acts and answers 500, it acts a second after the client has
// gone. Whatever the client believes, the sandbox keeps a ledger of every
// effect that really happened. Correctness is therefore shown by counting: one
// intention, one line in the ledger.
//
// The three resources stand for the three kinds of provider there are:
//
//   - /v1/charges honours the Idempotency-Key header for a window and replays
//     the first answer under it: resending is safe while the window is open.
//   - /v1/transfers ignores keys but can be asked by reference; a new transfer
//     becomes visible only after a delay, so "not found" proves nothing yet.
//   - /v1/messages offers neither: once an answer is lost, nobody can know.
//
// The package needs nothing but the standard library and knows nothing about
// its callers. Point any HTTP client at it:
//
//	provider, err := sandbox.New(sandbox.Options{})
//	...
//	server := httptest.NewServer(provider) // or provider.Run(ctx, listener)
//
// # Requests
//
// A body is one JSON object. "amount" is an integer in minor units (cents) and
// required for charges and transfers; "reference" and "customer" are optional
// strings (a number is taken by its spelling). All other fields are echoed in
// the answer exactly as they came, numbers to the last digit.
//
// # Faults
//
// One call misbehaves when its Sandbox-Fault header (or its fault query
// parameter) names a [Fault]: "drop_after" on every request, "drop_after@1" on
// the first request for its reference only, "drop_after@1,error_before@2" on
// the first two, and "none" on no request even if a rate says otherwise.
// [Options.Faults] makes a share of all references misbehave without any
// header; see [Rate] for how the share is drawn.
//
// # What can be read
//
// GET /ledger lists effects and counts, GET /ledger/summary the numbers alone,
// GET /requests every request seen under /v1/ with the hash of its bytes and the
// connection it came through. Ledger and requests accept resource and reference
// as filters. The same is available in process through [Server.Effects],
// [Server.Requests] and [Server.Summary].
//
// # Boundaries
//
// There is one account and no authentication. The ledger is held in memory and,
// with [Options.LedgerPath], in a file that one process at a time may use; it
// grows until it is deleted.
package sandbox
