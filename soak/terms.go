package main

import "time"

// What the soak declares to Semel about its destination, and what the
// destination keeps. The times are small so that every limit is passed often.
const (
	lease         = 2 * time.Second        // also how long the first byte may take
	answerWithin  = time.Second            // how long an attempt waits for its answer
	writeTimeout  = time.Second            // how long sending may take
	maxProcessing = 6 * time.Second        // last byte to effect
	visibleAfter  = time.Second            // effect to lookup
	skew          = 500 * time.Millisecond // between two clocks
	longWindow    = 24 * time.Hour         // how long a key is honoured
	shortWindow   = 12 * time.Second       // the same, where it ends during the soak
	windowMargin  = time.Second            // how long before its end Semel stops, for the short one

	actsLate   = 1200 * time.Millisecond // how late the destination acts, when it acts late
	showsAfter = 700 * time.Millisecond  // how late it shows a transfer
)

// Protection is the kind of an intention.
type Protection string

// The kinds that are mixed.
const (
	Keyed  Protection = "keyed"  // the key is honoured for a day
	Short  Protection = "short"  // the key is honoured for seconds
	Lookup Protection = "lookup" // no key, but it can be looked up
	None   Protection = "none"   // neither
)

// Protections lists them.
func Protections() []Protection { return []Protection{Keyed, Short, Lookup, None} }

// Intention is one thing that is to happen once.
type Intention struct {
	Key        string     `json:"key"`
	Reference  string     `json:"reference"` // what the destination's ledger calls it
	Resource   string     `json:"resource"`
	Amount     int64      `json:"amount"`
	Protection Protection `json:"protection"`
	// Final: a failure is handed back, so it stays not done. Without it, what
	// failed is asked for again until it is done.
	Final bool `json:"final,omitzero"`
	// Run is set where a run is to do it. Then the plan says whether it must.
	Run string `json:"run,omitzero"`
}

// The files of a soak, in its directory.
const (
	intentionsFile = "intentions.jsonl"
	claimsFile     = "claims.jsonl"
	freezesFile    = "freezes.jsonl"
	ledgerPattern  = "*.ledger"
)

// Headers that a worker adds to each attempt, for the destination's log.
const (
	workerHeader  = "Soak-Worker"
	attemptHeader = "Soak-Attempt"
	sendByHeader  = "Soak-Send-By"
)

// Claim is what Semel says about one operation after the soak.
type Claim struct {
	Key      string    `json:"key"`
	State    string    `json:"state"`
	Reason   string    `json:"reason,omitzero"`
	Incident string    `json:"incident,omitzero"`
	Next     string    `json:"next"` // what Semel would do by itself
	Why      string    `json:"why"`  // and why, in its words
	Attempts int       `json:"attempts"`
	KeySince time.Time `json:"key_since,omitzero"`
	ListedAt time.Time `json:"listed_at"`
}

// Freeze is a time for which a worker was stopped.
type Freeze struct {
	Worker string    `json:"worker"`
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
}
