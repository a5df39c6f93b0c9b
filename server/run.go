package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/semel-dev/semel"
)

// startRun starts a run, or finds the one that has the key.
func (h *handler) startRun(w http.ResponseWriter, r *http.Request) *problem {
	name := r.PathValue("name")
	request, ok := h.find(name)
	if !ok {
		return &problem{Status: http.StatusNotFound, Code: "no_such_workflow", Detail: fmt.Sprintf("no workflow %q may be started by a call: a workflow file says so with on: {http: {}}", name)}
	}
	key, p := readKey(r.Header)
	if p != nil {
		return p
	}
	input, p := readBody(w, r)
	if p != nil {
		return p
	}
	n, err := request(semel.Key(key), input)
	if err != nil {
		return h.problemOf(err, "")
	}
	n.Trigger = semel.Trigger{Kind: semel.ByHTTP, By: caller(r)}
	run, existing, err := h.start.Start(r.Context(), n)
	if err != nil {
		return h.problemOf(err, "the run may have been started")
	}
	w.Header().Set("Location", "/runs/"+run.ID.String())
	send(w, "application/json", accepted(existing), startedJSON{describe(&run), existing})
	return nil
}

// showRun says where a run stands.
func (h *handler) showRun(w http.ResponseWriter, r *http.Request) *problem {
	missing := &problem{Status: http.StatusNotFound, Code: "no_such_run", Detail: fmt.Sprintf("there is no run %q", r.PathValue("id"))}
	id, err := semel.ParseID(r.PathValue("id"))
	if err != nil {
		return missing
	}
	run, err := h.runs.LoadRun(r.Context(), id)
	if errors.Is(err, semel.ErrNotFound) {
		return missing
	}
	if err != nil {
		return h.problemOf(err, "")
	}
	send(w, "application/json", http.StatusOK, describe(&run))
	return nil
}

// accepted is the status of a call: what it asks for was there before, or will
// be done.
func accepted(existing bool) int {
	if existing {
		return http.StatusOK
	}
	return http.StatusAccepted
}

// caller is who called, as far as that is known without a sign-in.
func caller(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// runJSON is a run as a caller reads it.
type runJSON struct {
	Run         string          `json:"run"`
	Workflow    string          `json:"workflow"`
	Version     int             `json:"version"`
	Key         string          `json:"key"`
	State       semel.RunState  `json:"state"`
	InWords     string          `json:"in_words"`
	Reason      string          `json:"reason"`
	NeedsPerson bool            `json:"needs_person"`
	Done        int             `json:"items_done"`
	Total       int             `json:"items_total"`
	Result      json.RawMessage `json:"result"`
	CreatedAt   time.Time       `json:"created_at"`
	UpdatedAt   time.Time       `json:"updated_at"`
	EndedAt     *time.Time      `json:"ended_at"`
}

// startedJSON is a run with what the call did.
type startedJSON struct {
	runJSON
	Existing bool `json:"existing"` // a run had the key, nothing new was started
}

func describe(r *semel.Run) runJSON {
	d := runJSON{
		Run: r.ID.String(), Workflow: r.Workflow, Version: r.Version, Key: string(r.Key), State: r.State, InWords: words(r), Reason: r.Reason,
		NeedsPerson: r.NeedsPerson(), Done: r.Done, Total: r.Total, Result: r.Result, CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(),
	}
	if len(r.Result) == 0 {
		d.Result = json.RawMessage("null")
	}
	if !r.EndedAt.IsZero() {
		d.EndedAt = new(r.EndedAt.UTC())
	}
	return d
}

// words is the state of a run as people read it.
func words(r *semel.Run) string {
	switch {
	case !r.State.Ended() && r.Cancel:
		return "asked to stop, and not stopped yet"
	case !r.State.Ended() && r.Paused:
		return "paused by a person"
	}
	switch r.State {
	case semel.RunRunning:
		return "a worker executes it, or will as soon as one is free"
	case semel.RunWaiting:
		return "waits for a time, an event, an approval, another run or an outcome"
	case semel.RunHeld:
		return "held: it needs a person, and nothing new begins until then"
	case semel.RunCompleted:
		return "completed"
	case semel.RunFailed:
		return "failed: in the step that failed nothing happened; what other steps did stays"
	case semel.RunCancelled:
		return "cancelled: what had happened before stays"
	}
	return string(r.State)
}
