package demo

import (
	"fmt"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/sandbox"
)

// The times of this night. They are small, so that everything that can be known
// is known within the half minute; the sandbox keeps what is declared here.
const (
	lease         = 2 * time.Second        // a killed worker's run goes on elsewhere after it
	answerWithin  = 10 * time.Second       // how long an attempt waits for its answer
	writeTimeout  = time.Second            // how long sending may take
	maxProcessing = 2 * time.Second        // last byte to effect
	visibleAfter  = time.Second            // effect to lookup
	skew          = semel.DefaultSkew      // between two clocks
	keyWindow     = 24 * time.Hour         // how long payments honours a key
	backoff       = 300 * time.Millisecond // before the first resend or lookup

	actsLate   = 500 * time.Millisecond // how late the sandbox acts when it acts late
	showsAfter = 700 * time.Millisecond // how late it shows a transfer
)

// terms is the sentence that declares them.
func terms() string {
	return fmt.Sprintf("Declared: lease %v, write timeout %v, max_processing %v, visible_after %v, skew %v, key window %v.",
		lease, writeTimeout, maxProcessing, visibleAfter, skew, hours(keyWindow))
}

func hours(d time.Duration) string { return fmt.Sprintf("%dh", int(d.Hours())) }

// mix is how the answers get lost: the destination acts and says nothing, does
// not act and says nothing, acts behind a broken gateway, or acts when the
// client has gone. Left out is error_after: a provider that retains a 500 under
// the key never says more, so such a charge would wait for a person.
func mix() map[sandbox.Fault]int {
	return map[sandbox.Fault]int{sandbox.DropAfter: 3, sandbox.DropBefore: 1, sandbox.BadGateway: 1, sandbox.Late: 1}
}

// connectionOf is what this night calls a resource.
func connectionOf(resource sandbox.Resource) string {
	switch resource {
	case sandbox.Charges:
		return "payments"
	case sandbox.Transfers:
		return "bank"
	case sandbox.Messages:
	}
	return "mail"
}
