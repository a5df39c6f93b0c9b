package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
	"github.com/semel-dev/semel/engine"
	"github.com/semel-dev/semel/spool"
	"github.com/semel-dev/semel/store/postgres"
	"github.com/semel-dev/semel/store/sqlite"
)

// assignment is what a worker process is told at its start.
type assignment struct {
	Name         string `json:"name"`
	DB           string `json:"db"`
	Spool        string `json:"spool"`
	Main         string `json:"main"`  // the destination
	Short        string `json:"short"` // the destination that forgets keys soon
	MayLose      bool   `json:"may_lose"`
	Seed         uint64 `json:"seed"`
	DeadProxyPct uint64 `json:"dead_proxy_pct"` // of second and later attempts
	Client       bool   `json:"client"`         // it executes no runs
}

// order is one line to a worker; reply is one line back.
type (
	order struct {
		Do     *Intention    `json:"do,omitempty"`
		Number int           `json:"number"`
		Leave  time.Duration `json:"leave,omitzero"` // the caller leaves after it
		Wait   time.Duration `json:"wait,omitzero"`  // for somebody else's attempt
		Cut    time.Duration `json:"cut,omitzero"`   // no store for so long
		Lose   int           `json:"lose,omitzero"`  // so many acknowledgements
	}
	reply struct {
		Number   int    `json:"number"`
		Status   string `json:"status,omitempty"`
		Next     string `json:"next,omitempty"`
		Effect   string `json:"effect,omitempty"`
		NotAsked string `json:"not_asked,omitempty"`
		Spooled  int    `json:"spooled,omitempty"` // evidence that a worker found at its start; belongs to no order
	}
)

const tenant = "soak"

// actionOf is what an intention is called; connections are the same.
func actionOf(p Protection) string { return string(p) }

func scopeOf(p Protection) semel.Scope { return semel.ActionScope(tenant, actionOf(p), actionOf(p)) }

func (a *assignment) base(p Protection) string {
	if p == Short {
		return a.Short
	}
	return a.Main
}

// contract is the terms of one protection.
func (a *assignment) contract(p Protection) semel.Contract {
	c := semel.Contract{
		Effect: semel.External, Protection: semel.Unprotected, Timeout: answerWithin, WriteTimeout: writeTimeout, Owner: "soak",
		MaxProcessing: maxProcessing, Skew: skew, Backoff: 300 * time.Millisecond, Attempts: 5,
	}
	switch p {
	case Keyed:
		c.Protection, c.Window, c.KeyHeader = semel.Keyed, longWindow, "Idempotency-Key"
	case Short:
		c.Protection, c.Window, c.KeyHeader = semel.Keyed, shortWindow, "Idempotency-Key"
	case Lookup:
		c.Protection, c.AbsenceIsProof, c.VisibleAfter = semel.Lookup, true, visibleAfter
		c.LookupURL = a.Main + "/v1/transfers/by-reference/{body.reference}"
	case None:
	}
	return c
}

func (a *assignment) call(d semel.Destination, i *Intention) (semel.Call, error) {
	body, err := json.Marshal(map[string]any{"reference": i.Reference, "amount": i.Amount, "customer": "cus_" + i.Key})
	if err != nil {
		return semel.Call{}, err
	}
	r, _, err := httpdest.NewRequest(http.MethodPost, a.base(i.Protection)+"/v1/"+i.Resource, nil, body)
	if err != nil {
		return semel.Call{}, err
	}
	r.Connection, r.Action = actionOf(i.Protection), actionOf(i.Protection)
	c := semel.Call{Action: r.Action, Key: semel.Key(i.Key), Request: r, Contract: a.contract(i.Protection), Destination: d, Source: a.Name}
	if i.Final {
		c.Contract.OnFailed = semel.ReturnFailed
	}
	return c, nil
}

// road leads to the destination, and sometimes, for a second or later attempt,
// to a proxy that is not there.
type road struct {
	*httpdest.Destination
	dead *httpdest.Destination
	a    *assignment
}

type attemptKey struct{}

func (r *road) Send(ctx context.Context, s *semel.Send) semel.Event {
	ctx = context.WithValue(ctx, attemptKey{}, s)
	h := fnv.New64a()
	fmt.Fprint(h, r.a.Seed, s.Operation.ID, s.Attempt)
	if s.Attempt > 1 && s.Attempt < 6 && h.Sum64()%100 < r.a.DeadProxyPct {
		return r.dead.Send(ctx, s)
	}
	return r.Destination.Send(ctx, s)
}

// roads lead to the destination under the worker's name. More labels may be
// nil.
func (a *assignment) roads(more func(*semel.Send) map[string]string) (*road, error) {
	profile, err := httpdest.BuiltIn("sandbox")
	if err != nil {
		return nil, err
	}
	o := httpdest.Options{Profile: profile, Header: func(ctx context.Context) (map[string]string, error) {
		h := map[string]string{workerHeader: a.Name}
		if s, ok := ctx.Value(attemptKey{}).(*semel.Send); ok {
			h[attemptHeader] = fmt.Sprint(s.Attempt)
			h[sendByHeader] = s.Operation.Attempts[s.Attempt-1].SendBy.UTC().Format(time.RFC3339Nano)
			if more != nil {
				maps.Copy(h, more(s))
			}
		}
		return h, nil
	}}
	live, err := httpdest.New(o)
	if err != nil {
		return nil, err
	}
	o.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse("http://127.0.0.1:1") }
	dead, err := httpdest.New(o)
	return &road{live, dead, a}, err
}

