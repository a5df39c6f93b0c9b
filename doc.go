// Package semel is the language of a durable automation engine whose
// consequential actions are safe to retry: "try that again" never has to mean
// "make it happen twice".
//
// Six nouns explain it:
//
//   - An [Operation] is one intended effect: a [Scope] and a [Key], bound to
//     the fingerprint of one [Request].
//   - A [Contract] says what the destination promises about that effect, for
//     example that it honours a key for 24 hours.
//   - An [Attempt] is one try. Its number is the fence: what an older attempt
//     reports is evidence to be judged, and overwrites nothing.
//   - An [Event] is evidence, one recorded fact. Evidence is append-only.
//   - A [State] follows from the evidence: in progress, completed, failed
//     (nothing happened) or unknown. [Operation.Apply] is the only way from
//     one state to another.
//   - A [Move] is what is safe to do next. [Decide] computes it.
//
// The package is pure: it holds no clock, goroutine, socket, file or log.
// Stores and destinations stand behind two ports, [Store] and [Destination];
// package engine joins them and implements [Guard]. Users write an [Action]
// and call its Do method, or a [Workflow]: a function whose steps are recorded
// ([Do], [Sleep], [Wait], [Approve], [Each], [Child]), and which a worker of
// package engine executes as a [Run].
package semel
