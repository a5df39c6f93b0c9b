package semel

import (
	"fmt"
	"slices"
	"time"
)

// Protection is what makes repeating an effect safe, strongest first.
type Protection string

// The protections.
const (
	// Transactional: the effect and its receipt are one transaction, so the
	// receipt is conclusive.
	Transactional Protection = "transactional"
	// Commutes: running it again changes nothing, in any order.
	Commutes Protection = "commutes"
	// Absolute: it sets a value, and nobody else writes that value meanwhile.
	Absolute Protection = "absolute"
	// Keyed: the destination enforces a key for a window.
	Keyed Protection = "keyed"
	// Lookup: a stable reference can be queried.
	Lookup Protection = "lookup"
	// Unprotected: nothing; a person settles an unknown outcome.
	Unprotected Protection = "none"
)

// Protections lists them, strongest first.
func Protections() []Protection {
	return []Protection{Transactional, Commutes, Absolute, Keyed, Lookup, Unprotected}
}

// EffectKind says what an action does to the world.
type EffectKind string

// The kinds of effect.
const (
	SetsValue EffectKind = "absolute" // set status, add tag, write a file at a path
	Changes   EffectKind = "relative" // increment
	Creates   EffectKind = "creates"  // order, project from template
	External  EffectKind = "external" // email, charge
)

// OnFailed says what a new request for a failed operation does.
type OnFailed string

// The two answers to a repeated request for a failed operation.
const (
	Rerun        OnFailed = "rerun"  // a new attempt under the same key; the default
	ReturnFailed OnFailed = "return" // the recorded failure, for ever
)

// Contract is what an action promises about its effect. The first claim
// persists it, and recovery follows it. Zero means undeclared, and anything
// undeclared takes the unsafe reading: no resend, no proof, a person.
type Contract struct {
	Effect     EffectKind `json:"effect,omitzero"`
	Protection Protection `json:"protection"`
	// Metered marks an effect that costs money each time, such as an AI call.
	Metered bool `json:"metered,omitzero"`
	// Owner is told about an unknown that only a person can settle.
	Owner string `json:"owner,omitzero"`

	// Window is how long the destination honours a key, counted from the first
	// claim that could send it. Needed by Keyed.
	Window time.Duration `json:"window,omitzero"`
	// KeyHeader names the header that carries the key, and KeyQuoted spells it
	// as a structured-field string.
	KeyHeader string `json:"key_header,omitzero"`
	KeyQuoted bool   `json:"key_quoted,omitzero"`
	// Profile is the name and version of the profile that interprets answers.
	Profile string `json:"profile,omitzero"`

	// LookupURL is where an effect can be looked up; {key}, {destination_key}
	// and {body.FIELD} are replaced. CanLookUp says that some lookup exists,
	// for destinations that need no URL.
	LookupURL string `json:"lookup_url,omitzero"`
	FoundIn   string `json:"found_in,omitzero"`
	CanLookUp bool   `json:"can_look_up,omitzero"`
	// Check is the program that tells whether a command happened: exit 0 it
	// did, 1 and silent on standard error it did not, anything else is no
	// answer. Its word is proof once the program that it speaks of is gone.
	Check string `json:"check,omitzero"`
	// NoEffectExit lists the exit codes with which a command promises that
	// nothing happened.
	NoEffectExit []int `json:"no_effect_exit,omitzero"`
	// VisibleAfter is how long after an effect a lookup may still miss it.
	// With AbsenceIsProof, 0 declares that none is missed.
	VisibleAfter time.Duration `json:"visible_after,omitzero"`
	// AbsenceIsProof: a lookup that finds nothing after VisibleAfter proves
	// that nothing happened. Needs MaxProcessing.
	AbsenceIsProof bool `json:"absence_is_proof,omitzero"`
	// MaxProcessing is the longest time from the last byte sent to the effect;
	// for a command, from its start.
	MaxProcessing time.Duration `json:"max_processing,omitzero"`

	// Timeout is how long one attempt waits for its answer; 0 waits for ever.
	Timeout time.Duration `json:"timeout,omitzero"`
	// WriteTimeout bounds sending the request; 0 means DefaultWriteTimeout.
	WriteTimeout time.Duration `json:"write_timeout,omitzero"`
	// Skew is the most by which two clocks may drift apart over one attempt; 0
	// means DefaultSkew.
	Skew time.Duration `json:"skew,omitzero"`

	// OnFailed is the failure contract; empty means Rerun.
	OnFailed OnFailed `json:"on_failed,omitzero"`
	// Attempts is the most attempts that recovery makes by itself; 0 means
	// DefaultAttempts. Backoff is the pause before the second, doubled each
	// time up to MaxBackoff; 0 means DefaultBackoff.
	Attempts int           `json:"attempts,omitzero"`
	Backoff  time.Duration `json:"backoff,omitzero"`
}

// What a contract means where it says nothing.
const (
	DefaultWriteTimeout = 10 * time.Second
	DefaultSkew         = time.Second
	DefaultAttempts     = 10
	DefaultBackoff      = time.Second
	MaxBackoff          = 5 * time.Minute
)

