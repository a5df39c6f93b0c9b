package sandbox

import (
	"encoding/hex"
	"net/http"
	"strconv"
	"time"
)

// create takes one POST: the fault decides how far it gets.
func (s *Server) create(resource Resource) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := s.take(r, resource, "")
		var problem *answer
		c.order, problem = readOrder(resource, c.body)
		c.Reference = c.order.reference
		s.ledger.arrive(c)
		if c.asked {
			c.Fault = c.plan.at(c.Nth)
		} else if c.problem == nil {
			c.Fault = s.options.rate(resource).draw(s.options.Seed, resource, c.subject(), c.Nth)
		}
		a := s.perform(c, problem)
		if c.Fault == Slow {
			s.pause(s.options.Delay - s.options.Delay/2)
		}
		a.write(w)
	}
}

// perform does what the request asks and returns what goes over the wire.
// Everything is on disk when it returns.
func (s *Server) perform(c *call, badOrder *answer) answer {
	if a, ok := c.Fault.before(); ok {
		return s.log(c, a)
	}
	if c.problem != nil {
		return s.log(c, *c.problem)
	}
	var key *binding
	if c.Resource == Charges && c.Key != "" {
		key = &binding{Key: c.Key, FirstSeen: c.At, Identity: c.identity}
		if known := s.ledger.claim(*key, s.options.Window); known != nil {
			return s.log(c, *known)
		}
	}
	if badOrder != nil {
		s.giveBack(key)
		return s.log(c, *badOrder)
	}
	if c.Fault == Slow {
		s.pause(s.options.Delay / 2)
	}
	return s.act(c, key)
}

// act records the effect, the key and the request in one line.
func (s *Server) act(c *call, key *binding) answer {
	effect := s.effect(c)
	if c.Fault == Late {
		due := s.now().Add(s.options.Delay)
		e := entry{Request: &c.Request, Effect: &effect, Key: key, Due: &due}
		if err := s.ledger.record(e); err != nil {
			s.giveBack(key)
			return unrecorded(err)
		}
		s.postpone(e)
		return answer{}
	}

	e := entry{Request: &c.Request}
	own := effect.answer()
	switch c.Fault {
	case RetainedError:
		own = cardDeclined()
	case ErrorAfter:
		own = serverError()
	default:
		// the others change what the caller sees, not what is kept
	}
	if c.Fault != RetainedError {
		e.Effect = &effect
	}
	if key != nil {
		key.Answer = &own
		e.Key = key
	}
	wire := c.Fault.wire(own)
	c.Status = wire.Status
	if err := s.ledger.record(e); err != nil {
		s.giveBack(key)
		return unrecorded(err)
	}
	return wire
}

// effect is what the order will have done once it is recorded.
func (s *Server) effect(c *call) Effect {
	kind, _ := c.Resource.trait()
	sum := digest(s.options.Seed, "id", c.subject(), strconv.Itoa(c.Nth))
	e := Effect{
		Resource:  c.Resource,
		ID:        kind.prefix + hex.EncodeToString(sum[:10]),
		Reference: c.Reference,
		Customer:  c.order.customer,
		Key:       c.Key,
		Amount:    c.order.amount,
		At:        s.now(),
		Number:    c.Number,
		Request:   c.body,
	}
	if c.Fault == Partial {
		e.Partial = true
		e.Amount -= e.Amount / 2
	}
	return e
}

// log records a request that causes no effect.
func (s *Server) log(c *call, a answer) answer {
	wire := c.Fault.wire(a)
	c.Status, c.Replayed = wire.Status, wire.replayed
	if err := s.ledger.record(entry{Request: &c.Request}); err != nil {
		return unrecorded(err)
	}
	return wire
}

func (s *Server) giveBack(key *binding) {
	if key != nil {
		s.ledger.release(key.Key)
	}
}

// pause waits for d, or until the server closes.
func (s *Server) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.closing:
	}
}
