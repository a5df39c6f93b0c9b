package server

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/semel-dev/semel"
)

// Starter starts runs: an engine.Worker, which executes them at once where it
// can, or an engine.Engine.
type Starter interface {
	Start(ctx context.Context, n semel.NewRun) (r semel.Run, existing bool, err error)
}

// Make asks for a run of one workflow with the key and the input of a call. Its
// error is *semel.InputError where the input does not fit.
type Make func(key semel.Key, input []byte) (semel.NewRun, error)

// Find tells how a call starts a run of a workflow; ok is false for one that no
// call may start. It may be called concurrently.
type Find func(workflow string) (m Make, ok bool)

// handler answers calls.
type handler struct {
	runs  semel.Runs
	start Starter
	find  Find
	log   *slog.Logger
}

// New returns the handler of a store's runs. A nil logger is slog.Default().
func New(runs semel.Runs, s Starter, find Find, logger *slog.Logger) http.Handler {
	if logger == nil {
		logger = slog.Default()
	}
	h := &handler{runs: runs, start: s, find: find, log: logger}
	mux := http.NewServeMux()
	h.route(mux, http.MethodPost, "/workflows/{name}/runs", h.startRun)
	h.route(mux, http.MethodPost, "/events/{name}", h.sendEvent)
	h.route(mux, http.MethodGet, "/runs/{id}", h.showRun)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		write(w, problem{Status: http.StatusNotFound, Code: "no_such_path", Detail: "there are POST /workflows/{name}/runs, POST /events/{name} and GET /runs/{id}"})
	})
	guard := http.NewCrossOriginProtection()
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		write(w, problem{Status: http.StatusForbidden, Code: "cross_site", Detail: "a page of another site made this request in a browser; nothing was started"})
	}))
	return onlyLoopback(guard.Handler(mux))
}

// answer answers one call, or says what is wrong with it.
type answer func(w http.ResponseWriter, r *http.Request) *problem

func (h *handler) route(mux *http.ServeMux, method, path string, a answer) {
	mux.HandleFunc(method+" "+path, func(w http.ResponseWriter, r *http.Request) {
		if p := a(w, r); p != nil {
			write(w, *p)
		}
	})
	mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", method)
		write(w, problem{Status: http.StatusMethodNotAllowed, Code: "method", Detail: "use " + method})
	})
}
