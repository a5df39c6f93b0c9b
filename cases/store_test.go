package cases

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
	"github.com/semel-dev/semel/store/postgres"
	"github.com/semel-dev/semel/store/postgres/postgrestest"
)

// C21: PostgreSQL restarts under a running operation, or goes read-only before
// the claim or between effect and record. On SQLite the same faults are in
// package engine's outage tests.
func TestC21DatabaseFailsUnderTheOperation(t *testing.T) {
	server := postgrestest.Start(t, postgrestest.Options{Durable: true})
	url := server.Database(t)
	arrived, held := make(chan struct{}, 100), make(chan struct{})
	r := &rig{T: t, dest: newDest(t), open: func() shifted {
		s, err := postgres.Open(t.Context(), url, postgres.Options{Create: true})
		return opened(t, s, err)
	}}
	r.dest.script = func(a arrival, act func(string), w http.ResponseWriter) {
		act(a.path)
		arrived <- struct{}{}
		<-held
		answer(w, http.StatusCreated, `{"id":"ch"}`)
	}
	n, second := r.node(engine.Options{}), r.node(engine.Options{})

	flying := make(chan semel.Outcome, 1)
	go func() { flying <- n.submit(request{key: "f-1", path: "/f1", body: `{}`}) }()
	<-arrived
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := second.engine.Recover(t.Context()); err != nil {
		t.Logf("the first look after the restart: %v", err)
	}
	out, err := second.engine.Do(t.Context(), second.call(request{key: "f-1", path: "/f1", body: `{}`}))
	if err == nil && out.Status != semel.StatusInProgress {
		t.Errorf("another worker took the running operation: %s", out.Status)
	}
	close(held)
	n.want(<-flying, semel.StatusCompleted)
	n.wantEffects(1, 1)

	if err := server.SetReadOnly(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.untilReadOnly()
	var notAsked *semel.NotAskedError
	for i := range 20 {
		if out, err := n.engine.Do(t.Context(), n.call(request{key: fmt.Sprint("ro-", i), body: `{}`})); !errors.As(err, &notAsked) {
			t.Errorf("read-only: %s, %v; want a refusal", out.Status, err)
		}
	}
	n.wantEffects(1, 1)
	if err := server.SetWritable(t.Context()); err != nil {
		t.Fatal(err)
	}

	held = make(chan struct{})
	var wg sync.WaitGroup
	outcomes := make([]semel.Outcome, 3)
	for i := range outcomes {
		wg.Go(func() {
			outcomes[i] = n.submit(request{key: fmt.Sprint("late-", i), path: fmt.Sprint("/late", i), body: `{}`})
		})
	}
	for range outcomes {
		<-arrived
	}
	if err := server.SetReadOnly(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.untilReadOnly()
	close(held)
	for i := range 30 {
		out, err := second.engine.Do(t.Context(), second.call(request{key: fmt.Sprint("late-", i%3), path: fmt.Sprint("/late", i%3), body: `{}`}))
		if err == nil && out.Status == semel.StatusFailed {
			t.Errorf("told %q failed, although it happened", out.Operation.Key)
		}
	}
	if err := server.SetWritable(t.Context()); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	for _, out := range outcomes {
		n.want(out, semel.StatusCompleted)
	}
	n.wantEffects(4, 4)
	n.wantHonest()
}

// untilReadOnly waits until every session of the node's store has heard that
// the server is read-only.
func (n *node) untilReadOnly() {
	n.Helper()
	refused := 0
	for until := time.Now().Add(20 * time.Second); refused < 50 && time.Now().Before(until); {
		_, err := n.store.Renew(n.Context(), semel.ID{1}, 1, time.Second)
		if refused++; !errors.Is(err, semel.ErrUnavailable) {
			refused = 0
		}
	}
	if refused < 50 {
		n.Fatal("the server did not become read-only")
	}
}

// C22: many equal requests at once, over few connections and several nodes.
func TestC22ManyEqualRequests(t *testing.T) {
	eachStore(t, func(r *rig) {
		r.dest.script = func(a arrival, act func(string), w http.ResponseWriter) {
			time.Sleep(100 * time.Millisecond)
			act(a.path)
			answer(w, http.StatusCreated, `{"id":"ch"}`)
		}
		nodes := []*node{r.node(engine.Options{}), r.node(engine.Options{}), r.node(engine.Options{})}
		fire(r, nodes, 200, func(i int) (context.Context, request) {
			return r.Context(), request{key: "c-1", path: "/c1", body: `{}`, wait: time.Duration(i%2) * 20 * time.Second}
		}, semel.StatusCompleted, semel.StatusInProgress)
		nodes[0].wantEffects(1, 1)
		fire(r, nodes, 200, func(i int) (context.Context, request) {
			return r.Context(), request{key: fmt.Sprint("d-", i), path: "/d", body: fmt.Sprintf(`{"n":%d}`, i)}
		}, semel.StatusCompleted)
		nodes[0].wantEffects(201, 201)
		fire(r, nodes, 200, func(i int) (context.Context, request) {
			return r.Context(), request{key: "c-2", path: "/c2", body: fmt.Sprintf(`{"v":%d}`, i%2), wait: 20 * time.Second}
		}, semel.StatusCompleted, semel.StatusConflict)
		nodes[0].wantEffects(202, 202)
		fire(r, nodes, 200, func(i int) (context.Context, request) {
			ctx := r.Context()
			if i%5 == 0 {
				left, cancel := context.WithCancel(ctx)
				time.AfterFunc(time.Duration(rand.IntN(200))*time.Millisecond, cancel)
				ctx = left
			}
			return ctx, request{key: "c-3", path: "/c3", body: `{}`, wait: 20 * time.Second}
		}, semel.StatusCompleted, semel.StatusInProgress, semel.StatusFailed)
		if n := r.dest.count("/c3"); n != 1 {
			r.Errorf("%d effects for c-3, want 1", n)
		}
		nodes[0].wantHonest()
	})
}

// fire submits many requests at once and checks each one's answer.
func fire(r *rig, nodes []*node, many int, make func(i int) (context.Context, request), allowed ...semel.Status) {
	var wg sync.WaitGroup
	for i := range many {
		n := nodes[i%len(nodes)]
		ctx, q := make(i)
		wg.Go(func() {
			out, err := n.engine.Do(ctx, n.call(q))
			if err != nil && ctx.Err() == nil {
				r.Errorf("request %d for %q: %v", i, q.key, err)
				return
			}
			if err != nil {
				return // the caller had left
			}
			if slices.Contains(allowed, out.Status) {
				return
			}
			r.Errorf("request %d for %q: %s, want one of %v", i, q.key, out.Status, allowed)
		})
	}
	wg.Wait()
}

// C22: the same over pools of one, two and four connections.
func TestC22SmallPools(t *testing.T) {
	for _, conns := range []int{1, 2, 4} {
		t.Run(fmt.Sprint(conns), func(t *testing.T) {
			url := postgrestest.Shared(t).Database(t)
			r := &rig{T: t, dest: newDest(t), open: func() shifted {
				s, err := postgres.Open(t.Context(), url, postgres.Options{Create: true, Committers: conns, Readers: conns})
				return opened(t, s, err)
			}}
			nodes := []*node{r.node(engine.Options{}), r.node(engine.Options{})}
			fire(r, nodes, 200, func(i int) (context.Context, request) {
				return r.Context(), request{key: fmt.Sprint("p-", i%100), path: fmt.Sprint("/p", i%100), body: `{}`, wait: 20 * time.Second}
			}, semel.StatusCompleted)
			nodes[0].wantEffects(100, 100)
		})
	}
}
