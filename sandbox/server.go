package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// Server is the provider: an [http.Handler] with a ledger. It is safe for
// concurrent use.
type Server struct {
	options Options
	ledger  *ledger
	mux     *http.ServeMux
	closing chan struct{} // closed: nothing is waited for any more
	busy    sync.WaitGroup

	mu          sync.Mutex
	shut        bool
	connections map[string]int
	late        map[*lateness]bool // true: not hurried yet
	undone      []error            // of late effects that could not be recorded
}

// New opens the ledger and takes up the late effects that an earlier process
// did not come to. It fails if an option is out of range or the ledger file
// cannot be read.
func New(options Options) (*Server, error) {
	if err := options.validate(); err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	s := &Server{
		options:     options.withDefaults(),
		closing:     make(chan struct{}),
		connections: map[string]int{},
		late:        map[*lateness]bool{},
	}
	var err error
	if s.ledger, err = openLedger(options.LedgerPath); err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	s.mux = s.routes()
	for _, e := range s.ledger.unfinished() {
		s.postpone(e)
	}
	return s, nil
}

func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, resource := range []Resource{Charges, Transfers, Messages} {
		mux.HandleFunc("POST /v1/"+string(resource), s.create(resource))
	}
	mux.HandleFunc("GET /v1/transfers", s.listTransfers)
	mux.HandleFunc("GET /v1/transfers/by-reference/{reference}", s.findTransfer)
	mux.HandleFunc("/v1/", s.unknown)
	mux.HandleFunc("GET /ledger", s.showLedger)
	mux.HandleFunc("GET /ledger/summary", s.showSummary)
	mux.HandleFunc("GET /requests", s.showRequests)
	mux.HandleFunc("GET /{$}", s.showIndex)
	return mux
}

// ServeHTTP answers one request. Where the client must not get an answer it
// panics with [http.ErrAbortHandler], on which an [http.Server] closes the
// connection.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		failure(http.StatusServiceUnavailable, errorDetail{
			Type: "api_error", Code: "closed", Message: "nothing was done: the sandbox is closed",
		}).write(w)
		return
	}
	defer s.busy.Done()
	s.mux.ServeHTTP(w, r)
}

// enter makes Close wait for one more request, unless it has begun.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shut {
		return false
	}
	s.busy.Add(1)
	return true
}

// Run serves connections from listener until ctx ends, then lets running
// requests finish and returns nil. An error says why it stopped serving on its
// own. The caller still has to Close the server.
func (s *Server) Run(ctx context.Context, listener net.Listener) error {
	server := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	var stopping sync.WaitGroup
	defer stopping.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	stopping.Go(func() {
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.options.Delay+5*time.Second)
		defer cancel()
		if err := server.Shutdown(grace); err != nil {
			_ = server.Close() // a client that neither sends nor leaves
		}
	})
	err := server.Serve(listener)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("sandbox: serve: %w", err)
}

// Close answers running requests without further delay, performs the late
// effects that are still to come and closes the ledger, which is final and
// still readable afterwards. Its error says that late effects could not be
// recorded: they did not happen, and come due again when the ledger is next
// opened. Closing again does nothing.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.shut {
		s.mu.Unlock()
		return nil
	}
	s.shut = true
	s.mu.Unlock()
	close(s.closing)
	s.busy.Wait()
	return errors.Join(append(s.undone, s.ledger.journal.close())...)
}

// connection numbers the client's end of the connection.
func (s *Server) connection(r *http.Request) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok := s.connections[r.RemoteAddr]
	if !ok {
		n = len(s.connections) + 1
		s.connections[r.RemoteAddr] = n
	}
	return n
}

// take reads a request and where it came from.
func (s *Server) take(r *http.Request, resource Resource, reference string) *call {
	c := read(r, resource, reference, s.now())
	c.Connection = s.connection(r)
	return c
}

// now is the provider's clock without the parts that a file cannot keep.
func (s *Server) now() time.Time { return s.options.Now().UTC().Round(0) }

// unknown logs a request that leads nowhere.
func (s *Server) unknown(w http.ResponseWriter, r *http.Request) {
	c := s.take(r, "", "")
	s.ledger.arrive(c)
	s.log(c, failure(http.StatusNotFound, errorDetail{
		Type: "invalid_request_error", Code: "unknown_route",
		Message: "nothing was done: there is no " + r.Method + " " + r.URL.Path,
	})).write(w)
}
