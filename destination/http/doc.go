// Package httpdest performs effects over HTTP: one attempt is one request on
// the wire, never more, and what is known afterwards is decided by bytes.
//
// Go's own transport resends a request by itself when a reused connection dies,
// so this package owns its connections. A connection carries one attempt at a
// time, and a guard above TLS sees every plaintext byte of it:
//
//   - Before the first byte of a request the guard asks Send.Begin. An error
//     means that nothing leaves.
//   - As long as the guard saw no byte, the evidence is semel.EvRefused: a
//     failed name lookup, a refused connection, a broken TLS handshake, a
//     refused CONNECT. After the first byte only an answer tells.
//   - The guard refuses a second request within one attempt.
//
// No redirect is followed, and no certificate goes unverified. What an answer
// means is data: a [Profile], versioned, with the source of every field.
//
// A connection's limits hold for all workers, so the engine keeps them and this
// package only says them, see [Destination.Limit].
//
// Boundaries. Bytes handed to a forward proxy may leave it later than the
// contract's write timeout. HTTP/2 connections carry one request at a time,
// since bytes of several could not be told apart. A connection idles for three
// seconds only: reusing one that the destination just closed turns a request
// into an unknown outcome, which costs more than a handshake.
package httpdest
