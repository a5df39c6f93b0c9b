// Package desk is a small help desk, as the example meets it: a ticket has a
// status, and PUT /tickets/{id}/status sets it.
package desk

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
)

// Desk is an http.Handler that remembers what it was told. The zero value knows
// no ticket yet.
type Desk struct {
	// Lose is how many of the next changes are made without an answer.
	Lose int

	mu     sync.Mutex
	status map[string]string
	writes int
}

// Status is what a ticket is set to; empty for one that nobody touched.
func (d *Desk) Status(ticket string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.status[ticket]
}

// Writes is how often some status was set, to the same value or to another.
func (d *Desk) Writes() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.writes
}

// ServeHTTP sets the status of a ticket.
func (d *Desk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct{ Status string }
	ticket := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/tickets/"), "/status")
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.Method != http.MethodPut {
		http.Error(w, "nothing was changed: put a status", http.StatusUnprocessableEntity)
		return
	}
	if d.set(ticket, in.Status) {
		panic(http.ErrAbortHandler) // the connection ends without an answer
	}
	w.WriteHeader(http.StatusNoContent)
}

func (d *Desk) set(ticket, status string) (lost bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.status == nil {
		d.status = map[string]string{}
	}
	d.status[ticket] = status
	d.writes++
	if d.Lose == 0 {
		return false
	}
	d.Lose--
	return true
}