// Validate reports what is missing or contradictory in c.
func (c *Contract) Validate() error {
	for _, d := range []struct {
		name string
		time.Duration
	}{
		{"window", c.Window},
		{"visible-after", c.VisibleAfter},
		{"max-processing", c.MaxProcessing},
		{"timeout", c.Timeout},
		{"write timeout", c.WriteTimeout},
		{"skew", c.Skew},
		{"backoff", c.Backoff},
	} {
		if d.Duration < 0 {
			return &InputError{Field: d.name, Problem: fmt.Sprintf("is negative (%v)", d.Duration), Hint: "give a duration such as 10s"}
		}
	}
	for _, code := range c.NoEffectExit {
		if code < 1 || code > 255 {
			return &InputError{Field: "no-effect-exit", Problem: fmt.Sprintf("%d is no exit code that can say so", code), Hint: "use 1 to 255; 0 is success"}
		}
	}
	switch {
	case !slices.Contains(Protections(), c.Protection):
		return &InputError{
			Field: "protection", Problem: fmt.Sprintf("%q is unknown", c.Protection),
			Hint: "use one of transactional, commutes, absolute, keyed, lookup, none",
		}
	case !slices.Contains([]EffectKind{"", SetsValue, Changes, Creates, External}, c.Effect):
		return &InputError{Field: "effect", Problem: fmt.Sprintf("%q is unknown", c.Effect), Hint: "use one of absolute, relative, creates, external"}
	case c.OnFailed != "" && c.OnFailed != Rerun && c.OnFailed != ReturnFailed:
		return &InputError{Field: "on-failed", Problem: fmt.Sprintf("%q is unknown", c.OnFailed), Hint: "use rerun or return"}
	case c.Protection == Keyed && c.Window == 0:
		return &InputError{
			Field: "window", Problem: "is missing",
			Hint: "keyed protection needs to know how long the destination honours a key, for example --window 24h",
		}
	case c.Protection == Lookup && !c.looksUp():
		return &InputError{Field: "lookup", Problem: "is missing", Hint: "lookup protection needs a place to look, for example --lookup URL"}
	case c.AbsenceIsProof && !c.looksUp():
		return &InputError{Field: "absence-is-proof", Problem: "has no lookup to speak of", Hint: "declare the lookup, or leave it out"}
	case c.AbsenceIsProof && c.MaxProcessing == 0:
		return &InputError{
			Field: "max-processing", Problem: "is missing",
			Hint: "absence proves nothing until the longest time a request may still be running has passed: declare it",
		}
	}
	return nil
}

func (c *Contract) looksUp() bool {
	return c.CanLookUp || c.LookupURL != "" || c.Check != "" || c.Protection == Transactional
}

// Margin is how long before the end of the destination's window Semel stops
// resending: a tenth of the window, at least 1 s and at most 5 min.
func (c *Contract) Margin() time.Duration { return min(max(c.Window/10, time.Second), 5*time.Minute) }

// processing is MaxProcessing, or the attempt timeout where it is undeclared.
func (c *Contract) processing() time.Duration {
	if c.MaxProcessing > 0 {
		return c.MaxProcessing
	}
	return c.Timeout
}

func (c *Contract) writeTimeout() time.Duration {
	return orDefault(c.WriteTimeout, DefaultWriteTimeout)
}
func (c *Contract) skew() time.Duration { return orDefault(c.Skew, DefaultSkew) }

// Budget is the number of attempts that are made without anybody asking.
func (c *Contract) Budget() int {
	if c.Attempts > 0 {
		return c.Attempts
	}
	return DefaultAttempts
}

// backoff is the pause after the n-th try, n counting from 1.
func (c *Contract) backoff(n int) time.Duration {
	d := orDefault(c.Backoff, DefaultBackoff)
	for range n - 1 {
		if d >= MaxBackoff/2 {
			return max(d, MaxBackoff)
		}
		d *= 2
	}
	return d
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

// Stricter combines the contract an operation was claimed with and the current
// one: the shorter window, the longer delays, and proof only if both say so.
// Where one of them does not declare its processing time, nothing proves
// absence, and a resend ends as early as the more cautious of the two wants.
func (c Contract) Stricter(current Contract) Contract {
	c.Window = min(c.Window, current.Window)
	c.VisibleAfter = max(c.VisibleAfter, current.VisibleAfter)
	c.AbsenceIsProof = c.AbsenceIsProof && current.AbsenceIsProof && c.MaxProcessing > 0 && current.MaxProcessing > 0
	if c.MaxProcessing > 0 || current.MaxProcessing > 0 {
		c.MaxProcessing = max(c.processing(), current.processing())
	}
	c.Timeout = max(c.Timeout, current.Timeout)
	switch {
	case c.Protection.Repeatable() != current.Protection.Repeatable():
		if c.Protection.Repeatable() {
			c.Protection = current.Protection
		}
	case rank(current.Protection) > rank(c.Protection):
		c.Protection = current.Protection
	}
	return c
}

// Repeatable reports whether an effect whose outcome is unknown may be sent
// again at all under p; for Keyed, inside the window.
func (p Protection) Repeatable() bool { return p == Commutes || p == Absolute || p == Keyed }

func rank(p Protection) int { return slices.Index(Protections(), p) }
