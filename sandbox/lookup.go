package sandbox

import (
	"net/http"
	"strings"
)

// listTransfers answers GET /v1/transfers, with or without a reference.
func (s *Server) listTransfers(w http.ResponseWriter, r *http.Request) {
	reference := r.URL.Query().Get("reference")
	s.look(w, r, reference, func() answer {
		var objects []string
		for _, e := range s.visibleTransfers() {
			if e.Reference == reference || !r.URL.Query().Has("reference") {
				objects = append(objects, e.object())
			}
		}
		return answer{Status: http.StatusOK, Body: `{"data":[` + strings.Join(objects, ",") + `]}`}
	})
}

// findTransfer answers with the first transfer of a reference.
func (s *Server) findTransfer(w http.ResponseWriter, r *http.Request) {
	reference := r.PathValue("reference")
	s.look(w, r, reference, func() answer {
		for _, e := range s.visibleTransfers() {
			if e.Reference == reference {
				return answer{Status: http.StatusOK, Body: e.object()}
			}
		}
		return failure(http.StatusNotFound, errorDetail{
			Type: "invalid_request_error", Code: "not_found",
			Message: "no transfer with this reference is visible; a new one becomes visible after a delay",
		})
	})
}

// look logs a lookup and answers it. Of the faults a lookup knows those that
// drop, delay or refuse; it has no effect that could be declined or done by half.
func (s *Server) look(w http.ResponseWriter, r *http.Request, reference string, find func() answer) {
	c := s.take(r, Transfers, reference)
	s.ledger.arrive(c)
	c.Fault = c.plan.at(c.Nth)
	a, done := c.Fault.before()
	switch {
	case done:
	case c.problem != nil:
		a = *c.problem
	default:
		a = find()
	}
	a = s.log(c, a)
	if c.Fault == Slow {
		s.pause(s.options.Delay)
	}
	a.write(w)
}

func (s *Server) visibleTransfers() []Effect {
	var visible []Effect
	now := s.now()
	for _, e := range s.ledger.allEffects() {
		if e.Resource == Transfers && now.Sub(e.At) >= s.options.VisibleAfter {
			visible = append(visible, e)
		}
	}
	return visible
}