// work is the worker process.
func work(in io.Reader, out io.Writer) (err error) {
	ctx := context.Background()
	orders := bufio.NewScanner(in)
	if !orders.Scan() {
		return errors.New("no assignment")
	}
	var a assignment
	if err := json.Unmarshal(orders.Bytes(), &a); err != nil {
		return err
	}
	store, err := openStore(ctx, a.DB)
	if err != nil {
		return err
	}
	port := &port{Store: store}
	if a.MayLose {
		store = port
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	kept, err := spool.Open(a.Spool)
	if err != nil {
		return err
	}
	defer kept.Close()
	said := &replies{out: out}
	left, err := kept.Len()
	if err != nil {
		return err
	}
	said.say(reply{Number: -1, Spooled: left})
	d, err := a.roads(nil)
	if err != nil {
		return err
	}
	known := map[semel.Scope]Protection{}
	for _, p := range Protections() {
		known[scopeOf(p)] = p
	}
	guard, err := engine.New(ctx, store, engine.Options{
		Name: a.Name, Tenant: tenant, Lease: lease, Patience: 3 * time.Second, Late: true, Spool: kept,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)).With("worker", a.Name),
		Resolve: func(o *semel.Operation) (semel.Destination, semel.Contract, error) {
			p, ok := known[o.Scope]
			if !ok {
				return nil, semel.Contract{}, errors.New("it is not of this soak")
			}
			return d, a.contract(p), nil
		},
	})
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	recovery, stop := context.WithCancel(ctx)
	defer stop()
	wg.Go(func() { _ = guard.Run(recovery) })
	for orders.Scan() {
		var o order
		if err := json.Unmarshal(orders.Bytes(), &o); err != nil {
			return err
		}
		port.cut(o.Cut)
		port.lose.Add(int64(o.Lose))
		if o.Do != nil {
			wg.Go(func() { said.say(a.perform(ctx, guard, d, o)) })
		}
	}
	stop()
	wg.Wait()
	last, cancel := context.WithTimeout(ctx, 8*time.Second)
	defer cancel()
	return errors.Join(guard.Close(last), d.Close(last), d.dead.Close(last))
}

func (a *assignment) perform(ctx context.Context, guard semel.Guard, d semel.Destination, o order) reply {
	r := reply{Number: o.Number}
	c, err := a.call(d, o.Do)
	if err != nil {
		r.NotAsked = err.Error()
		return r
	}
	c.Wait = o.Wait
	if o.Leave > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, o.Leave)
		defer cancel()
	}
	out, err := guard.Do(ctx, c)
	if err != nil {
		r.NotAsked = err.Error()
		return r
	}
	r.Status, r.Next = string(out.Status), string(out.Next.Kind)
	if out.Operation.Result != nil {
		r.Effect = out.Operation.Result.Reference
	}
	return r
}

type replies struct {
	mu  sync.Mutex
	out io.Writer
}

func (r *replies) say(one any) {
	line, err := json.Marshal(one)
	if err != nil {
		panic(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = r.out.Write(append(line, '\n'))
}

// port is a store that can be cut off, and that loses acknowledgements. It
// stands for what a network does, where there is none.
type port struct {
	semel.Store
	until atomic.Int64
	lose  atomic.Int64
}

var errCut = fmt.Errorf("%w: cut off", semel.ErrUnavailable)

func (p *port) cut(d time.Duration) {
	if d > 0 {
		p.until.Store(time.Now().Add(d).UnixNano())
	}
}

func (p *port) isCut() bool { return time.Now().UnixNano() < p.until.Load() }

func (p *port) Now(ctx context.Context) (time.Time, error) {
	if p.isCut() {
		return time.Time{}, errCut
	}
	return p.Store.Now(ctx)
}

func (p *port) Commit(ctx context.Context, c semel.Change) (semel.Operation, error) {
	if p.isCut() {
		return semel.Operation{}, errCut
	}
	o, err := p.Store.Commit(ctx, c)
	if err == nil && (p.isCut() || p.lose.Add(-1) >= 0) {
		return semel.Operation{}, fmt.Errorf("%w: the acknowledgement was lost", semel.ErrUnconfirmed)
	}
	return o, err
}

func (p *port) Renew(ctx context.Context, id semel.ID, attempt int, lease time.Duration) (semel.Renewal, error) {
	if p.isCut() {
		return semel.Renewal{}, errCut
	}
	return p.Store.Renew(ctx, id, attempt, lease)
}

func (p *port) Load(ctx context.Context, scope semel.Scope, key semel.Key) (semel.Operation, error) {
	if p.isCut() {
		return semel.Operation{}, errCut
	}
	return p.Store.Load(ctx, scope, key)
}

func (p *port) LoadID(ctx context.Context, id semel.ID) (semel.Operation, error) {
	if p.isCut() {
		return semel.Operation{}, errCut
	}
	return p.Store.LoadID(ctx, id)
}

func (p *port) Due(ctx context.Context, limit int) ([]semel.Operation, error) {
	if p.isCut() {
		return nil, errCut
	}
	return p.Store.Due(ctx, limit)
}

func openStore(ctx context.Context, db string) (semel.Store, error) {
	if path, ok := strings.CutPrefix(db, "sqlite:"); ok {
		return sqlite.Open(ctx, path, sqlite.Options{Create: true})
	}
	return postgres.Open(ctx, db, postgres.Options{Create: true, Committers: 2, Readers: 2, Patience: 2 * time.Second})
}
