package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
)

// spelled is how a key goes into its header.
type spelled string

const (
	asDeclared  spelled = "declared"
	otherwise   spelled = "otherwise" // bare where quoted is declared, and the other way round
	withoutAKey spelled = "none"
)

// letter is one request that may have an effect.
type letter struct {
	request semel.Request
	key     string
	spelled spelled
}

// operation is the letter as a destination takes it.
func (r *run) operation(l *letter) (*semel.Operation, spelling) {
	c := r.target.Contract
	c.KeyHeader = r.keyHeader()
	how := spelling{header: c.KeyHeader}
	switch l.spelled {
	case withoutAKey:
		c.KeyHeader, c.KeyQuoted, how.header = "", false, ""
	case otherwise:
		c.KeyQuoted = !c.KeyQuoted
	case asDeclared:
	}
	how.quoted = c.KeyQuoted
	return &semel.Operation{Identity: semel.Identity{Scope: "semel-probe", Key: semel.Key(l.key), Request: l.request, Contract: c}}, how
}

type spelling struct {
	header string
	quoted bool
}

func (s spelling) write(key string) string {
	switch {
	case s.header == "":
		return ""
	case s.quoted:
		return s.header + `: "` + key + `"`
	}
	return s.header + ": " + key
}

// send sends one request, once. Ready is called before its first byte.
func (r *run) send(ctx context.Context, l letter, ready func()) Exchange {
	o, how := r.operation(&l)
	e := Exchange{
		Method: l.request.Method, URL: r.hide(l.request.URL), Key: how.write(l.key), Body: r.hide(string(l.request.Body)),
	}
	ev, reply := r.target.Destination.SendReply(ctx, &semel.Send{
		Operation: o, Attempt: 1, DestinationKey: l.key, Withheld: r.target.Withheld,
		Begin: func() error {
			ready()
			if err := ctx.Err(); err != nil {
				return errors.New("the probe was stopped")
			}
			e.begun = time.Now()
			return nil
		},
	})
	e.At = time.Now().UTC()
	if !e.begun.IsZero() {
		e.Took = Duration(time.Since(e.begun))
	}
	e.Says = r.hide(ev.Reason)
	r.take(&e, reply)
	e.Unsent = reply == nil && ev.Kind == semel.EvRefused
	return e
}

// look asks the declared lookup what became of a request.
func (r *run) look(ctx context.Context, l letter) (Exchange, semel.Event) {
	o, _ := r.operation(&l)
	e := Exchange{Method: http.MethodGet, URL: r.hide(r.target.Contract.LookupURL), begun: time.Now(), lookup: true}
	ev, reply := r.target.Destination.LookReply(ctx, &semel.Send{Operation: o, DestinationKey: l.key, Withheld: r.target.Withheld})
	e.At, e.Took = time.Now().UTC(), Duration(time.Since(e.begun))
	e.Says = r.hide(ev.Reason)
	r.take(&e, reply)
	e.Read = "" // a profile speaks of requests, not of lookups
	return e, ev
}

// maxShown is how much of an answer a report shows, in bytes.
const maxShown = 500

// take notes what came back, without the secrets in it.
func (r *run) take(e *Exchange, reply *httpdest.Reply) {
	if reply == nil {
		return
	}
	e.Status = reply.Status
	if reply.Whole {
		e.Read = r.target.Destination.Profile().Read(reply.Status, reply.Body)
	}
	e.header = map[string][]string{}
	for name, values := range reply.Header {
		if semel.IsCredential(name) {
			continue
		}
		for _, v := range values {
			e.header[name] = append(e.header[name], r.hide(v))
		}
	}
	e.whole, e.cut = r.hide(string(reply.Body)), !reply.Whole
	e.Answer = e.whole
	if len(e.Answer) > maxShown {
		e.Answer = e.Answer[:maxShown] + "..."
	}
	if r.target.Reference != "" {
		e.Reference = r.hide(scalarAt(e.whole, r.target.Reference)) // decoding may have spelled one out
	}
}

// listed is how many effects the lookup's answer lists; false where it is no
// complete list.
func (r *run) listed(e *Exchange) (int, bool) {
	if r.target.Contract.FoundIn == "" || e.Status != http.StatusOK || scalarAt(e.whole, "has_more") == "true" {
		return 0, false
	}
	list, ok := at(e.whole, r.target.Contract.FoundIn).([]any)
	return len(list), ok
}

// at follows a dotted path into JSON text; nil where it leads nowhere.
func at(text, path string) any {
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return nil
	}
	for name := range strings.SplitSeq(path, ".") {
		object, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = object[name]
	}
	return v
}

// scalarAt is the text or number at a path, empty where there is none.
func scalarAt(text, path string) string {
	switch v := at(text, path).(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		if v {
			return "true"
		}
		return "false"
	}
	return ""
}

// gate lets requests begin at one moment: when all have come to it, or will not
// come.
type gate struct {
	mu      sync.Mutex
	missing int
	open    chan struct{}
}

func newGate(n int) *gate { return &gate{missing: n, open: make(chan struct{})} }

// come counts one in.
func (g *gate) come() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.missing--; g.missing == 0 {
		close(g.open)
	}
}
