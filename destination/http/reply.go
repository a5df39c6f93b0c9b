package httpdest

import (
	"net/http"
	"slices"
)

// Reply is an answer as it came, for whoever asks what a destination says
// rather than what became of an operation.
type Reply struct {
	Status int
	Header http.Header
	// Body is at most semel.MaxResult bytes of it, and Whole says that this is
	// all.
	Body  []byte
	Whole bool
}

func (a *answer) reply() *Reply {
	return &Reply{Status: a.result.Status, Header: a.header.Clone(), Body: slices.Clone(a.result.Body), Whole: a.kept()}
}
