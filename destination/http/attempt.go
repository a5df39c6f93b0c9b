package httpdest

import (
	"fmt"
	"sync"
	"time"

	"github.com/semel-dev/semel"
)

// attempt is the gate that the bytes of one Send pass. It is closed until
// Begin agrees, open from the first byte on, and shut for good when the
// attempt is stopped before that.
type attempt struct {
	send         *semel.Send
	writeTimeout time.Duration
	opened       chan struct{} // closed when the first byte may leave

	mu       sync.Mutex
	open     bool
	shut     bool
	answered bool // a status line has arrived
	why      string
	reply    *Reply      // once it is read
	wire     *wire       // once open
	overdue  *time.Timer // aborts a request that takes too long to leave
	deadline time.Time   // by when all of it has left
}

func newAttempt(s *semel.Send, writeTimeout time.Duration) *attempt {
	return &attempt{send: s, writeTimeout: writeTimeout, opened: make(chan struct{})}
}

// begin is called by the wire with every byte of the request, before it
// leaves. The first call asks Begin; an error keeps the bytes back.
func (a *attempt) begin(w *wire) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.shut {
		return errStopped
	}
	if a.open {
		return nil
	}
	if err := a.send.Begin(); err != nil {
		a.shut, a.why = true, err.Error()
		return err
	}
	a.open, a.wire = true, w
	a.deadline = time.Now().Add(a.writeTimeout)
	a.overdue = time.AfterFunc(a.writeTimeout, func() {
		a.quit(fmt.Sprintf("the request was not sent completely within %v", a.writeTimeout))
	})
	w.sendWithin(a.writeTimeout)
	close(a.opened)
	return nil
}

// sent notes that the last byte was handed to the kernel.
func (a *attempt) sent(w *wire) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.overdue != nil && a.overdue.Stop() {
		w.sendWithin(time.Until(a.deadline))
	}
}

// answer notes that a status line has arrived.
func (a *attempt) answer() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answered = true
}

// hear keeps the answer as it came.
func (a *attempt) hear(r *Reply) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reply = r
}

// heard is the answer as it came, nil where none has been read.
func (a *attempt) heard() *Reply {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reply
}

// stop shuts the gate, unless bytes have left. True means that nothing has
// left and nothing will.
func (a *attempt) stop(why string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open {
		return false
	}
	if !a.shut {
		a.shut, a.why = true, why
	}
	return true
}

// quit closes the connection of an attempt whose bytes may have left.
func (a *attempt) quit(why string) {
	a.mu.Lock()
	w := a.wire
	if a.why == "" {
		a.why = why
	}
	a.mu.Unlock()
	if w != nil {
		w.abort()
	}
}

// done releases the attempt's timer.
func (a *attempt) done() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.overdue != nil {
		a.overdue.Stop()
	}
}

func (a *attempt) isAnswered() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.answered
}

// fate is the evidence of an attempt that ended with err instead of an answer,
// its connection closed. Bytes decide, not the error.
func (a *attempt) fate(err error) semel.Event {
	a.mu.Lock()
	defer a.mu.Unlock()
	why := a.why
	if why == "" {
		why = err.Error()
	}
	if !a.open {
		a.shut = true
		return refused(a.send, why)
	}
	return semel.Event{Kind: semel.EvLost, Attempt: a.send.Attempt, Closed: true, Reason: plain("the request may have arrived: " + why)}
}

func refused(s *semel.Send, why string) semel.Event {
	return semel.Event{Kind: semel.EvRefused, Attempt: s.Attempt, Reason: plain("nothing was sent: " + why)}
}
