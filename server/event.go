package server

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/semel-dev/semel"
)

// eventJSON is an event with what the call did.
type eventJSON struct {
	Event    string `json:"event"`
	ID       string `json:"id"`
	Match    string `json:"match"`
	Existing bool   `json:"existing"` // it was sent before, nothing was changed
}

// sendEvent sends an event.
func (h *handler) sendEvent(w http.ResponseWriter, r *http.Request) *problem {
	id, p := readKey(r.Header)
	if p != nil {
		return p
	}
	data, p := readBody(w, r)
	if p != nil {
		return p
	}
	e := semel.InboxEvent{ID: id, Name: r.PathValue("name"), Match: r.URL.Query().Get("match"), Data: data, By: caller(r)}
	if err := e.Validate(); err != nil {
		return h.problemOf(err, "")
	}
	existing, err := h.runs.Send(r.Context(), e)
	if err != nil {
		return h.problemOf(err, "the event may have been sent")
	}
	if existing {
		if p := h.sameEvent(r, &e); p != nil {
			return p
		}
	}
	send(w, "application/json", accepted(existing), eventJSON{e.Name, e.ID, e.Match, existing})
	return nil
}

// sameEvent compares an event with the one that was sent under its ID.
func (h *handler) sameEvent(r *http.Request, e *semel.InboxEvent) *problem {
	for was, err := range h.runs.Inbox(r.Context(), semel.EventFilter{Name: e.Name, ID: e.ID, Limit: 1}) {
		if err != nil {
			return h.problemOf(err, "")
		}
		if fields := differ(&was.InboxEvent, e); len(fields) > 0 {
			return &problem{
				Status: http.StatusUnprocessableEntity, Code: "key_conflict", Fields: fields,
				Detail: fmt.Sprintf("event %s %q was sent before with another content, and stays as it is; nothing was sent", e.Name, e.ID),
			}
		}
	}
	return nil
}

// differ names the fields in which two events differ.
func differ(was, is *semel.InboxEvent) (fields []string) {
	if was.Match != is.Match {
		fields = append(fields, "match")
	}
	a := semel.Request{Kind: "event", Body: was.Data, MediaType: "application/json"}
	b := semel.Request{Kind: "event", Body: is.Data, MediaType: "application/json"}
	switch {
	case len(was.Data) == 0 && len(is.Data) == 0:
		return fields
	case len(was.Data) == 0 || len(is.Data) == 0:
		return append(fields, "data")
	}
	for _, field := range a.Diff(&b) {
		fields = append(fields, "data"+strings.TrimPrefix(field, "body"))
	}
	return fields
}
