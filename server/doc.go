// Package server starts runs and takes events over HTTP, under the caller's
// Idempotency-Key: asking twice is one run.
//
//	POST /workflows/{name}/runs   the body, JSON, is the input; the key is the run's
//	POST /events/{name}?match=    the body, JSON, is the data; the key is the event's ID
//	GET  /runs/{id}               where a run stands; looking changes nothing
//
// What is new is answered with 202, what was there before with 200, and
// another input under a used key with 422 and the names of the fields that
// differ. Problems are application/problem+json (RFC 9457) with a member code.
//
// There is no sign-in, so the handler answers only requests to a loopback
// host, and [Listen] opens no other address. Requests that a page of another
// site makes in a browser are refused.
package server
