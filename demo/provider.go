package demo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/semel-dev/semel/sandbox"
)

// provider is the destinations of one half of the night: a sandbox, and the
// hand that kills a worker while its request is there.
type provider struct {
	*sandbox.Server
	base  string
	kills string // the file of those that died

	mu     sync.Mutex
	doomed map[string]bool // what is being sent when a worker dies, by sending name
	crew   *crew           // whose workers they are
	killed int

	http *http.Server
	done chan error
}

// sending names one request of the night, as workers announce it.
func sending(resource sandbox.Resource, reference string) string {
	return string(resource) + "/" + reference
}

// open brings the destinations up at door.
func open(n *night, due []invoice, ledger, kills string, door net.Listener) (*provider, error) {
	before, err := lines(n.path(kills))
	if err != nil {
		return nil, fmt.Errorf("read who died: %w", err)
	}
	faults := rates(n, due)
	server, err := sandbox.New(sandbox.Options{
		LedgerPath: n.path(ledger), Window: keyWindow, VisibleAfter: showsAfter, Delay: actsLate, Seed: n.Seed, FaultsOn: faults,
	})
	if err != nil {
		return nil, err
	}
	p := &provider{
		Server: server, base: "http://" + door.Addr().String(), kills: n.path(kills), doomed: map[string]bool{},
		killed: len(before), done: make(chan error, 1),
	}
	for _, name := range doomed(n, due) {
		p.doomed[name] = !slices.Contains(before, name)
	}
	for _, r := range server.Requests() {
		delete(p.doomed, sending(r.Resource, r.Reference)) // only a first request kills
	}
	p.http = &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { p.done <- p.http.Serve(door) }()
	return p, nil
}

// close takes the destinations down; late effects that are still to come
// happen now.
func (p *provider) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if p.http.Shutdown(ctx) != nil {
		_ = p.http.Close() // a client that neither sends nor leaves
	}
	err := <-p.done
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, p.Server.Close())
}

// rates are the shares of requests that lose their answers. Mail loses a tenth,
// but at least one.
func rates(n *night, due []invoice) map[sandbox.Resource]sandbox.Rate {
	money := sandbox.Rate{First: n.Lose, Mix: mix()}
	mail := sandbox.Rate{First: n.Lose / 10, Mix: mix()}
	for mail.First > 0 && mail.First < 1 && !losesMail(n.Seed, mail, due) {
		mail.First = min(2*mail.First, 1)
	}
	return map[sandbox.Resource]sandbox.Rate{sandbox.Charges: money, sandbox.Transfers: money, sandbox.Messages: mail}
}

// losesMail tries the rate on a sandbox in memory: what is drawn depends on the
// seed and the reference alone.
func losesMail(seed uint64, rate sandbox.Rate, due []invoice) bool {
	trial, err := sandbox.New(sandbox.Options{Seed: seed, Delay: -1, FaultsOn: map[sandbox.Resource]sandbox.Rate{sandbox.Messages: rate}})
	if err != nil {
		return true // the night's own sandbox will say why
	}
	defer func() { _ = trial.Close() }() // it is in memory
	for _, i := range due {
		body, _ := json.Marshal(i.receipt()) // a struct of strings and a number
		r, err := http.NewRequest(http.MethodPost, "/v1/"+string(sandbox.Messages), bytes.NewReader(body))
		if err != nil {
			return true
		}
		if quietly(trial, r) {
			return true
		}
	}
	return false
}

// quietly serves r to nobody and reports whether its answer got lost.
func quietly(h http.Handler, r *http.Request) (lost bool) {
	w := &nobody{header: http.Header{}}
	defer func() {
		if e := recover(); e != nil && !errors.Is(asError(e), http.ErrAbortHandler) {
			panic(e)
		} else if e != nil {
			lost = true
		}
	}()
	h.ServeHTTP(w, r)
	return w.status >= 300
}

func asError(v any) error {
	err, _ := v.(error)
	return err
}

type nobody struct {
	header http.Header
	status int
}

func (n *nobody) Header() http.Header         { return n.header }
func (n *nobody) Write(b []byte) (int, error) { return len(b), nil }
func (n *nobody) WriteHeader(status int)      { n.status = status }

// doomed chooses what is being sent when a worker dies: charges and transfers
// in turn, by the seed alone, so that both halves of the night lose the same.
func doomed(n *night, due []invoice) []string {
	byResource := map[sandbox.Resource][]string{}
	for _, i := range due {
		byResource[i.resource()] = append(byResource[i.resource()], sending(i.resource(), i.reference()))
	}
	rank := func(name string) string {
		sum := sha256.Sum256(fmt.Appendf(nil, "kill %d %s", n.Seed, name))
		return hex.EncodeToString(sum[:])
	}
	for _, names := range byResource {
		slices.SortFunc(names, func(a, b string) int { return strings.Compare(rank(a), rank(b)) })
	}
	var chosen []string
	for turn := 0; len(chosen) < min(n.Kill, len(due)); turn++ {
		resource := []sandbox.Resource{sandbox.Charges, sandbox.Transfers}[turn%2]
		if names := byResource[resource]; len(names) > 0 {
			chosen, byResource[resource] = append(chosen, names[0]), names[1:]
		}
	}
	return chosen
}

// ServeHTTP passes a request on. If it dooms its worker, the worker is dead
// before the destination acts.
func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if resource, ok := strings.CutPrefix(r.URL.Path, "/v1/"); ok && r.Method == http.MethodPost {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			panic(http.ErrAbortHandler) // the request did not arrive whole
		}
		var o order
		if json.Unmarshal(body, &o) == nil {
			p.strike(sending(sandbox.Resource(resource), o.Reference))
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	p.Server.ServeHTTP(w, r)
}

// strike kills the worker that is sending name, if it is doomed.
func (p *provider) strike(name string) {
	p.mu.Lock()
	c, strikes := p.crew, p.doomed[name]
	delete(p.doomed, name)
	p.mu.Unlock()
	if !strikes || c == nil || !c.kill(name) {
		return
	}
	p.mu.Lock()
	p.killed++
	p.mu.Unlock()
	_ = appendLine(p.kills, name) // it counts the dead; nothing depends on it
}

// hire names the workers whose requests come from now on.
func (p *provider) hire(c *crew) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.crew = c
}

func (p *provider) dead() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.killed
}
