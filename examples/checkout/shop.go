package checkout

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"html/template"
	"net/http"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

// formsLast is how long a form can be sent. A key that was minted longer ago,
// or never, is no key of ours.
const formsLast = 24 * time.Hour

// Shop is the pages of the shop: an http.Handler. It only starts runs and looks
// at them; a worker does the rest.
type Shop struct {
	workflow semel.Workflow[Order]
	worker   *engine.Worker
	store    Store
	mux      *http.ServeMux
}

// Store is what the pages read; every store of Semel has it.
type Store interface {
	Now(ctx context.Context) (time.Time, error)
	FindRun(ctx context.Context, workflow string, key semel.Key) (semel.Run, error)
	Steps(ctx context.Context, run semel.ID) ([]semel.StepRecord, error)
}

// NewShop makes the pages. The worker has the workflow, and works on the store.
func NewShop(workflow semel.Workflow[Order], worker *engine.Worker, store Store) *Shop {
	s := &Shop{workflow: workflow, worker: worker, store: store, mux: http.NewServeMux()}
	s.mux.HandleFunc("GET /{$}", s.form)
	s.mux.HandleFunc("POST /orders", s.order)
	s.mux.HandleFunc("GET /orders/{key}", s.status)
	return s
}

// ServeHTTP answers one request, unless another site made the browser send it.
func (s *Shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	http.NewCrossOriginProtection().Handler(s.mux).ServeHTTP(w, r)
}

// form mints the key. Rendering it does nothing else, and a browser that goes
// back to it shows it with the same key.
func (s *Shop) form(w http.ResponseWriter, _ *http.Request) {
	var random [10]byte
	_, _ = rand.Read(random[:]) // never fails, see crypto/rand
	show(w, http.StatusOK, page{Key: semel.MintKey(time.Now(), random)})
}

// order starts the run that has the form's key, or finds it: a second click is
// the first one's order.
func (s *Shop) order(w http.ResponseWriter, r *http.Request) {
	key := semel.Key(r.PostFormValue("key"))
	if minted, ok := key.MintedAt(); !ok || time.Since(minted) > formsLast {
		show(w, http.StatusBadRequest, page{Title: "This form is too old", Text: "Nothing was ordered. Please open the shop again.", Done: true})
		return
	}
	n, err := s.workflow.New(key, Order{Item: "notebook", Cents: 1200, Customer: r.PostFormValue("customer")})
	if err == nil {
		_, _, err = s.worker.Start(r.Context(), n)
	}
	if conflict, ok := errors.AsType[*semel.RunConflictError](err); ok {
		p := s.tell(r.Context(), conflict.Run)
		p.Text += " What you have just sent differs from that order and was not ordered."
		show(w, http.StatusConflict, p)
		return
	}
	if err != nil { // it may have been started: the same form tells, and starts it if not
		show(w, http.StatusServiceUnavailable, page{Key: key, Customer: r.PostFormValue("customer"), Text: "We cannot tell yet whether your order came through. Please send it again: this form orders once."})
		return
	}
	http.Redirect(w, r, "/orders/"+string(key), http.StatusSeeOther)
}

// status says how the order stands. Looking never acts.
func (s *Shop) status(w http.ResponseWriter, r *http.Request) {
	run, err := s.store.FindRun(r.Context(), s.workflow.Name, semel.Key(r.PathValue("key")))
	switch {
	case errors.Is(err, semel.ErrNotFound):
		show(w, http.StatusNotFound, page{Title: "No order", Text: "Nothing was ordered with this form.", Done: true})
	case err != nil:
		show(w, http.StatusServiceUnavailable, page{Title: "Please wait", Text: "We cannot look at your order at the moment. It goes on without you."})
	default:
		show(w, http.StatusOK, s.tell(r.Context(), run))
	}
}

// tell puts the state of an order into words, and no more than is known.
func (s *Shop) tell(ctx context.Context, run semel.Run) page {
	switch run.State {
	case semel.RunCompleted:
		return page{Title: "Paid", Text: "Thank you. Your card was charged once.", Done: true}
	case semel.RunFailed:
		return page{Title: "Not paid", Text: "Your card was not charged.", Done: true}
	case semel.RunCancelled:
		return page{Title: "Cancelled", Text: "Your order was cancelled. Please ask us about your payment.", Done: true}
	case semel.RunRunning, semel.RunWaiting, semel.RunHeld:
	}
	if run.State != semel.RunHeld && !s.unknown(ctx, run) {
		return page{Title: "In progress", Text: "Your order is being paid. You need not do anything."}
	}
	return page{Title: "Please wait", Text: "Confirmation unavailable; checking the original request. Please do not order again."}
}

// unknown reports whether a request of the run went out and nobody knows yet
// what became of it.
func (s *Shop) unknown(ctx context.Context, run semel.Run) bool {
	steps, err := s.store.Steps(ctx, run.ID)
	if err != nil {
		return true // what cannot be looked up is not known
	}
	now, err := s.store.Now(ctx)
	if err != nil {
		return true
	}
	for _, step := range steps {
		if step.Effect != nil && step.Effect.StateAt(now) == semel.Unknown {
			return true
		}
	}
	return false
}

// page is what a visitor sees: a form if it has a Key, and else how the order
// stands.
type page struct {
	Title    string
	Text     string
	Key      semel.Key
	Customer string
	Done     bool // nothing changes any more
}

//go:embed page.html
var pageHTML string

var pageTemplate = template.Must(template.New("page").Parse(pageHTML))

func show(w http.ResponseWriter, status int, p page) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = pageTemplate.Execute(w, p) // the visitor has gone
}
