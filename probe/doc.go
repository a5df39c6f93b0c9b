// Package probe finds out what a destination really does, instead of trusting
// what it promises.
//
// It sends a few labelled requests to a test endpoint: one key twice, several
// times at once, with another body, spelled the other way, after an error, after
// a delay; the same request without a key; and lookups. What it sees are
// [Observation] values with the requests and answers behind them. [Compare] holds
// them against what is declared, and [Report.Profile] is what was seen, as a
// profile that can be used.
//
//	p, err := probe.New(probe.Target{Destination: d, Request: r, Contract: declared, Label: "reference"}, probe.Options{})
//	...
//	fmt.Println(p.Plan().Effects) // at most so many
//	report, err := p.Run(ctx)
//
// Requests leave through the destination itself, so answers are read by the code
// that recovery will use, and nothing is ever sent a second time unasked.
//
// # Boundaries
//
// A request that may have an effect counts against [Options.MaxEffects] when it
// is sent, whatever comes of it. Effects are told apart by the destination's own
// identifiers, by its replay marker and, where a lookup lists what it found, by
// looking: a destination that lies in all three is believed. A window is never
// seen to its end, only to hold for as long as the probe waited. What is true of
// a test endpoint need not be true of production.
package probe
