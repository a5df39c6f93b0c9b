package server

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/semel-dev/semel"
)

// problem is an answer that says why nothing was done, as RFC 9457 has it.
type problem struct {
	Title  string   `json:"title"`
	Status int      `json:"status"`
	Code   string   `json:"code"` // stable, for programs
	Detail string   `json:"detail"`
	Fields []string `json:"fields,omitempty"` // that differ
	Run    string   `json:"run,omitempty"`    // that has the key
}

// write sends a problem.
func write(w http.ResponseWriter, p problem) {
	p.Title = http.StatusText(p.Status)
	send(w, "application/problem+json", p.Status, p)
}

// send writes one JSON object. A reader that went away changes nothing.
func send(w http.ResponseWriter, mediaType string, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "the answer cannot be written", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", mediaType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

// problemOf says what an error means to the caller. asked is what may have been
// done where the store did not confirm it.
func (h *handler) problemOf(err error, asked string) *problem {
	if conflict, ok := errors.AsType[*semel.RunConflictError](err); ok {
		return &problem{Status: http.StatusUnprocessableEntity, Code: "key_conflict", Detail: err.Error(), Fields: conflict.Fields, Run: conflict.Run.ID.String()}
	}
	if input, ok := errors.AsType[*semel.InputError](err); ok {
		return &problem{Status: http.StatusBadRequest, Code: "input", Detail: input.Error()}
	}
	h.log.Error("answer a call", "err", err)
	if errors.Is(err, semel.ErrUnconfirmed) {
		return &problem{Status: http.StatusServiceUnavailable, Code: "unconfirmed", Detail: "the database did not confirm it: " + asked + "; ask again under the same key"}
	}
	return &problem{Status: http.StatusServiceUnavailable, Code: "unavailable", Detail: "the database does not answer; ask again under the same key"}
}
