package check

import (
	"math"
	"strings"
	"time"

	"github.com/semel-dev/semel"
)

// effect is a step with an effect, as a file or a dry run shows it.
type effect struct {
	path, action string // action is CONNECTION.ACTION
	full         string // the path with the keys of items, of a dry run
	line, column int
	contract     semel.Contract
	retry        semel.Retry
	key          key
	request      []member
	after        []pause // waits before it in the run
	approval     *approval
	// uncovered says why an approval in the run does not cover it; empty where
	// one does, or none is meant to.
	uncovered string
	item      string     // what the step calls the item of its each; empty outside of one
	itemKey   []string   // what tells these items apart
	deferred  bool       // it is reached while the function ends
	refused   string     // why Semel does not take its contract; empty where it does
	call      semel.Call // of a dry run
}

// key is what names an effect.
type key struct {
	text         string // as a file writes it, or as a dry run made it
	run          bool   // the run's key and the step's path make it
	line, column int
	members      []string // names of what it is made of, such as invoice.id
	unexplained  bool     // there is more in it than these
	changing     string   // what differs between two tries; empty for nothing
	constant     bool     // it is the same for another request
	source       string   // the JSON that it may be made of, of a dry run
}

// member is a member of a request, with the last part of its name.
type member struct {
	name     string
	value    any
	computed bool // the value is not known
	// constant: the file says the value, for every run and item.
	constant bool
	refs     []string // variables that the value is made of, of a file
}

// pause is a wait.
type pause struct {
	step string
	// least is how long it lasts at least, most at the most; most is 0 where it
	// has no end.
	least, most time.Duration
}

// approval is a person's word about the request.
type approval struct {
	ask     semel.Ask
	between []pause // waits after it
}

// contradicts reports whether sending it again is declared to be harmless and to
// have another effect.
func (e *effect) contradicts() bool {
	again := e.contract.Protection == semel.Absolute || e.contract.Protection == semel.Commutes
	return again && (e.contract.Effect == semel.Creates || e.contract.Effect == semel.External)
}

// irreversible reports whether doing it twice leaves two effects. What is not
// declared is taken for such.
func (e *effect) irreversible() bool {
	return e.contract.Effect == semel.Creates || e.contract.Effect == semel.External || e.contract.Effect == ""
}

// looksUp reports whether a machine can ask the destination.
func (e *effect) looksUp() bool {
	c := &e.contract
	return c.CanLookUp || c.LookupURL != "" || c.Check != "" || c.Protection == semel.Transactional
}

// proves reports whether a lookup that finds nothing is an answer.
func (e *effect) proves() bool {
	return e.looksUp() && (e.contract.AbsenceIsProof && e.contract.MaxProcessing > 0 || e.contract.Check != "" || e.contract.Protection == semel.Transactional)
}

// by is the time that the effect takes at most until recovery gives up by
// itself: all attempts, each as long as it may wait, and the pauses between.
func (e *effect) automatic() time.Duration {
	c := &e.contract
	total := time.Duration(0)
	for n := range c.Budget() {
		total = plus(total, c.Timeout)
		if n > 0 {
			total = plus(total, semel.Retry{Backoff: c.Backoff}.Pause(n))
		}
	}
	for n := 1; n < e.retry.Attempts; n++ {
		total = plus(total, plus(c.Timeout, e.retry.Pause(n)))
	}
	return total
}

// usable is how long after the first claim the key may be sent again.
func (e *effect) usable() time.Duration {
	c := &e.contract
	processing := c.MaxProcessing
	if processing == 0 {
		processing = c.Timeout
	}
	return max(c.Window-c.Margin()-processing, 0)
}

// plus adds times, none of which is taken for less than nothing; a sum that
// has no end is the longest time there is.
func plus(a, b time.Duration) time.Duration {
	a, b = max(a, 0), max(b, 0)
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// span is a duration as people write it: 24h, not 24h0m0s.
func span(d time.Duration) string {
	if d >= time.Minute {
		d = d.Round(time.Second)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
